"""The list of chats in the sessions' database."""

from __future__ import annotations

import unicodedata
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, func, or_, select, update

from sluicegate.core.keys import ChatKey
from sluicegate.errors import Malformed
from sluicegate.stores.base import ChatEntry, ChatPage
from sluicegate.stores.sql.pagination import cursor, read_cursor
from sluicegate.stores.sql.schema import CHATS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Row, Select, UpdateBase

    from sluicegate.stores.sql.database import Database

_C = CHATS.c


class DatabaseChats:
    """The list of a user's chats (the port is `Chats`)."""

    def __init__(self, database: Database) -> None:
        """Take the database whose tables are there."""
        self._database = database

    async def touch(self, chat: ChatKey, *, title: str | None) -> None:
        """Put the chat on top, adding it if it is new; a title that is there stays."""
        new = self._database.insert(CHATS).values(
            **chat._asdict(), **_titled(title), updated_at=self._database.now()
        )
        statement = new.on_conflict_do_update(
            index_elements=[_C.app, _C.user, _C.chat],
            set_={
                "title": func.coalesce(_C.title, new.excluded.title),
                "folded_title": func.coalesce(_C.folded_title, new.excluded.folded_title),
                "updated_at": new.excluded.updated_at,
            },
        )
        await self._database.write(partial(_rows_changed, by=statement))

    async def page(
        self, app: str, user: str, *, limit: int, after: str | None, query: str | None
    ) -> ChatPage:
        """Return up to ``limit`` chats behind the cursor ``after``, newest first.

        Raises:
            Malformed: the cursor is none of ours.
        """
        statement = select(CHATS).where(_C.app == app, _C.user == user)
        if after is not None:
            updated_at, chat = _read_cursor(after)
            statement = statement.where(
                or_(_C.updated_at < updated_at, and_(_C.updated_at == updated_at, _C.chat < chat))
            )
        if query:
            statement = statement.where(_C.folded_title.contains(_fold(query), autoescape=True))
        statement = statement.order_by(_C.updated_at.desc(), _C.chat.desc()).limit(limit + 1)
        entries = await self._database.read(partial(_entries, by=statement))
        shown = entries[:limit]
        return ChatPage(shown, _cursor(shown[-1]) if len(entries) > limit else None)

    async def get(self, chat: ChatKey) -> ChatEntry | None:
        """Return the entry of a chat."""
        found = await self._database.read(partial(_entries, by=select(CHATS).where(_is(chat))))
        return found[0] if found else None

    async def rename(self, chat: ChatKey, title: str) -> bool:
        """Set the title; False when there is no such chat."""
        statement = update(CHATS).where(_is(chat)).values(**_titled(title))
        return bool(await self._database.write(partial(_rows_changed, by=statement)))

    async def delete(self, chat: ChatKey) -> bool:
        """Take the chat out of the list; False when it was not there."""
        statement = delete(CHATS).where(_is(chat))
        return bool(await self._database.write(partial(_rows_changed, by=statement)))


def _rows_changed(connection: Connection, by: UpdateBase) -> int:
    return connection.execute(by).rowcount


def _entries(connection: Connection, by: Select[Any]) -> list[ChatEntry]:
    return [_entry(row) for row in connection.execute(by)]


def _is(chat: ChatKey) -> ColumnElement[bool]:
    return and_(_C.app == chat.app, _C.user == chat.user, _C.chat == chat.chat)


def _titled(title: str | None) -> dict[str, str | None]:
    return {"title": title, "folded_title": None if title is None else _fold(title)}


def _fold(text: str) -> str:
    """Return the text as it is compared: letter cases and ways to write an accent are one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _entry(row: Row[Any]) -> ChatEntry:
    values = row._mapping
    key = ChatKey(values["app"], values["user"], values["chat"])
    return ChatEntry(key, values["title"], values["updated_at"])


def _cursor(entry: ChatEntry) -> str:
    return cursor(entry.updated_at, entry.key.chat)


def _read_cursor(text: str) -> tuple[float, str]:
    place = read_cursor(text, 1)
    if place is None:
        raise Malformed("This page of chats cannot be found; load the list again from its start.")
    return place[0], place[1][0]
