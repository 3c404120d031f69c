"""Files that models are sent, kept for the next call: bounded, and each read once at a time."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict
from urllib.parse import quote

from google.genai import types

from sluicegate.errors import (
    MediaError,
    StoreError,
    TooLarge,
    Unavailable,
    Unknown,
    UnsupportedMediaType,
)
from sluicegate.media.file_types import (
    check_media_type,
    count_pages,
    longest_side,
    matches_media_type,
)
from sluicegate.media.litellm_blocks import data_url
from sluicegate.media.shaping import LoadedFile
from sluicegate.wire.files import ACTIVE_TYPES, StoredFile, is_stored_file_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService

    from sluicegate.core.keys import ChatKey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sluicegate.core.keys import ChatKey
    from sluicegate.media.shaping import FileForm

    Key: TypeAlias = tuple[ChatKey, str, FileForm]


class FileCache:
    """Forms of files by chat, name and form; a name is a digest of the content (S4-R45).

    The chat is part of the key: what one chat has read is nothing that another one may see.
    """

    def __init__(self, max_bytes: int) -> None:
        """Take how many bytes are kept; the ones used longest ago go first."""
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Key, LoadedFile] = OrderedDict()
        self._size = 0
        self._reading: dict[Key, asyncio.Future[LoadedFile]] = {}

    @property
    def size(self) -> int:
        """Bytes that are kept now."""
        return self._size

    async def get(self, key: Key, read: Callable[[], Awaitable[tuple[bytes, str]]]) -> LoadedFile:
        """A form of a file; ``read`` gives its bytes and its type when they are not here.

        Raises:
            Exception: what ``read`` raises.
        """
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        running = self._reading.get(key)
        if running is None:
            running = asyncio.ensure_future(self._read(key, read))
            self._reading[key] = running
            running.add_done_callback(lambda _: self._reading.pop(key, None))
        # A caller that is stopped does not stop what another one waits for.
        return await asyncio.shield(running)

    async def _read(self, key: Key, read: Callable[[], Awaitable[tuple[bytes, str]]]) -> LoadedFile:
        data, media_type = await read()
        loaded = await asyncio.to_thread(_formed, data, media_type, key[2])
        self._keep(key, loaded)
        return loaded

    def _keep(self, key: Key, loaded: LoadedFile) -> None:
        size = _size_of(loaded)
        if size > self._max_bytes:
            return
        self._kept[key] = loaded
        self._size += size
        while self._size > self._max_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._size -= _size_of(oldest)


def _size_of(loaded: LoadedFile) -> int:
    return len(loaded.data) + len(loaded.url)


def _formed(data: bytes, media_type: str, form: FileForm) -> LoadedFile:
    side, count = longest_side(data, media_type), count_pages(data, media_type)
    if form == "bytes":
        return LoadedFile(data=data, side=side, pages=count)
    return LoadedFile(url=data_url(data, media_type), side=side, pages=count)


_PLAIN_USER: Final = re.compile(r"(?!\.)[A-Za-z0-9@._|+=~-]+")
_ASIDE: Final = 256 * 1024
"""Bytes from which a digest is computed in a thread."""


@dataclass(frozen=True, slots=True)
class ChatFiles:
    """Stores and finds the files of chats; a name is looked for in one chat alone (S4-R43).

    ``accepted`` are patterns of the media types that users may attach, ``max_bytes`` is the size
    of a file.
    """

    service: BaseArtifactService
    accepted: Sequence[str]
    max_bytes: int

    async def attach(
        self, chat: ChatKey, data: bytes, media_type: str, title: str | None
    ) -> StoredFile:
        """Store what a user attaches.

        Raises:
            UnsupportedMediaType: its type is not accepted, or not what its bytes show.
            TooLarge: it is larger than a file may be.
            Unavailable: it could not be stored.
        """
        kind = self.check(data, media_type)
        try:
            return await self.store(chat, data, kind, title=title)
        except StoreError as error:
            raise Unavailable("The file could not be stored; attach it again.") from error

    def check(self, data: bytes, media_type: str) -> str:
        """Judge what a user attaches, without storing it; return its type.

        Raises:
            UnsupportedMediaType: its type is not accepted, or not what its bytes show.
            TooLarge: it is larger than a file may be.
        """
        if len(data) > self.max_bytes:
            raise TooLarge(f"A file may have {self.max_bytes:,} bytes; attach a smaller one.")
        try:
            kind = check_media_type(data, media_type)
        except MediaError as error:
            raise UnsupportedMediaType(f"{error} Attach another file.") from None
        if kind in ACTIVE_TYPES or not matches_media_type(kind, self.accepted):
            raise UnsupportedMediaType(
                f"Files of the type {kind} are not accepted; attach another format."
            )
        return kind

    async def store(
        self,
        chat: ChatKey,
        data: bytes,
        media_type: str,
        *,
        title: str | None = None,
        description: str | None = None,
    ) -> StoredFile:
        """Store some bytes unless the chat has them already.

        Raises:
            StoreError: the artifact service does not take them.
        """
        if len(data) < _ASIDE:
            file = StoredFile.of(data, media_type, title=title, description=description)
        else:
            file = await asyncio.to_thread(
                StoredFile.of, data, media_type, title=title, description=description
            )
        if await self._version(chat, file.name) is None:
            known = {"size": str(file.size), "sha256": file.digest, "title": title or ""}
            part = types.Part(inline_data=types.Blob(data=data, mime_type=media_type))
            try:
                await self.service.save_artifact(
                    **_place(chat), filename=file.name, artifact=part, custom_metadata=known
                )
            except Exception as error:  # any service, with errors of its own
                raise StoreError(f"a file was not stored: {type(error).__name__}") from error
        return file

    async def find(self, chat: ChatKey, name: str) -> StoredFile:
        """Look a file of the chat up without reading it.

        Raises:
            Unknown: the chat has no such file.
        """
        version = await self._version(chat, name)
        if version is None:
            raise Unknown("This chat has no such file; attach it again.")
        known = version.custom_metadata
        return StoredFile(
            name,
            version.mime_type or "application/octet-stream",
            int(known.get("size", 0)),
            str(known.get("sha256", "")),
            str(known.get("title", "")) or None,
        )

    async def read(self, chat: ChatKey, name: str) -> tuple[bytes, str]:
        """The bytes and media type of a file.

        Raises:
            Unknown: the chat has no such file.
        """
        if is_stored_file_name(name):
            part = await self.service.load_artifact(**_place(chat), filename=name)
            blob = part.inline_data if part is not None else None
            if blob is not None and blob.data is not None:
                return blob.data, blob.mime_type or "application/octet-stream"
        raise Unknown("There is no such file.")

    async def delete(self, chat: ChatKey, name: str) -> None:
        """Forget one file of a chat.

        Raises:
            StoreError: the artifact service does not let go of it.
        """
        try:
            await self.service.delete_artifact(**_place(chat), filename=name)
        except Exception as error:  # any service, with errors of its own
            raise StoreError(f"a file was not deleted: {type(error).__name__}") from error

    async def delete_all(self, chat: ChatKey) -> None:
        """Forget the files of a chat, those that the agent's own tools saved too (S4-R55)."""
        for name in await self.service.list_artifact_keys(**_place(chat)):
            if not name.startswith("user:"):
                await self.service.delete_artifact(**_place(chat), filename=name)

    async def _version(self, chat: ChatKey, name: str) -> ArtifactVersion | None:
        if not is_stored_file_name(name):
            return None
        return await self.service.get_artifact_version(**_place(chat), filename=name)


class _Place(TypedDict):
    app_name: str
    user_id: str
    session_id: str


def _place(chat: ChatKey) -> _Place:
    """Where a chat's files lie.

    ADK: a service refuses names with slashes or dots in the wrong place, or makes folders of
    them, and keeps the session id ``user`` for itself. Plain names stay as they are, so that the
    agent's own tools find the same files.
    """
    user, session = chat.user, chat.chat
    if not _PLAIN_USER.fullmatch(user):
        user = quote(user, safe="").replace(".", "%2E")
    if session == "user" or session[1:2] == ":":
        session = f"%{session}"
    return {"app_name": chat.app, "user_id": user, "session_id": session}
