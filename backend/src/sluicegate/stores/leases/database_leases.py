"""The leases of the chats in the sessions' database (A2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, select, tuple_, update
from sqlalchemy.types import BigInteger, Double, Text

from sluicegate.core.keys import ChatKey
from sluicegate.stores.leases.base import LeaseState
from sluicegate.stores.sql.schema import LEASES, NOW

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import Connection

    from sluicegate.stores.sql.database import Database
    from sluicegate.stores.sql.prepared import PreparedStatement

_C = LEASES.c
_KEY: Final = (_C.app, _C.user, _C.chat)
_OF_CHAT = and_(*(column == bindparam(f"its_{column.name}") for column in _KEY))
_FENCED = and_(_OF_CHAT, _C.fence == bindparam("its_fence", type_=BigInteger))
_HELD = and_(_FENCED, _C.owner == bindparam("its_owner", type_=Text))
_UNTIL = NOW + bindparam("ttl", type_=Double)

_RENEW: Final = update(LEASES).where(_HELD, _C.until > NOW).values(until=_UNTIL)
_RELEASE: Final = update(LEASES).where(_HELD).values(until=0.0)
_ASK_TO_STOP: Final = update(LEASES).where(_FENCED).values(wants_stop=True)
_HAS_STOPPED: Final = update(LEASES).where(_FENCED).values(wants_stop=None)
_NOTE_READER: Final = update(LEASES).where(_FENCED).values(read_until=_UNTIL)
_STATES: Final = select(
    LEASES, (_C.until > NOW).label("is_held"), (_C.read_until > NOW).label("is_read")
)


class DatabaseLeases:
    """One writer per chat (the port is `Leases`).

    A row stays when its lease has ended, so that the fence of a chat never falls.
    """

    def __init__(self, database: Database) -> None:
        """Take the database whose tables are there."""
        self._database = database
        first = database.insert(LEASES).values(
            **{column.name: bindparam(f"its_{column.name}") for column in _KEY},
            owner=bindparam("its_owner"),
            fence=1,
            until=_UNTIL,
        )
        again = first.on_conflict_do_update(
            index_elements=list(_KEY),
            set_={
                "owner": first.excluded.owner,
                "fence": _C.fence + 1,
                "until": first.excluded.until,
                "wants_stop": None,
                "read_until": None,
            },
            where=_C.until <= NOW,
        )
        self._acquire = database.prepare(again.returning(_C.fence))
        self._renew = database.prepare(_RENEW.returning(_C.fence))
        self._release = database.prepare(_RELEASE)
        self._ask_to_stop = database.prepare(_ASK_TO_STOP)
        self._has_stopped = database.prepare(_HAS_STOPPED)
        self._note_reader = database.prepare(_NOTE_READER)
        self._state = database.prepare(_STATES.where(_OF_CHAT))

    async def acquire(self, chat: ChatKey, *, owner: str, ttl: float) -> int | None:
        """Take the lease and return its fence; None while it is held."""
        values = {**_of(chat), "its_owner": owner, "ttl": ttl}
        rows = await self._database.execute(self._acquire, values)
        return rows[0]["fence"] if rows else None

    async def renew(self, chat: ChatKey, *, owner: str, fence: int, ttl: float) -> bool:
        """Hold for another ``ttl`` from now; False when the lease is lost."""
        return bool(await self._change(self._renew, chat, fence, its_owner=owner, ttl=ttl))

    async def release(self, chat: ChatKey, *, owner: str, fence: int) -> None:
        """Give the lease back; nothing happens when it is lost already."""
        values = {**_of(chat), "its_fence": fence, "its_owner": owner}
        await self._database.execute(self._release, values, is_lasting=True)

    async def state(self, chat: ChatKey) -> LeaseState:
        """Return the lease as it is now."""
        rows = await self._database.fetch(self._state, _of(chat))
        return _state(rows[0]) if rows else LeaseState()

    async def states(self, chats: Collection[ChatKey]) -> dict[ChatKey, LeaseState]:
        """Return the leases of several chats, each of which is there."""
        statement = _STATES.where(tuple_(*_KEY).in_(list(chats)))

        def find(connection: Connection) -> dict[ChatKey, LeaseState]:
            rows = connection.execute(statement, self._database.clock())
            return {ChatKey(row.app, row.user, row.chat): _state(row._asdict()) for row in rows}

        found = await self._database.read(find) if chats else {}
        return {chat: found.get(chat, LeaseState()) for chat in chats}

    async def request_stop(self, chat: ChatKey, *, fence: int) -> None:
        """Ask the holder with this fence to stop what it runs."""
        await self._change(self._ask_to_stop, chat, fence)

    async def clear_stop_request(self, chat: ChatKey, *, fence: int) -> None:
        """Tell those who asked that it was done."""
        await self._change(self._has_stopped, chat, fence)

    async def record_reader(self, chat: ChatKey, *, fence: int, ttl: float) -> None:
        """Tell the holder with this fence that somebody reads along."""
        await self._change(self._note_reader, chat, fence, ttl=ttl)

    async def _change(
        self, change: PreparedStatement, chat: ChatKey, fence: int, **values: str | float
    ) -> bool:
        bound = {**_of(chat), "its_fence": fence, **values}
        return bool(await self._database.execute(change, bound))


def _of(chat: ChatKey) -> dict[str, Any]:
    return {f"its_{name}": value for name, value in chat._asdict().items()}


def _state(row: Mapping[str, Any]) -> LeaseState:
    is_held = row["is_held"]
    return LeaseState(
        row["fence"],
        row["owner"] if is_held else None,
        bool(is_held and row["wants_stop"]),
        bool(is_held and row["is_read"]),
    )
