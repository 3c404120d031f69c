"""The gate of the turn that runs in this context."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from sluicegate.engine.models.model_turn import MODEL_TURN

if TYPE_CHECKING:
    from sluicegate.engine.guard.guard import ApprovalGuard

CURRENT: ContextVar[ApprovalGuard | None] = ContextVar("sluicegate_turn_gate", default=None)
"""The gate of the turn that runs in this context, None outside turns; ADK's tasks inherit it."""


def enter(gate: ApprovalGuard) -> None:
    """Let what runs in this context from now on, models too, belong to a turn."""
    CURRENT.set(gate)
    MODEL_TURN.set(gate)
