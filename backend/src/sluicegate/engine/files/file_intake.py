"""One file of a result on its way into the store, from wherever the tool says it is (S4-R43)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sluicegate.errors import MediaError, Unknown
from sluicegate.media.found import Attachment, Found, Link
from sluicegate.media.kinds import check_kind
from sluicegate.wire.stored_files import StoredFile, read_uri

if TYPE_CHECKING:
    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.files.chat_files import ChatFiles
    from sluicegate.engine.files.result_limits import ResultLimits

logger = logging.getLogger("sluicegate")
_LINKS: Final = ("https://", "gs://")


@dataclass(frozen=True, slots=True)
class FileIntake:
    """Takes files into one chat: nothing of other chats, of other folders, or fetched from afar."""

    store: ChatFiles
    chat: ChatKey
    limits: ResultLimits

    async def keep(self, file: Found) -> StoredFile | Link:
        """Store a file, or look whether it is there.

        Raises:
            MediaError: it may not be kept; a public sentence that says nothing of this machine.
            StoreError: the store does not take it.
        """
        match file:
            case Link(uri=uri):
                known = read_uri(uri, file.media_type)
                if known is not None:
                    return await self.keep(known)
                if not uri.startswith(_LINKS) or not uri.isprintable():
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
                    check_kind(data, file.media_type),
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
        """Read a file by its path; links are followed before the folder is compared (S4-R43)."""
        real = path.resolve(strict=True)
        if not any(real.is_relative_to(folder.resolve()) for folder in self.limits.folders):
            logger.warning(
                "a tool returned a path outside the folders that the setting file_folders names"
            )
            raise MediaError("It lies in a folder that this server does not share.")
        with real.open("rb") as opened:
            return opened.read(self.limits.file_bytes + 1)
