"""What the model says in every server: the user's text is the name of what is measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

DELTA: Final = "a delta of 20 bytes "
FAST: Final = "fast"
"""Deltas without a wait: what one delta costs."""
SLOW: Final = "slow"
"""A model that awaits a millisecond before each delta: when the first one arrives."""
SLOW_DELTAS: Final = 50
ASK: Final = "ask"
"""A call of the gated tool."""


def write_script(path: Path, *, deltas: int) -> None:
    """Write the scenario file that all agents play."""
    path.write_text(json.dumps(_scenarios(deltas)), "utf-8")


def _scenarios(deltas: int) -> dict[str, Any]:
    slow = _text(SLOW_DELTAS) | {"wait_ms": 1, "delay_ms": 1}
    call = {"parts": [{"call": {"name": "transfer", "args": {"amount": 5}}}]}
    return {
        "scenarios": [
            {"match": f"^{FAST}$", "responses": [_text(deltas)]},
            {"match": f"^{SLOW}$", "responses": [slow]},
            {"match": f"^{ASK}$", "responses": [call, _text(1)]},
        ]
    }


def _text(deltas: int) -> dict[str, Any]:
    return {"parts": [{"text": DELTA * deltas}], "delta_chars": len(DELTA)}
