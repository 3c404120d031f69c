"""What a user attaches to a message, on its way into the session."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from google.genai import types

from sluicegate.errors import HeldElsewhere, StoreError, Unavailable
from sluicegate.stores.uploads import Upload

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.files.chat_files import ChatFiles
    from sluicegate.engine.resources import EngineResources
    from sluicegate.wire.files import FilePart, StoredFile
    from sluicegate.wire.requests import UserMessage


async def question_content(files: ChatFiles, chat: ChatKey, message: UserMessage) -> types.Content:
    """A user's message: files first, then its text.

    Raises:
        RequestError: a file cannot be taken, or is not of this chat.
    """
    for file in message.files:
        if file.data is not None:
            files.check(file.data, file.media_type)
        else:
            await files.find(chat, stored_name(file.url or ""))
    parts = [await _part(files, chat, file) for file in message.files]
    parts.extend(types.Part(text=text) for text in message.texts)
    return types.Content(role="user", parts=parts)


async def _part(files: ChatFiles, chat: ChatKey, file: FilePart) -> types.Part:
    if file.data is not None:
        stored = await files.attach(chat, file.data, file.media_type, file.filename)
    else:
        stored = await files.find(chat, stored_name(file.url or ""))
        stored = replace(stored, title=file.filename or stored.title)
    data = types.FileData(file_uri=stored.uri, mime_type=stored.media_type)
    return types.Part(file_data=data)


def stored_name(url: str) -> str:
    """The last segment of a file's URL."""
    return unquote(url.rpartition("/")[2])


def shown(file: StoredFile, files_url: str) -> dict[str, Any]:
    """A stored file as the fields of the AI SDK's ``FileUIPart``, and its name in the path."""
    found = {"url": f"{files_url}{file.name}", "mediaType": file.media_type, "name": file.name}
    return found if file.title is None else {**found, "filename": file.title}


logger = logging.getLogger("sluicegate")
_AT_ONCE: Final = 5
"""Files looked after at a time: more than come, so that none is left for ever."""


class PendingUploads:
    """Takes uploads, and deletes those that no message has named in time (S4-R55).

    Rule: a file is deleted only while nobody else can write to its chat, and only if nothing in
    the chat speaks of it; a tool may have returned the same file.
    """

    def __init__(self, parts: EngineResources, alone: Callable[[ChatKey], asyncio.Lock]) -> None:
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
                await self._parts.uploads.record(Upload(chat, file.name))
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
                    await parts.uploads.record(upload)
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
                    taken = await parts.uploads.claim(upload, seconds=parts.options.upload_ttl)
                    if taken and not is_named:
                        await self._delete(upload)
            except HeldElsewhere:
                return

    async def _delete(self, upload: Upload) -> None:
        try:
            await self._parts.files.delete(upload.chat, upload.name)
        except StoreError:
            await self._parts.uploads.record(upload)
            raise
        logger.info("an upload that was not sent is deleted chat=%s", upload.chat.chat)

    async def _is_named(self, upload: Upload) -> bool:
        """Whether anything in the chat speaks of the file."""
        session = await self._parts.log.load(upload.chat)
        events = [] if session is None else session.events
        return any(upload.name in event.model_dump_json() for event in events)
