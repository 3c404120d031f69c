"""Copies of large files at the provider of a model, by its Files API.

Each copy has a record beside the file, an artifact of the chat, so that it is found after a restart
and deleted with the chat. No record is read or written for files that requests carry themselves.
"""

from __future__ import annotations

import asyncio
import json
import logging
import mmap
import time
from dataclasses import asdict, replace
from io import BytesIO
from typing import IO, TYPE_CHECKING, Final

from google.genai import types

from sluicegate.media.chat_files import artifact_scope
from sluicegate.media.file_inspection import count_pages
from sluicegate.media.provider_files_api import UploadedFile
from sluicegate.wire.stored_files import is_stored_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.media.provider_files_api import FilesApi, Provider
    from sluicegate.wire.stored_files import StoredFile

logger = logging.getLogger("sluicegate")

_PROVIDERS: Final[tuple[Provider, ...]] = ("genai", "anthropic", "openai")
_MARGIN: Final = 600.0
"""Seconds before its expiry at which a copy is replaced, since a turn may last as long."""

_LIFETIME: Final = 46 * 3600.0
"""Seconds that a copy of Google without an expiry is used: Google deletes it after 48 hours."""


class ProviderUploads:
    """Uploads files, and deletes their copies; ``clock`` is the time in seconds since the epoch."""

    def __init__(self, files: ChatFiles, clock: Callable[[], float] = time.time) -> None:
        self._files = files
        self._clock = clock

    async def get(self, chat: ChatKey, file: StoredFile, api: FilesApi) -> UploadedFile:
        """Return the copy of a file at a provider; it is uploaded unless one is there.

        Raises:
            Exception: The store or the provider failed.
        """
        copy = await self._find(chat, _record_name(file.name, api.provider))
        if copy is None or (copy.expires is not None and copy.expires - _MARGIN < self._clock()):
            copy = await self._upload(chat, file, api)
        return copy

    async def forget(self, chat: ChatKey, file: StoredFile, api: FilesApi) -> None:
        """Delete the record of a copy that the provider does not have any more.

        Raises:
            Exception: The store failed.
        """
        await self._files.service.delete_artifact(
            **artifact_scope(chat), filename=_record_name(file.name, api.provider)
        )

    async def delete_all(self, chat: ChatKey, apis: Callable[[], Iterator[FilesApi]]) -> None:
        """Delete the copies of a chat's files; what cannot be deleted is logged."""
        for key in await self._files.service.list_artifact_keys(**artifact_scope(chat)):
            name, _, provider = key.rpartition(".")
            if provider not in _PROVIDERS or not is_stored_file_name(name):
                continue
            try:
                copy = await self._find(chat, key)
                if copy is None or (copy.expires is not None and copy.expires <= self._clock()):
                    continue
                # Without a copy no client is made, which may need a key that is not set.
                api = next((api for api in apis() if api.provider == provider), None)
                if api is not None:
                    await api.delete(copy.name)
            except Exception as error:  # noqa: BLE001 - clients raise errors of their own
                logger.warning(
                    "a file was not deleted at the provider chat=%s %s",
                    chat.chat,
                    type(error).__name__,
                )

    async def _upload(self, chat: ChatKey, file: StoredFile, api: FilesApi) -> UploadedFile:
        with await self._files.open(chat, file.name) as content:
            pages = await asyncio.to_thread(_count_pages, content, file.media_type)
            made = await api.upload(file, content)
        expires = made.expires
        if expires is None and api.provider == "genai":
            expires = self._clock() + _LIFETIME
        copy = replace(made, expires=expires, pages=pages)
        data = json.dumps(asdict(copy)).encode()
        await self._files.service.save_artifact(
            **artifact_scope(chat),
            filename=_record_name(file.name, api.provider),
            artifact=types.Part(inline_data=types.Blob(data=data, mime_type="application/json")),
        )
        return copy

    async def _find(self, chat: ChatKey, record: str) -> UploadedFile | None:
        part = await self._files.service.load_artifact(**artifact_scope(chat), filename=record)
        blob = part.inline_data if part is not None else None
        return UploadedFile(**json.loads(blob.data)) if blob is not None and blob.data else None


def _record_name(name: str, provider: Provider) -> str:
    return f"{name}.{provider}"


def _count_pages(content: IO[bytes], media_type: str) -> int:
    """Count the pages of a file without reading it into memory."""
    if isinstance(content, BytesIO):
        return count_pages(content.getbuffer(), media_type)
    with mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return count_pages(mapped, media_type)
