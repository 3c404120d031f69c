"""The leases of the chats in the sessions' database (A2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import and_, select, tuple_, update

from sluicegate.core.keys import ChatKey
from sluicegate.stores.lease_port import LeaseState
from sluicegate.stores.schema import LEASES

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import ColumnElement, Connection, Update

    from sluicegate.stores.database import Database

_C = LEASES.c


class DatabaseLeases:
    """One writer per chat (the port is `Leases`).

    A row stays when its lease has ended, so that the fence of a chat never falls.
    """

    def __init__(self, database: Database) -> None:
        """Take the database whose tables are there."""
        self._database = database

    async def acquire(self, chat: ChatKey, *, owner: str, ttl: float) -> int | None:
        """Take the lease and return its fence; None while it is held."""
        now = self._database.now()
        first = self._database.insert(LEASES).values(
            **chat._asdict(), owner=owner, fence=1, until=now + ttl
        )
        statement = first.on_conflict_do_update(
            index_elements=[_C.app, _C.user, _C.chat],
            set_={
                "owner": owner,
                "fence": _C.fence + 1,
                "until": now + ttl,
                "wants_stop": None,
                "read_until": None,
            },
            where=_C.until <= now,
        ).returning(_C.fence)
        return await self._database.write(
            lambda connection: connection.scalar(statement), is_passing=True
        )

    async def renew(self, chat: ChatKey, *, owner: str, fence: int, ttl: float) -> bool:
        """Hold for another ``ttl`` from now; False when the lease is lost."""
        now = self._database.now()
        statement = _held_by(chat, owner, fence).where(_C.until > now).values(until=now + ttl)
        return bool(await self._write(statement))

    async def release(self, chat: ChatKey, *, owner: str, fence: int) -> None:
        """Give the lease back; nothing happens when it is lost already."""
        statement = _held_by(chat, owner, fence).values(until=0.0)
        await self._write(statement, is_lasting=True)

    async def state(self, chat: ChatKey) -> LeaseState:
        """Return the lease as it is now."""
        return (await self.states([chat]))[chat]

    async def states(self, chats: Collection[ChatKey]) -> dict[ChatKey, LeaseState]:
        """Return the leases of several chats, each of which is there."""
        now = self._database.now()
        is_held = (_C.until > now).label("is_held")
        is_read = (_C.read_until > now).label("is_read")
        names = tuple_(_C.app, _C.user, _C.chat)
        statement = select(LEASES, is_held, is_read).where(names.in_(list(chats)))

        def find(connection: Connection) -> dict[ChatKey, LeaseState]:
            return {
                ChatKey(row.app, row.user, row.chat): LeaseState(
                    row.fence,
                    row.owner if row.is_held else None,
                    bool(row.is_held and row.wants_stop),
                    bool(row.is_held and row.is_read),
                )
                for row in connection.execute(statement)
            }

        found = await self._database.read(find) if chats else {}
        return {chat: found.get(chat, LeaseState()) for chat in chats}

    async def ask_to_stop(self, chat: ChatKey, *, fence: int) -> None:
        """Ask the holder with this fence to stop what it runs."""
        statement = update(LEASES).where(_of(chat), _C.fence == fence).values(wants_stop=True)
        await self._write(statement)

    async def has_stopped(self, chat: ChatKey, *, fence: int) -> None:
        """Tell those who asked that it was done."""
        statement = update(LEASES).where(_of(chat), _C.fence == fence).values(wants_stop=None)
        await self._write(statement)

    async def note_reader(self, chat: ChatKey, *, fence: int, ttl: float) -> None:
        """Tell the holder with this fence that somebody reads along."""
        until = self._database.now() + ttl
        statement = update(LEASES).where(_of(chat), _C.fence == fence).values(read_until=until)
        await self._write(statement)

    async def void_all(self) -> None:
        """End every lease."""
        statement = update(LEASES).values(until=0.0)
        await self._write(statement)

    async def _write(self, statement: Update, *, is_lasting: bool = False) -> int:
        work = partial(_rows_changed, by=statement)
        return await self._database.write(work, is_lasting=is_lasting, is_passing=True)


def _rows_changed(connection: Connection, by: Update) -> int:
    return connection.execute(by).rowcount


def _held_by(chat: ChatKey, owner: str, fence: int) -> Update:
    return update(LEASES).where(_of(chat), _C.owner == owner, _C.fence == fence)


def _of(chat: ChatKey) -> ColumnElement[bool]:
    return and_(_C.app == chat.app, _C.user == chat.user, _C.chat == chat.chat)
