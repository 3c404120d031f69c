"""Imports the files of tool results, bytes or paths, into the store of the chat."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sluicegate.errors import MediaError, Unknown
from sluicegate.media.attachments_and_links import Attachment, FileSource, Link
from sluicegate.media.file_inspection import check_media_type
from sluicegate.wire.stored_files import StoredFile, parse_file_uri

if TYPE_CHECKING:
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.media.result_limits import ResultLimits

logger = logging.getLogger("sluicegate")

_LINK_SCHEMES: Final = ("https://", "gs://")


@dataclass(frozen=True, slots=True)
class FileImporter:
    """Imports files into one chat; never from other chats, other folders or the network."""

    store: ChatFiles
    chat: ChatKey
    limits: ResultLimits

    async def import_file(self, file: FileSource) -> StoredFile | Link:
        """Store a file, or check that it exists.

        Raises:
            MediaError: It may not be stored; the public sentence names nothing of this machine.
            StoreError: The artifact service failed.
        """
        match file:
            case Link(uri=uri):
                stored = parse_file_uri(uri, file.media_type)
                if stored is not None:
                    return await self.import_file(stored)
                if not uri.startswith(_LINK_SCHEMES) or not uri.isprintable():
                    raise MediaError("Its address is none that a model reads.")
                return file
            case StoredFile(name=name):
                try:
                    await self.store.find(self.chat, name)
                except Unknown:
                    raise MediaError("This chat has no such file.") from None
                return file
            case Attachment():
                data = file.data if file.data is not None else await self._read(file)
                if len(data) > self.limits.file_bytes:
                    raise MediaError(f"It is larger than {self.limits.file_bytes:,} bytes.")
                return await self.store.store(
                    self.chat,
                    data,
                    check_media_type(data, file.media_type),
                    title=file.title,
                    description=file.description,
                )

    async def _read(self, file: Attachment) -> bytes:
        path = Path(file.path or "")
        try:
            return await asyncio.to_thread(self._read_allowed, path)
        except (OSError, ValueError, RuntimeError) as error:
            if isinstance(error, MediaError):
                raise
            raise MediaError("It cannot be read.") from None

    def _read_allowed(self, path: Path) -> bytes:
        """Read a file by its path; links are resolved before the folder is checked (S4-R43)."""
        real = path.resolve(strict=True)
        if not any(real.is_relative_to(folder.resolve()) for folder in self.limits.folders):
            logger.warning(
                "a tool returned a path outside the folders that the setting file_folders names"
            )
            raise MediaError("It lies in a folder that this server does not share.")
        with real.open("rb") as opened:
            return opened.read(self.limits.file_bytes + 1)
