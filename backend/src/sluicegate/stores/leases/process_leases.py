"""The leases of a process that uses its database alone: they live in its memory (A2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import Integer, Text, cast

from sluicegate.stores.leases.base import LeaseState
from sluicegate.stores.sql.schema import META

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import Connection

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.stores.sql.database import Database

_TERM: Final = 2**32
"""More fences than one process assigns."""


@dataclass(slots=True)
class _Lease:
    owner: str
    fence: int
    until: float
    stop_requested: bool = False
    read_until: float = 0.0
    release_requested: bool = False


class ProcessLeases:
    """Leases that no other process can request (implements `Leases`).

    The lock on the database's file excludes other processes, as rows of leases would.

    Args:
        clock: Returns the time in seconds.
        after: The highest fence that was assigned before.
        max_ended: How many ended leases keep a fence of their own; older ones share the highest.
    """

    def __init__(
        self, clock: Callable[[], float], *, after: int = 0, max_ended: int = 10_000
    ) -> None:
        self._clock = clock
        self._lowest_fence = after
        self._max_ended = max_ended
        self._leases: dict[ChatKey, _Lease] = {}
        self._ended: dict[ChatKey, int] = {}

    @classmethod
    async def open(cls, database: Database, clock: Callable[[], float]) -> ProcessLeases:
        """Begin above every fence that was assigned on this database before.

        A stream server that outlives the process refuses lower fences.
        """
        first = database.insert(META).values(name="term", value="1")
        value = cast(cast(META.c.value, Integer) + 1, Text)
        statement = first.on_conflict_do_update(index_elements=["name"], set_={"value": value})

        def begin(connection: Connection) -> int:
            return int(connection.scalar(statement.returning(META.c.value)) or 0)

        return cls(clock, after=await database.write(begin) * _TERM)

    async def acquire(self, chat: ChatKey, *, owner: str, ttl: float) -> int | None:
        """Acquire the lease and return its fence; None while it is held."""
        if self._held(chat) is not None:
            return None
        fence = self._newest_fence(chat) + 1
        self._ended.pop(chat, None)
        self._leases[chat] = _Lease(owner, fence, self._clock() + ttl)
        return fence

    async def renew(self, chat: ChatKey, *, owner: str, fence: int, ttl: float) -> bool:
        """Extend the lease to ``ttl`` seconds from now; False when it is lost."""
        lease = self._held(chat)
        if lease is None or (lease.owner, lease.fence) != (owner, fence):
            return False
        lease.until = self._clock() + ttl
        return True

    async def release(self, chat: ChatKey, *, owner: str, fence: int) -> None:
        """Release the lease; a lost lease is ignored."""
        lease = self._leases.get(chat)
        if lease is None or (lease.owner, lease.fence) != (owner, fence):
            return
        self._ended[chat] = self._leases.pop(chat).fence
        if len(self._ended) > self._max_ended:
            oldest = next(iter(self._ended))
            self._lowest_fence = max(self._lowest_fence, self._ended.pop(oldest))

    async def state(self, chat: ChatKey) -> LeaseState:
        """Return the current state of a lease."""
        lease = self._held(chat)
        if lease is None:
            return LeaseState(self._newest_fence(chat))
        is_read = lease.read_until > self._clock()
        return LeaseState(
            lease.fence, lease.owner, lease.stop_requested, is_read, lease.release_requested
        )

    async def states(self, chats: Collection[ChatKey]) -> dict[ChatKey, LeaseState]:
        """Return the current states of several leases, with an entry for each chat."""
        return {chat: await self.state(chat) for chat in chats}

    async def request_stop(self, chat: ChatKey, *, fence: int) -> None:
        """Ask the owner with this fence to stop its turn."""
        lease = self._fenced(chat, fence)
        if lease is not None:
            lease.stop_requested = True

    async def clear_stop_request(self, chat: ChatKey, *, fence: int) -> None:
        """Acknowledge a stop request after the turn has stopped."""
        lease = self._fenced(chat, fence)
        if lease is not None:
            lease.stop_requested = False

    async def record_reader(self, chat: ChatKey, *, fence: int, ttl: float) -> None:
        """Record for the owner with this fence that a replica reads."""
        lease = self._fenced(chat, fence)
        if lease is not None:
            lease.read_until = self._clock() + ttl

    async def request_release(self, chat: ChatKey, *, fence: int) -> None:
        """Ask the owner with this fence to release the chat."""
        lease = self._fenced(chat, fence)
        if lease is not None:
            lease.release_requested = True

    def _held(self, chat: ChatKey) -> _Lease | None:
        lease = self._leases.get(chat)
        return None if lease is None or lease.until <= self._clock() else lease

    def _fenced(self, chat: ChatKey, fence: int) -> _Lease | None:
        lease = self._leases.get(chat)
        return lease if lease is not None and lease.fence == fence else None

    def _newest_fence(self, chat: ChatKey) -> int:
        """Return the highest fence that the chat may have had."""
        lease = self._leases.get(chat)
        return self._ended.get(chat, self._lowest_fence) if lease is None else lease.fence
