"""How many approvals may be requested."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ApprovalLimits:
    """How many approvals may be requested (A6, S2-R43)."""

    per_turn: int
    per_exchange: int
    per_chat: int
