"""The approval guard of the turn or live run that runs, as callbacks of ADK find it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sluicegate.engine.guard.guard import ApprovalGuard

CURRENT_GUARD: Final[ContextVar[ApprovalGuard | None]] = ContextVar(
    "sluicegate_current_guard", default=None
)
"""None outside turns and live runs; tasks that ADK creates inherit it."""
