"""The port of the leases: one writer per chat (A2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from sluicegate.core.chat_and_turn_keys import ChatKey


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The lease of a chat.

    ``fence`` is the newest fencing token, 0 for a chat that never had a lease; ``owner`` holds
    the lease now; ``stop_requested``: another process has asked the owner to stop its turn;
    ``has_remote_readers``: another process reads the owner's stream; ``release_requested``: another
    process has asked the owner to release the chat to it.
    """

    fence: int = 0
    owner: str | None = None
    stop_requested: bool = False
    has_remote_readers: bool = False
    release_requested: bool = False


class Leases(Protocol):
    """The leases of the chats (A2). Times to live are seconds of the database's clock.

    Every method of an implementation in a database raises StoreError when it does not respond.
    """

    async def acquire(self, chat: ChatKey, *, owner: str, ttl: float) -> int | None:
        """Acquire the lease and return its fencing token, which grows with every owner.

        Returns None while the lease is held, also by the same owner: use `renew` to keep it.
        """

    async def renew(self, chat: ChatKey, *, owner: str, fence: int, ttl: float) -> bool:
        """Extend the lease to ``ttl`` seconds from now; False when it is lost."""

    async def release(self, chat: ChatKey, *, owner: str, fence: int) -> None:
        """Release the lease; a lost lease is ignored."""

    async def state(self, chat: ChatKey) -> LeaseState:
        """Return the current state of a lease."""

    async def states(self, chats: Collection[ChatKey]) -> dict[ChatKey, LeaseState]:
        """Return the current states of several leases, with an entry for each chat."""

    async def request_stop(self, chat: ChatKey, *, fence: int) -> None:
        """Ask the owner with this fence to stop its turn; owners check every second."""

    async def clear_stop_request(self, chat: ChatKey, *, fence: int) -> None:
        """Acknowledge a stop request after the turn has stopped."""

    async def record_reader(self, chat: ChatKey, *, fence: int, ttl: float) -> None:
        """Record for the owner with this fence that a replica reads, for ``ttl`` from now."""

    async def request_release(self, chat: ChatKey, *, fence: int) -> None:
        """Ask the owner with this fence to release the chat; owners check every second."""
