"""The request to every server and the expected answer."""

from __future__ import annotations

import os
from typing import Final

DELTA: Final = "a delta of 20 bytes "
FAST: Final = "fast"
"""``BENCH_DELTAS`` deltas without delay, to measure the cost of one delta."""
SLOW: Final = "slow"
"""A model with a millisecond of delay per delta, to measure the first arrival."""
SLOW_DELTAS: Final = 50
ASK: Final = "ask"
"""A call of the gated tool, then one delta."""
DRAW: Final = "draw"
"""A call of the image tool, then one delta."""
PICTURE: Final = b"\x89PNG\r\n\x1a\n"
"""The first bytes of a file that is accepted as an image."""
STEADY: Final = "steady"
"""``steady RATE SECONDS``: RATE deltas per second for SECONDS seconds."""
ENDLESS: Final = "endless"
"""One delta after an hour."""
SHORT: Final = "short"
"""Five deltas without a wait: what a turn costs besides its deltas."""
WHEN: Final = "when"
"""One delta: the moment at which the model said it, by the clock that all processes share."""


def pieces_of(text: str) -> tuple[int, float]:
    """How many deltas a text is answered with, and the seconds before each."""
    if text == SLOW:
        return SLOW_DELTAS, 0.001
    if text.startswith(STEADY):
        _, per_second, seconds = text.split()
        return int(per_second) * int(seconds), 1 / int(per_second)
    if text == ENDLESS:
        return 2, 3600.0
    counts = {ASK: 1, DRAW: 1, SHORT: 5}
    return counts.get(text) or int(os.environ["BENCH_DELTAS"]), 0


SAY: Final = "say"
"""``say COUNT``: COUNT deltas at `PACE`."""
PAY: Final = "pay"
"""``pay COUNT``: `BEFORE_CALL` deltas and a call of the gated tool, then the rest of COUNT."""
PACE: Final = 30
"""Deltas a second of such an answer; the first one comes at once."""
BEFORE_CALL: Final = 15
EFFECTS: Final = "BENCH_EFFECTS"
"""The variable with the file to which the tool of such an answer adds a line, if it is set."""


def paced(text: str, *, is_called: bool) -> tuple[int, bool]:
    """How many deltas come now, and whether a call of the tool follows them.

    ``is_called``: the call of this answer has its result already.
    """
    word, _, number = text.partition(" ")
    if word != PAY:
        return int(number), False
    return (int(number) - BEFORE_CALL, False) if is_called else (BEFORE_CALL, True)
