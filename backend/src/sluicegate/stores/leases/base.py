"""The port of the leases: one writer per chat (A2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from sluicegate.core.keys import ChatKey


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The lease of a chat as it is: nobody has ever held it where ``fence`` is 0.

    ``holder`` is who holds it now; ``wants_stop``: somebody asked the holder to stop what it runs;
    ``is_read``: another process has readers of what the holder runs.
    """

    fence: int = 0
    holder: str | None = None
    wants_stop: bool = False
    is_read: bool = False


class Leases(Protocol):
    """One writer per chat (A2). Times to live are seconds, by the database's clock."""

    async def acquire(self, chat: ChatKey, *, owner: str, ttl: float) -> int | None:
        """Take the lease and return its fence, which grows with every holder of the chat.

        None while it is held, also by the same owner: a lease is renewed, not taken again.
        """

    async def renew(self, chat: ChatKey, *, owner: str, fence: int, ttl: float) -> bool:
        """Hold for another ``ttl`` from now; False when the lease is lost."""

    async def release(self, chat: ChatKey, *, owner: str, fence: int) -> None:
        """Give the lease back; nothing happens when it is lost already."""

    async def state(self, chat: ChatKey) -> LeaseState:
        """Return the lease as it is now."""

    async def states(self, chats: Collection[ChatKey]) -> dict[ChatKey, LeaseState]:
        """Return the leases of several chats, each of which is there."""

    async def ask_to_stop(self, chat: ChatKey, *, fence: int) -> None:
        """Ask the holder with this fence to stop what it runs; it looks every second."""

    async def has_stopped(self, chat: ChatKey, *, fence: int) -> None:
        """Tell those who asked that it was done."""

    async def note_reader(self, chat: ChatKey, *, fence: int, ttl: float) -> None:
        """Tell the holder with this fence that somebody reads along, for ``ttl`` from now."""
