"""What is told of stored chats: the list of them, and one with all its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.core.history import assistant_message, user_message
from sluicegate.engine.parts import moment
from sluicegate.errors import Unknown

if TYPE_CHECKING:
    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.parts import EngineParts
    from sluicegate.wire.messages import UIMessage


async def list_of_chats(
    parts: EngineParts, user: str, *, limit: int, after: str | None, query: str | None
) -> dict[str, Any]:
    """``{chats: [{id, title, updatedAt, pendingApprovals}], next}``, newest first."""
    page = await parts.chats.page(parts.app, user, limit=limit, after=after, query=query)
    pending = await parts.ledger.pending(parts.app, user)
    chats = [
        {
            "id": entry.key.chat,
            "title": entry.title,
            "updatedAt": moment(entry.updated_at),
            "pendingApprovals": pending.get(entry.key.chat, 0),
        }
        for entry in page.chats
    ]
    return {"chats": chats, "next": page.next}


async def whole_chat(parts: EngineParts, chat: ChatKey) -> dict[str, Any]:
    """``{id, title, messages, status}``; raises Unknown when there is no such chat."""
    entry = await parts.chats.get(chat)
    if entry is None:
        raise Unknown("There is no such chat.")
    place = await parts.elsewhere.place(chat)
    log = await parts.chat_log(chat, place)
    rebuilt = [log.rebuild(exchange) for exchange in log.exchanges]
    running = parts.turns.running(chat) is not None
    if place.away is not None and rebuilt:
        running = place.away.is_running(rebuilt[-1].exchange.message_id, last=True)
    waiting = bool(rebuilt) and rebuilt[-1].is_waiting
    status = "running" if running else "waiting" if waiting else "ready"
    files_url = parts.files_url(chat)
    messages: list[UIMessage] = []
    for exchange in rebuilt:
        question = user_message(exchange.exchange, files_url=files_url)
        if question is not None:
            messages.append(question)
        messages.append(assistant_message(exchange, log.rows))
    return {"id": chat.chat, "title": entry.title, "messages": messages, "status": status}
