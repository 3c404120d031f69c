"""Files of a user's message: checked, stored and referred to by the content that ADK gets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from google.genai import types

from sluicegate.stores.upload_records import Upload

if TYPE_CHECKING:
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.files.upload_quotas import UploadQuotas
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.stores.upload_records import Uploads
    from sluicegate.wire.file_parts import FilePart
    from sluicegate.wire.requests import UserMessage


async def user_content(
    files: ChatFiles, chat: ChatKey, message: UserMessage, limits: UploadQuotas, uploads: Uploads
) -> types.Content:
    """A user's message: files first, then its text.

    Raises:
        RequestError: a file cannot be taken, or is not of this chat.
    """
    await limits.take(chat, [len(file.data) for file in message.files if file.data is not None])
    for file in message.files:
        if file.data is not None:
            files.check(file.data, file.media_type)
        else:
            await files.find(chat, stored_name(file.url or ""))
    parts = [await _part(files, chat, file, uploads) for file in message.files]
    parts.extend(types.Part(text=text) for text in message.texts)
    return types.Content(role="user", parts=parts)


async def _part(files: ChatFiles, chat: ChatKey, file: FilePart, uploads: Uploads) -> types.Part:
    if file.data is not None:
        stored = await files.attach(chat, file.data, file.media_type, file.filename)
        await uploads.record(Upload(chat, stored.name), size=stored.size, is_kept=True)
    else:
        stored = await files.find(chat, stored_name(file.url or ""))
        stored = replace(stored, title=file.filename or stored.title)
    data = types.FileData(file_uri=stored.uri, mime_type=stored.media_type)
    return types.Part(file_data=data)


def stored_name(url: str) -> str:
    """The last segment of a file's URL."""
    return unquote(url.rpartition("/")[2])
