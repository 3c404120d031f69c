"""Uploads that no message names yet: stored, described to the client, deleted when due."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sluicegate.errors import HeldByAnotherOwner, StoreError, Unavailable
from sluicegate.stores.upload_records import Upload

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.files.upload_quotas import UploadQuotas
    from sluicegate.engine.load_chat_log import ChatLogs
    from sluicegate.engine.turn.chat_leases import ChatLeases
    from sluicegate.engine.turn.remote_turns import Replicas
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.stores.upload_records import Uploads
    from sluicegate.wire.stored_files import StoredFile

logger = logging.getLogger("sluicegate")

_MAX_SWEPT: Final = 5
"""Uploads examined in one sweep: more than one save adds, so that none is left for ever."""


@dataclass(frozen=True, slots=True)
class PendingUploads:
    """Stores uploads, and deletes those that no message has named in time (S4-R55).

    Rule: a file is deleted only while no one else can write to its chat, and only if nothing in
    the chat names it; a tool may have returned the same file. ``ttl`` is in seconds, ``lock`` the
    lock under which a chat decides what it runs next.
    """

    app: str
    ttl: float
    uploads: Uploads
    limits: UploadQuotas
    files: ChatFiles
    logs: ChatLogs
    replicas: Replicas
    leases: ChatLeases
    lock: Callable[[ChatKey], asyncio.Lock]

    async def save(
        self, chat: ChatKey, data: bytes, media_type: str, title: str | None
    ) -> StoredFile:
        """Store an upload, then sweep some that are due.

        Raises:
            RequestError: it is not accepted, or could not be stored.
        """
        self.files.check(data, media_type)
        async with self.lock(chat):
            await self.limits.take(chat, [len(data)])
            file = await self.files.attach(chat, data, media_type, title)
            try:
                await self.uploads.record(Upload(chat, file.name), size=len(data))
            except StoreError as error:
                raise Unavailable("The file could not be stored; attach it again.") from error
        await self.sweep()
        return file

    async def sweep(self) -> None:
        """Examine some uploads that are due; one that cannot be examined now is retried later."""
        try:
            for upload in await self.uploads.due(self.app, seconds=self.ttl, limit=_MAX_SWEPT):
                try:
                    await self._examine(upload)
                except StoreError:
                    raise
                except Exception as error:  # noqa: BLE001 - a chat that cannot be read blocks no other
                    logger.error(
                        "an upload was not processed chat=%s %s",
                        upload.chat.chat,
                        type(error).__name__,
                    )
                    await self.uploads.record(upload)
        except StoreError as error:
            logger.warning("uploads were not swept: %s", error)

    async def _examine(self, upload: Upload) -> None:
        chat = upload.chat
        async with self.lock(chat):
            location = await self.replicas.locate(chat)
            if self.logs.turns.is_local(chat) or location.remote is not None:
                return
            try:
                async with self.leases.acquired(chat, after=location.fence):
                    is_named = await self._is_named(upload)
                    if is_named:
                        await self.uploads.keep(upload)
                    elif await self.uploads.claim(upload, seconds=self.ttl):
                        await self._delete(upload)
            except HeldByAnotherOwner:
                return

    async def _delete(self, upload: Upload) -> None:
        try:
            await self.files.delete(upload.chat, upload.name)
        except StoreError:
            await self.uploads.record(upload)
            raise
        logger.info("an upload that was not sent is deleted chat=%s", upload.chat.chat)

    async def _is_named(self, upload: Upload) -> bool:
        """Whether anything in the chat names the file."""
        session = await self.logs.session_log.load(upload.chat)
        events = [] if session is None else session.events
        return any(upload.name in event.model_dump_json() for event in events)


def file_ui_part(file: StoredFile, files_url: str) -> dict[str, Any]:
    """Return the fields of the AI SDK's ``FileUIPart`` for a file, and its name in the path."""
    found = {"url": f"{files_url}{file.name}", "mediaType": file.media_type, "name": file.name}
    return found if file.title is None else {**found, "filename": file.title}
