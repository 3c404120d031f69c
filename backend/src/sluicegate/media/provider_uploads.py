"""Copies of large files at the provider of a model, by its Files API.

Each copy has a record beside the file, an artifact of the chat, so that it is found after a restart
and deleted with the chat. No record is read or written for files that requests carry themselves.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from google.genai import types

from sluicegate.errors import MediaError
from sluicegate.media.chat_files import artifact_scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.genai import Client

    from sluicegate.core.chat_keys import ChatKey
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.wire.stored_files import StoredFile

logger = logging.getLogger("sluicegate")

_SUFFIX: Final = ".genai"
_MARGIN: Final = 600.0
"""Seconds before its expiry at which a copy is replaced, since a turn may last as long."""

_LIFETIME: Final = 46 * 3600.0
"""Seconds that a copy without an expiry is used: Google deletes copies after 48 hours."""

_CHUNK: Final = 4 * 1024 * 1024
"""Bytes of a chunk; the API accepts multiples of 256 KiB."""

_PROCESSING: Final = 60
"""Seconds that a provider may take to process a file."""


@dataclass(frozen=True, slots=True)
class _Copy:
    name: str
    uri: str
    expires: float


class _Chunks(io.BufferedReader):
    """A file that is read in chunks: the client has two of them in memory at a time."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(_CHUNK if size is None or size < 0 else min(size, _CHUNK))


class ProviderUploads:
    """Uploads files, and deletes their copies; ``clock`` is the time in seconds since the epoch."""

    def __init__(self, files: ChatFiles, clock: Callable[[], float] = time.time) -> None:
        self._files = files
        self._clock = clock

    async def uri(self, chat: ChatKey, file: StoredFile, client: Client) -> str:
        """Return the reference to a file at Google, which is uploaded unless a copy is there.

        Raises:
            Exception: The store or the provider failed.
        """
        copy = await self._find(chat, file.name)
        if copy is None or copy.expires - _MARGIN < self._clock():
            copy = await self._upload(chat, file, client)
        return copy.uri

    async def delete_all(self, chat: ChatKey, client: Callable[[], Client | None]) -> None:
        """Delete the copies of a chat's files; what cannot be deleted now expires by itself."""
        for key in await self._files.service.list_artifact_keys(**artifact_scope(chat)):
            if not key.endswith(_SUFFIX):
                continue
            try:
                copy = await self._find(chat, key.removesuffix(_SUFFIX))
                if copy is None or copy.expires <= self._clock():
                    continue
                # Without a copy no client is made, which may need a key that is not set.
                google = client()
                if google is not None:
                    await google.aio.files.delete(name=copy.name)
            except Exception as error:  # noqa: BLE001 - clients raise errors of their own
                logger.warning(
                    "a file was not deleted at the provider chat=%s %s",
                    chat.chat,
                    type(error).__name__,
                )

    async def _upload(self, chat: ChatKey, file: StoredFile, client: Client) -> _Copy:
        config = types.UploadFileConfig(mime_type=file.media_type)
        opened = await self._files.open(chat, file.name)
        with _Chunks(cast("io.RawIOBase", opened)) as chunks:
            made = await client.aio.files.upload(file=chunks, config=config)
        for _ in range(_PROCESSING):
            if made.state is not types.FileState.PROCESSING:
                break
            await asyncio.sleep(1)
            made = await client.aio.files.get(name=made.name or "")
        if made.state is not types.FileState.ACTIVE or not made.name or not made.uri:
            raise MediaError("The provider cannot process the file.")
        until = made.expiration_time
        expires = self._clock() + _LIFETIME if until is None else until.timestamp()
        copy = _Copy(made.name, made.uri, expires)
        await self._record(chat, file.name, copy)
        return copy

    async def _find(self, chat: ChatKey, name: str) -> _Copy | None:
        part = await self._files.service.load_artifact(
            **artifact_scope(chat), filename=name + _SUFFIX
        )
        blob = part.inline_data if part is not None else None
        return _Copy(**json.loads(blob.data)) if blob is not None and blob.data else None

    async def _record(self, chat: ChatKey, name: str, copy: _Copy) -> None:
        written = {"name": copy.name, "uri": copy.uri, "expires": copy.expires}
        data = json.dumps(written).encode()
        await self._files.service.save_artifact(
            **artifact_scope(chat),
            filename=name + _SUFFIX,
            artifact=types.Part(inline_data=types.Blob(data=data, mime_type="application/json")),
        )
