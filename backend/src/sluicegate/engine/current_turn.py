"""The turn that runs in the current context, as callbacks of ADK find it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sluicegate.engine.guard.guard import ApprovalGuard

CURRENT_TURN: Final[ContextVar[ApprovalGuard | None]] = ContextVar(
    "sluicegate_current_turn", default=None
)
"""The approval guard of the turn, None outside turns; tasks that ADK creates inherit it."""
