"""The events of ``GET /events``: what has changed for a user, without any contents but titles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from pydantic import JsonValue

UserEvent: TypeAlias = Mapping[str, "JsonValue"]
"""An event as JSON; a stream identifies it by an id of its own."""

ChatStatus: TypeAlias = Literal["ready", "running", "waiting"]
"""The status of a chat, as ``GET /chats/{id}`` has it."""

READY: Final[UserEvent] = {"type": "ready"}
"""The first event of a connection that misses nothing: what follows is everything from here on."""

RESET: Final[UserEvent] = {"type": "reset"}
"""Events may be missing; the client loads everything again."""


def chat_status(chat: str, status: ChatStatus) -> UserEvent:
    """A chat runs, waits for its user, or does neither."""
    return {"type": "chat", "chatId": chat, "status": status}


def chat_listed(chat: str, title: str | None, updated_at: str) -> UserEvent:
    """A chat has a new place or a new title in the list of chats, or is new in it."""
    return {"type": "chat", "chatId": chat, "title": title, "updatedAt": updated_at}


def chat_deleted(chat: str) -> UserEvent:
    """A chat was deleted."""
    return {"type": "chat.deleted", "chatId": chat}


def approval_changed(chat: str, approval: str, tool: str, state: str) -> UserEvent:
    """An approval was requested, decided or closed, or its call has begun or ended."""
    return {
        "type": "approval",
        "chatId": chat,
        "approvalId": approval,
        "tool": tool,
        "state": state,
    }


def message_stored(chat: str, message: str) -> UserEvent:
    """A user's message was accepted, or a turn of an assistant's message has ended."""
    return {"type": "message", "chatId": chat, "messageId": message}


def session_ended(digest: str) -> UserEvent:
    """A session in a cookie has ended; between processes only."""
    return {"type": "session.ended", "session": digest}


def encode_user_event(event: UserEvent) -> str:
    """Return the JSON of an event, on one line."""
    return json.dumps(event, separators=(",", ":"))
