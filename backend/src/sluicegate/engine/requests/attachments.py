"""What a user attaches to a message, on its way into the session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from google.genai import types

if TYPE_CHECKING:
    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.files.chat_files import ChatFiles
    from sluicegate.wire.files import FilePart
    from sluicegate.wire.requests import UserMessage
    from sluicegate.wire.stored_files import StoredFile


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
