"""Stored chats: listed, shown with all messages, renamed and deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluicegate.core.exchanges import earlier_version
from sluicegate.core.history import assistant_message, user_message
from sluicegate.errors import TurnRunning, Unknown
from sluicegate.wire.iso_times import iso_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.plan import ChatLog
    from sluicegate.engine.load_chat_log import ChatLogs
    from sluicegate.engine.turn.chat_leases import ChatLeases
    from sluicegate.engine.turn.remote_turns import Replicas
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.media.model_wrapper import ModelFiles
    from sluicegate.stores.approvals.grants import Grants
    from sluicegate.stores.chats import ChatIndex
    from sluicegate.stores.upload_records import Uploads
    from sluicegate.wire.ui_messages import UIMessage


@dataclass(frozen=True, slots=True)
class StoredChats:
    """The stored chats of an app."""

    app: str
    chats: ChatIndex
    logs: ChatLogs
    replicas: Replicas
    leases: ChatLeases
    files: ChatFiles
    models: ModelFiles
    uploads: Uploads
    grants: Grants

    async def list(
        self, user: str, *, limit: int, after: str | None, query: str | None
    ) -> dict[str, Any]:
        """``{chats: [{id, title, updatedAt, pendingApprovals, status}], next}``, newest first."""
        page = await self.chats.page(self.app, user, limit=limit, after=after, query=query)
        pending = await self.logs.ledger.count_pending(self.app, user)
        remote = await self.replicas.running_remotely([entry.key for entry in page.chats])
        chats = [
            {
                "id": entry.key.chat,
                "title": entry.title,
                "updatedAt": iso_time(entry.updated_at),
                "pendingApprovals": pending.get(entry.key.chat, 0),
                "status": _status(
                    is_running=entry.key in remote
                    or self.logs.turns.running(entry.key) is not None,
                    is_waiting=entry.key.chat in pending,
                ),
            }
            for entry in page.chats
        ]
        return {"chats": chats, "next": page.next}

    async def get(self, chat: ChatKey) -> dict[str, Any]:
        """``{id, title, messages, status}``; raises Unknown."""
        entry = await self.chats.get(chat)
        if entry is None:
            raise Unknown("There is no such chat.")
        location = await self.replicas.locate(chat)
        log = await self.logs.load(chat, location)
        rebuilt = [log.rebuild(exchange) for exchange in log.exchanges]
        running = self.logs.turns.running(chat) is not None
        if location.remote is not None and rebuilt:
            running = location.remote.is_running(rebuilt[-1].exchange.message_id, last=True)
        waiting = bool(rebuilt) and rebuilt[-1].is_waiting
        status = _status(is_running=running, is_waiting=waiting)
        if status == "ready" and rebuilt and rebuilt[-1].is_abandoned:
            status = "interrupted"
        messages = _messages(log, rebuilt, self.logs.options.files_url_of(chat.chat))
        return {"id": chat.chat, "title": entry.title, "messages": messages, "status": status}

    async def get_version(self, chat: ChatKey, message_id: str, version: int) -> dict[str, Any]:
        """What an earlier version of an answer had in place of it and of all that follows.

        Returns ``{version, messages}``; raises Unknown.
        """
        if await self.chats.get(chat) is None:
            raise Unknown("There is no such chat.")
        log = await self.logs.load(chat)
        replaced = earlier_version(log.exchanges, message_id, version)
        if replaced is None:
            raise Unknown("There is no such version of this message.")
        rebuilt = [log.rebuild(exchange) for exchange in replaced]
        messages = _messages(log, rebuilt, self.logs.options.files_url_of(chat.chat))
        return {"version": version, "messages": messages}

    async def rename(self, chat: ChatKey, title: str) -> None:
        """Set the title; raises Unknown."""
        if not await self.chats.rename(chat, title):
            raise Unknown("There is no such chat.")

    async def delete(self, chat: ChatKey) -> None:
        """Delete a chat; the caller holds the lock of its requests.

        The decisions stay in the ledger, without what they were about.

        Raises:
            Unknown: no such chat of this user.
            TurnRunning: it is being answered, or open live.
        """
        turns = self.logs.turns
        location = await self.replicas.locate(chat)
        if turns.running(chat) is not None or location.remote is not None:
            raise TurnRunning("This chat is still being answered; wait or stop it first.")
        if turns.chat_owners.of(chat) is not None:
            raise TurnRunning("This chat is open live; close it there first.")
        async with self.leases.acquired(chat, after=location.fence):
            if not await self.chats.delete(chat):
                raise Unknown("There is no such chat.")
            await self.logs.session_log.delete(chat)
            await self.models.delete_uploads(chat)
            await self.files.delete_all(chat)
            await self.uploads.delete_all(chat)
            await self.grants.delete_all(chat)
            ledger = self.logs.ledger
            rows = await ledger.rows(chat)
            await ledger.supersede([row.key for row in rows])
            await ledger.erase_details(chat)


def _messages(log: ChatLog, rebuilt: Sequence[RebuiltExchange], files_url: str) -> list[UIMessage]:
    messages: list[UIMessage] = []
    for exchange in rebuilt:
        message = user_message(exchange.exchange, files_url=files_url)
        if message is not None:
            messages.append(message)
        messages.append(assistant_message(exchange, log.rows))
    return messages


def _status(*, is_running: bool, is_waiting: bool) -> str:
    return "running" if is_running else "waiting" if is_waiting else "ready"
