"""Files that are uploaded before a message names them, and what becomes of those it never does."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from sluicegate.errors import HeldElsewhere, StoreError, Unavailable
from sluicegate.stores.uploads import Upload

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.parts import EngineParts
    from sluicegate.wire.stored_files import StoredFile

logger = logging.getLogger("sluicegate")
_AT_ONCE: Final = 5
"""Files looked after at a time: more than come, so that none is left for ever."""


class UnsentFiles:
    """Takes uploads, and deletes those that no message has named in time (S4-R55).

    Rule: a file is deleted only while nobody else can write to its chat, and only if nothing in
    the chat speaks of it; a tool may have returned the same file.
    """

    def __init__(self, parts: EngineParts, alone: Callable[[ChatKey], asyncio.Lock]) -> None:
        """``alone`` is the lock under which a chat decides what it runs next."""
        self._parts = parts
        self._alone = alone

    async def save(
        self, chat: ChatKey, data: bytes, media_type: str, title: str | None
    ) -> StoredFile:
        """Store an upload, then look after some that are due.

        Raises:
            RequestError: it is not accepted, or could not be stored.
        """
        files = self._parts.files
        files.check(data, media_type)
        async with self._alone(chat):
            file = await files.attach(chat, data, media_type, title)
            try:
                await self._parts.uploads.note(Upload(chat, file.name))
            except StoreError as error:
                raise Unavailable("The file could not be stored; attach it again.") from error
        await self.sweep()
        return file

    async def sweep(self) -> None:
        """Look after some uploads that are due; what cannot be done now is done later."""
        parts = self._parts
        try:
            due = await parts.uploads.due(
                parts.app, seconds=parts.options.upload_ttl, limit=_AT_ONCE
            )
            for upload in due:
                try:
                    await self._look_after(upload)
                except StoreError:
                    raise
                except Exception as error:  # noqa: BLE001 - a chat that cannot be read holds up no other
                    logger.error(
                        "an upload was left chat=%s %s", upload.chat.chat, type(error).__name__
                    )
                    await parts.uploads.note(upload)
        except StoreError as error:
            logger.warning("uploads were not looked after: %s", error)

    async def _look_after(self, upload: Upload) -> None:
        parts, chat = self._parts, upload.chat
        async with self._alone(chat):
            place = await parts.elsewhere.place(chat)
            busy = parts.turns.running(chat) or parts.turns.holders.of(chat) or place.away
            if busy is not None:
                return
            try:
                async with parts.turns.leases.holding(chat, after=place.fence):
                    is_named = await self._is_named(upload)
                    taken = await parts.uploads.take(upload, seconds=parts.options.upload_ttl)
                    if taken and not is_named:
                        await self._delete(upload)
            except HeldElsewhere:
                return

    async def _delete(self, upload: Upload) -> None:
        try:
            await self._parts.files.delete(upload.chat, upload.name)
        except StoreError:
            await self._parts.uploads.note(upload)
            raise
        logger.info("an upload that was not sent is deleted chat=%s", upload.chat.chat)

    async def _is_named(self, upload: Upload) -> bool:
        """Whether anything in the chat speaks of the file."""
        session = await self._parts.log.load(upload.chat)
        events = [] if session is None else session.events
        return any(upload.name in event.model_dump_json() for event in events)
