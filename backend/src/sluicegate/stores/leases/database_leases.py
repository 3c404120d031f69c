"""The leases of the chats in the sessions' database (A2)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, select, tuple_, update
from sqlalchemy.types import BigInteger, Double, Text

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.stores.leases.base import LeaseState
from sluicegate.stores.sql.database import INSERTS
from sluicegate.stores.sql.database_clock import NOW
from sluicegate.stores.sql.schema import LEASES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from sqlalchemy import Connection, Executable

    from sluicegate.stores.sql.compiled_statements import CompiledStatement
    from sluicegate.stores.sql.database import Database

_C = LEASES.c
_KEY: Final = (_C.app, _C.user, _C.chat)
_OF_CHAT = and_(*(column == bindparam(f"its_{column.name}") for column in _KEY))
_FENCED = and_(_OF_CHAT, _C.fence == bindparam("its_fence", type_=BigInteger))
_HELD = and_(_FENCED, _C.owner == bindparam("its_owner", type_=Text))
_UNTIL = NOW + bindparam("ttl", type_=Double)

_RENEW: Final = update(LEASES).where(_HELD, _C.until > NOW).values(until=_UNTIL).returning(_C.fence)
_RELEASE: Final = update(LEASES).where(_HELD).values(until=0.0)
_REQUEST_STOP: Final = update(LEASES).where(_FENCED).values(wants_stop=True)
_CLEAR_STOP_REQUEST: Final = update(LEASES).where(_FENCED).values(wants_stop=None)
_REQUEST_RELEASE: Final = update(LEASES).where(_FENCED).values(wants_release=True)
_RECORD_READER: Final = update(LEASES).where(_FENCED).values(read_until=_UNTIL)
_STATES: Final = select(
    LEASES, (_C.until > NOW).label("is_held"), (_C.read_until > NOW).label("is_read")
)
_STATE: Final = _STATES.where(_OF_CHAT)


@cache
def _acquire(dialect: str) -> Executable:
    new = INSERTS[dialect](LEASES).values(
        **{column.name: bindparam(f"its_{column.name}") for column in _KEY},
        owner=bindparam("its_owner"),
        fence=1,
        until=_UNTIL,
    )
    return new.on_conflict_do_update(
        index_elements=list(_KEY),
        set_={
            "owner": new.excluded.owner,
            "fence": _C.fence + 1,
            "until": new.excluded.until,
            "wants_stop": None,
            "read_until": None,
            "wants_release": None,
        },
        where=_C.until <= NOW,
    ).returning(_C.fence)


class DatabaseLeases:
    """Leases that several processes share (implements `Leases`).

    A row stays when its lease has ended, so that the fence of a chat never falls.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._acquire = database.prepare(_acquire(database.sessions.dialect.name))
        self._renew = database.prepare(_RENEW)
        self._release = database.prepare(_RELEASE)
        self._request_stop = database.prepare(_REQUEST_STOP)
        self._clear_stop_request = database.prepare(_CLEAR_STOP_REQUEST)
        self._request_release = database.prepare(_REQUEST_RELEASE)
        self._record_reader = database.prepare(_RECORD_READER)
        self._state = database.prepare(_STATE)

    async def acquire(self, chat: ChatKey, *, owner: str, ttl: float) -> int | None:
        """Acquire the lease and return its fence; None while it is held."""
        values = {**_key_values(chat), "its_owner": owner, "ttl": ttl}
        rows = await self._database.execute(self._acquire, values)
        return rows[0]["fence"] if rows else None

    async def renew(self, chat: ChatKey, *, owner: str, fence: int, ttl: float) -> bool:
        """Extend the lease to ``ttl`` seconds from now; False when it is lost."""
        return bool(await self._execute(self._renew, chat, fence, its_owner=owner, ttl=ttl))

    async def release(self, chat: ChatKey, *, owner: str, fence: int) -> None:
        """Release the lease, also when the caller is cancelled; a lost lease is ignored."""
        values = {**_key_values(chat), "its_fence": fence, "its_owner": owner}
        await self._database.execute(self._release, values, shielded=True)

    async def state(self, chat: ChatKey) -> LeaseState:
        """Return the current state of a lease."""
        rows = await self._database.fetch(self._state, _key_values(chat))
        return _state(rows[0]) if rows else LeaseState()

    async def states(self, chats: Collection[ChatKey]) -> dict[ChatKey, LeaseState]:
        """Return the current states of several leases, with an entry for each chat."""
        statement = _STATES.where(tuple_(*_KEY).in_(list(chats)))

        def read(connection: Connection) -> dict[ChatKey, LeaseState]:
            rows = connection.execute(statement, self._database.clock_values())
            return {ChatKey(row.app, row.user, row.chat): _state(row._asdict()) for row in rows}

        states = await self._database.read(read) if chats else {}
        return {chat: states.get(chat, LeaseState()) for chat in chats}

    async def request_stop(self, chat: ChatKey, *, fence: int) -> None:
        """Ask the owner with this fence to stop its turn."""
        await self._execute(self._request_stop, chat, fence)

    async def clear_stop_request(self, chat: ChatKey, *, fence: int) -> None:
        """Acknowledge a stop request after the turn has stopped."""
        await self._execute(self._clear_stop_request, chat, fence)

    async def record_reader(self, chat: ChatKey, *, fence: int, ttl: float) -> None:
        """Record for the owner with this fence that a replica reads."""
        await self._execute(self._record_reader, chat, fence, ttl=ttl)

    async def request_release(self, chat: ChatKey, *, fence: int) -> None:
        """Ask the owner with this fence to release the chat."""
        await self._execute(self._request_release, chat, fence)

    async def _execute(
        self, prepared: CompiledStatement, chat: ChatKey, fence: int, **values: str | float
    ) -> bool:
        bound = {**_key_values(chat), "its_fence": fence, **values}
        return bool(await self._database.execute(prepared, bound))


def _key_values(chat: ChatKey) -> dict[str, Any]:
    return {f"its_{name}": value for name, value in chat._asdict().items()}


def _state(row: Mapping[str, Any]) -> LeaseState:
    is_held = row["is_held"]
    return LeaseState(
        fence=row["fence"],
        owner=row["owner"] if is_held else None,
        stop_requested=bool(is_held and row["wants_stop"]),
        has_remote_readers=bool(is_held and row["is_read"]),
        release_requested=bool(is_held and row["wants_release"]),
    )
