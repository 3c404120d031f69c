"""The leases of a process that is alone on its database: they live and die with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import Integer, Text, cast

from sluicegate.stores.leases.base import LeaseState
from sluicegate.stores.sql.schema import META

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import Connection

    from sluicegate.core.keys import ChatKey
    from sluicegate.stores.sql.database import Database

KEPT: Final = 10_000
"""Ended leases whose fences are remembered one by one."""

_TERM: Final = 2**32
"""More fences than one process gives."""


@dataclass(slots=True)
class _Lease:
    owner: str
    fence: int
    until: float
    wants_stop: bool = False
    read_until: float = 0.0


class ProcessLeases:
    """One writer per chat (the port is `Leases`), where no other process can ask for one.

    The lock on the database's file does between processes what rows of leases would do.
    """

    def __init__(self, clock: Callable[[], float], *, after: int = 0) -> None:
        """Take a clock in seconds, and the fence that was the highest before."""
        self._clock = clock
        self._floor = after
        self._leases: dict[ChatKey, _Lease] = {}
        self._ended: dict[ChatKey, int] = {}

    @classmethod
    async def open(cls, database: Database, clock: Callable[[], float]) -> ProcessLeases:
        """Begin above every fence that was given on this database before.

        A stream server that outlives the process refuses fences that fall.
        """
        first = database.insert(META).values(name="term", value="1")
        value = cast(cast(META.c.value, Integer) + 1, Text)
        statement = first.on_conflict_do_update(index_elements=["name"], set_={"value": value})

        def begin(connection: Connection) -> int:
            return int(connection.scalar(statement.returning(META.c.value)) or 0)

        return cls(clock, after=await database.write(begin) * _TERM)

    async def acquire(self, chat: ChatKey, *, owner: str, ttl: float) -> int | None:
        """Take the lease and return its fence; None while it is held."""
        if self._held(chat) is not None:
            return None
        fence = self._fence(chat) + 1
        self._ended.pop(chat, None)
        self._leases[chat] = _Lease(owner, fence, self._clock() + ttl)
        return fence

    async def renew(self, chat: ChatKey, *, owner: str, fence: int, ttl: float) -> bool:
        """Hold for another ``ttl`` from now; False when the lease is lost."""
        lease = self._held(chat)
        if lease is None or (lease.owner, lease.fence) != (owner, fence):
            return False
        lease.until = self._clock() + ttl
        return True

    async def release(self, chat: ChatKey, *, owner: str, fence: int) -> None:
        """Give the lease back; nothing happens when it is lost already."""
        lease = self._leases.get(chat)
        if lease is not None and (lease.owner, lease.fence) == (owner, fence):
            self._end(chat)

    async def state(self, chat: ChatKey) -> LeaseState:
        """Return the lease as it is now."""
        lease = self._held(chat)
        if lease is None:
            return LeaseState(self._fence(chat))
        is_read = lease.read_until > self._clock()
        return LeaseState(lease.fence, lease.owner, lease.wants_stop, is_read)

    async def states(self, chats: Collection[ChatKey]) -> dict[ChatKey, LeaseState]:
        """Return the leases of several chats, each of which is there."""
        return {chat: await self.state(chat) for chat in chats}

    async def request_stop(self, chat: ChatKey, *, fence: int) -> None:
        """Ask the holder with this fence to stop what it runs."""
        self._want_stop(chat, fence, is_wanted=True)

    async def clear_stop_request(self, chat: ChatKey, *, fence: int) -> None:
        """Tell those who asked that it was done."""
        self._want_stop(chat, fence, is_wanted=False)

    async def record_reader(self, chat: ChatKey, *, fence: int, ttl: float) -> None:
        """Tell the holder with this fence that somebody reads along."""
        lease = self._leases.get(chat)
        if lease is not None and lease.fence == fence:
            lease.read_until = self._clock() + ttl

    def _held(self, chat: ChatKey) -> _Lease | None:
        lease = self._leases.get(chat)
        return None if lease is None or lease.until <= self._clock() else lease

    def _fence(self, chat: ChatKey) -> int:
        """The highest fence that the chat may have had."""
        lease = self._leases.get(chat)
        return self._ended.get(chat, self._floor) if lease is None else lease.fence

    def _end(self, chat: ChatKey) -> None:
        self._ended[chat] = self._leases.pop(chat).fence
        if len(self._ended) > KEPT:
            oldest = next(iter(self._ended))
            self._floor = max(self._floor, self._ended.pop(oldest))

    def _want_stop(self, chat: ChatKey, fence: int, *, is_wanted: bool) -> None:
        lease = self._leases.get(chat)
        if lease is not None and lease.fence == fence:
            lease.wants_stop = is_wanted
