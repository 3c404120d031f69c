"""The list of a user's chats in the sessions' database."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, func, or_, select, update

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import Unknown
from sluicegate.stores.sql.pagination import encode_cursor, parse_cursor
from sluicegate.stores.sql.schema import CHATS
from sluicegate.wire.iso_times import iso_time
from sluicegate.wire.user_events import chat_deleted, chat_listed

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Executable, Insert, Select, Update

    from sluicegate.stores.sql.database import Database
    from sluicegate.stores.streams.user_events import UserEvents

_C = CHATS.c


@dataclass(frozen=True, slots=True)
class ChatEntry:
    """A chat in the list; ``updated_at`` is seconds since the epoch."""

    key: ChatKey
    title: str | None
    updated_at: float


@dataclass(frozen=True, slots=True)
class ChatPage:
    """A page of chats, newest first; ``next`` is the cursor of the next page, None at the end."""

    chats: list[ChatEntry]
    next: str | None


class ChatIndex:
    """The list of a user's chats. Every method raises StoreError when the database fails.

    Args:
        database: The database of the list.
        events: Where the changes of each user's list are published.
    """

    def __init__(self, database: Database, events: UserEvents | None = None) -> None:
        self._database = database
        self._events = events

    async def touch(self, chat: ChatKey, *, title: str | None) -> None:
        """Move the chat to the top, adding it if it is new; an existing title is kept."""
        new = self._database.insert(CHATS).values(
            **chat._asdict(), **_titles(title), updated_at=self._database.now()
        )
        await self._list(
            chat,
            new.on_conflict_do_update(
                index_elements=[_C.app, _C.user, _C.chat],
                set_={
                    "title": func.coalesce(_C.title, new.excluded.title),
                    "folded_title": func.coalesce(_C.folded_title, new.excluded.folded_title),
                    "updated_at": new.excluded.updated_at,
                },
            ),
        )

    async def page(
        self, app: str, user: str, *, limit: int, after: str | None, query: str | None
    ) -> ChatPage:
        """Return up to ``limit`` chats after the cursor ``after``, newest first.

        ``query`` matches anywhere in a title, ignoring case.

        Raises:
            Unknown: the cursor is not valid.
        """
        statement = select(CHATS).where(_C.app == app, _C.user == user)
        if after is not None:
            updated_at, chat = _parse_cursor(after)
            statement = statement.where(
                or_(_C.updated_at < updated_at, and_(_C.updated_at == updated_at, _C.chat < chat))
            )
        if query:
            statement = statement.where(_C.folded_title.contains(_fold(query), autoescape=True))
        statement = statement.order_by(_C.updated_at.desc(), _C.chat.desc()).limit(limit + 1)
        entries = await self._entries(statement)
        page = entries[:limit]
        if len(entries) <= limit:
            return ChatPage(page, None)
        return ChatPage(page, encode_cursor(page[-1].updated_at, page[-1].key.chat))

    async def get(self, chat: ChatKey) -> ChatEntry | None:
        """Return the entry of a chat."""
        entries = await self._entries(select(CHATS).where(_is(chat)))
        return entries[0] if entries else None

    async def unused_since(self, app: str, moment: ColumnElement[float]) -> list[ChatKey]:
        """Return the chats of an app, of every user, that were last used before a time."""
        statement = select(CHATS).where(_C.app == app, _C.updated_at < moment)
        return [entry.key for entry in await self._entries(statement.order_by(_C.updated_at))]

    async def rename(self, chat: ChatKey, title: str) -> bool:
        """Set the title; False when the chat does not exist. Its position stays."""
        statement = update(CHATS).where(_is(chat)).values(**_titles(title))
        return await self._list(chat, statement)

    async def delete(self, chat: ChatKey) -> bool:
        """Remove the chat from the list; False when it was absent. The ledger keeps its rows."""
        statement = delete(CHATS).where(_is(chat))
        deleted = await self._database.write(
            lambda connection: connection.execute(statement).rowcount
        )
        if deleted and self._events is not None:
            self._events.publish(chat.user, chat_deleted(chat.chat))
        return bool(deleted)

    async def _list(self, chat: ChatKey, statement: Insert | Update) -> bool:
        """Add or update an entry and publish it; False when it does not exist."""
        returning = statement.returning(CHATS)
        entries = await self._database.write(lambda connection: _entries_of(connection, returning))
        if self._events is not None:
            for entry in entries:
                listed = chat_listed(chat.chat, entry.title, iso_time(entry.updated_at))
                self._events.publish(chat.user, listed)
        return bool(entries)

    async def _entries(self, statement: Select[Any]) -> list[ChatEntry]:
        return await self._database.read(lambda connection: _entries_of(connection, statement))


def _entries_of(connection: Connection, statement: Executable) -> list[ChatEntry]:
    return [
        ChatEntry(ChatKey(row.app, row.user, row.chat), row.title, row.updated_at)
        for row in connection.execute(statement)
    ]


def _is(chat: ChatKey) -> ColumnElement[bool]:
    return and_(_C.app == chat.app, _C.user == chat.user, _C.chat == chat.chat)


def _titles(title: str | None) -> dict[str, str | None]:
    return {"title": title, "folded_title": None if title is None else _fold(title)}


def _fold(text: str) -> str:
    """Fold letter case and the composed and decomposed forms of accents for comparison."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _parse_cursor(text: str) -> tuple[float, str]:
    position = parse_cursor(text, 1)
    if position is None:
        raise Unknown("This page of chats cannot be found; load the list again from its start.")
    return position[0], position[1][0]
