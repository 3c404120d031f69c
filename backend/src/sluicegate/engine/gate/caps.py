"""Bounds on what is asked of a person."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caps:
    """How many approvals may be asked for (A6, S2-R43)."""

    per_turn: int
    per_exchange: int
    per_chat: int
