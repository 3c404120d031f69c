"""The turn that runs in the current context, and its notices, as callbacks of ADK find them."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluicegate.engine.guard.guard import ApprovalGuard

CURRENT_TURN: Final[ContextVar[ApprovalGuard | None]] = ContextVar(
    "sluicegate_current_turn", default=None
)
"""The approval guard of the turn, None outside turns; tasks that ADK creates inherit it."""


class Notices:
    """Sentences for the user that belong to no call; each is shown once per turn."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._pending: list[str] = []

    def add(self, sentences: Iterable[str]) -> None:
        """Add sentences; they go out with the next event."""
        for sentence in sentences:
            if sentence not in self._seen:
                self._seen.add(sentence)
                self._pending.append(sentence)

    def take(self) -> list[str]:
        """Return the sentences that no event carries yet, and remove them."""
        pending, self._pending = self._pending, []
        return pending
