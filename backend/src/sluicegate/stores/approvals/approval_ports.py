"""What the engine may ask of the ledger beside the calls of one chat: grants, and what waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sluicegate.core.approvals import ApprovalRow, Grant
    from sluicegate.core.keys import ChatKey


@dataclass(frozen=True, slots=True)
class WaitingPage:
    """Some requests, newest first; ``next`` is the cursor of what follows, None at the end."""

    rows: list[ApprovalRow]
    next: str | None


class Waiting(Protocol):
    """The approvals of a user over all chats."""

    async def page(self, app: str, user: str, *, limit: int, after: str | None) -> WaitingPage:
        """Return up to ``limit`` requests that wait behind the cursor ``after``, newest first.

        Raises:
            Malformed: the cursor is none of ours.
        """

    async def find(self, app: str, user: str, approval_id: str) -> ApprovalRow | None:
        """Return the newest approval of that id, whatever has become of it."""


class Grants(Protocol):
    """The tools of a chat that need not ask again (A8); `Ledger.decide` adds to them."""

    async def all(self, chat: ChatKey) -> list[Grant]:
        """Return what is remembered in a chat, oldest first."""

    async def revoke(self, chat: ChatKey, tool: str, *, by: str, via: str = "") -> bool:
        """Let a tool ask again; False when nothing was remembered of it.

        A call that was approved by it and has not begun is refused.
        """

    async def forget(self, chat: ChatKey) -> None:
        """Take back everything that is remembered in a chat that is deleted."""
