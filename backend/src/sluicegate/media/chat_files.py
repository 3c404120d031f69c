"""The files of chats in the artifact service."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypedDict
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from google.adk.artifacts.file_artifact_service import FileArtifactService
from google.genai import types

from sluicegate.errors import (
    MediaError,
    StoreError,
    TooLarge,
    Unavailable,
    Unknown,
    UnsupportedMediaType,
)
from sluicegate.media.file_inspection import (
    check_media_type,
    matches_media_type,
)
from sluicegate.wire.media_types import ACTIVE_TYPES
from sluicegate.wire.stored_files import StoredFile, is_stored_file_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.artifacts.base_artifact_service import ArtifactVersion, BaseArtifactService

    from sluicegate.core.chat_and_turn_keys import ChatKey

_PLAIN_USER: Final = re.compile(r"(?!\.)[A-Za-z0-9@._|+=~-]+")
_THREAD_BYTES: Final = 256 * 1024
"""Size from which a digest is computed in a thread."""


@dataclass(frozen=True, slots=True)
class ChatFiles:
    """The files of chats; a name is resolved within one chat alone (S4-R43).

    ``accepted`` are patterns of the media types that users may attach, ``max_bytes`` is the maximum
    size of a file.
    """

    service: BaseArtifactService
    accepted: Sequence[str]
    max_bytes: int

    async def attach(
        self, chat: ChatKey, data: bytes, media_type: str, title: str | None
    ) -> StoredFile:
        """Store a file that a user attaches.

        Raises:
            UnsupportedMediaType: Its type is not accepted, or contradicts its bytes.
            TooLarge: It is larger than ``max_bytes``.
            Unavailable: It could not be stored.
        """
        kind = self.check(data, media_type)
        try:
            return await self.store(chat, data, kind, title=title)
        except StoreError as error:
            raise Unavailable("The file could not be stored; attach it again.") from error

    def check(self, data: bytes, media_type: str) -> str:
        """Check a file that a user attaches, without storing it; returns its media type.

        Raises:
            UnsupportedMediaType: Its type is not accepted, or contradicts its bytes.
            TooLarge: It is larger than ``max_bytes``.
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
        """Store bytes, unless the chat has the same file already.

        Raises:
            StoreError: The artifact service failed.
        """
        if len(data) < _THREAD_BYTES:
            file = StoredFile.of(data, media_type, title=title, description=description)
        else:
            file = await asyncio.to_thread(
                StoredFile.of, data, media_type, title=title, description=description
            )
        if await self._version(chat, file.name) is None:
            metadata = {"size": str(file.size), "sha256": file.digest, "title": title or ""}
            part = types.Part(inline_data=types.Blob(data=data, mime_type=media_type))
            try:
                await self.service.save_artifact(
                    **artifact_scope(chat),
                    filename=file.name,
                    artifact=part,
                    custom_metadata=metadata,
                )
            except Exception as error:  # artifact services raise errors of their own
                raise StoreError(f"a file was not stored: {type(error).__name__}") from error
        return file

    async def find(self, chat: ChatKey, name: str) -> StoredFile:
        """Return the metadata of a file without reading it.

        Raises:
            Unknown: The chat has no such file.
            StoreError: The artifact service failed.
        """
        version = await self._version(chat, name)
        if version is None:
            raise Unknown("This chat has no such file; attach it again.")
        metadata = version.custom_metadata
        return StoredFile(
            name,
            version.mime_type or "application/octet-stream",
            int(metadata.get("size", 0)),
            str(metadata.get("sha256", "")),
            str(metadata.get("title", "")) or None,
        )

    async def read(self, chat: ChatKey, name: str) -> tuple[bytes, str]:
        """Return the bytes and media type of a file.

        Raises:
            Unknown: The chat has no such file.
        """
        if is_stored_file_name(name):
            part = await self.service.load_artifact(**artifact_scope(chat), filename=name)
            blob = part.inline_data if part is not None else None
            if blob is not None and blob.data is not None:
                return blob.data, blob.mime_type or "application/octet-stream"
        raise Unknown("There is no such file.")

    async def open(self, chat: ChatKey, name: str) -> IO[bytes]:
        """Open a file for reading, from the disk if it is there; closing it is up to the caller.

        Raises:
            Unknown: The chat has no such file.
            StoreError: The artifact service failed.
        """
        version = await self._version(chat, name)
        if version is not None and isinstance(self.service, FileArtifactService):
            return await asyncio.to_thread(_open, version.canonical_uri, self.service.root_dir)
        data, _ = await self.read(chat, name)
        return BytesIO(data)

    async def delete(self, chat: ChatKey, name: str) -> None:
        """Delete one file of a chat.

        Raises:
            StoreError: The artifact service failed.
        """
        try:
            await self.service.delete_artifact(**artifact_scope(chat), filename=name)
        except Exception as error:  # artifact services raise errors of their own
            raise StoreError(f"a file was not deleted: {type(error).__name__}") from error

    async def delete_all(self, chat: ChatKey) -> None:
        """Delete the files of a chat, including those that the agent's own tools saved (S4-R55)."""
        for name in await self.service.list_artifact_keys(**artifact_scope(chat)):
            if not name.startswith("user:"):
                await self.service.delete_artifact(**artifact_scope(chat), filename=name)

    async def _version(self, chat: ChatKey, name: str) -> ArtifactVersion | None:
        if not is_stored_file_name(name):
            return None
        try:
            return await self.service.get_artifact_version(**artifact_scope(chat), filename=name)
        except Exception as error:  # artifact services raise errors of their own
            raise StoreError(f"a file could not be looked up: {type(error).__name__}") from error


def _open(uri: str, folder: Path) -> IO[bytes]:
    path = Path(url2pathname(urlsplit(uri).path)).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise Unknown("There is no such file.")
    return path.open("rb")


class ArtifactScope(TypedDict):
    """The names by which an artifact service knows the artifacts of a chat."""

    app_name: str
    user_id: str
    session_id: str


def artifact_scope(chat: ChatKey) -> ArtifactScope:
    """Return the artifact scope of a chat's files.

    ADK: a service rejects names with slashes or some dots, or makes folders of them, and reserves
    the session id ``user``. Plain names stay as they are, so that the agent's own tools find the
    same files.
    """
    user, session = chat.user, chat.chat
    if not _PLAIN_USER.fullmatch(user):
        user = quote(user, safe="").replace(".", "%2E")
    if session == "user" or session[1:2] == ":":
        session = f"%{session}"
    return {"app_name": chat.app, "user_id": user, "session_id": session}
