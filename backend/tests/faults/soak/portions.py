"""Seeds in portions, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.faults.soak.child import Child, ChildError
from tests.faults.soak.tally import Tally, failure

PATIENCE: Final = 3600.0
"""Seconds within which a portion ends."""


def play_portions(
    tally: Tally,
    play: Callable[..., Any],
    seeds: range,
    *,
    portion: int,
    processes: int,
) -> Tally:
    """Call ``play`` with portions of the seeds, in so many processes at a time."""
    portions = [seeds[begin : begin + portion] for begin in range(0, len(seeds), portion)]
    for begin in range(0, len(portions), processes):
        side_by_side = portions[begin : begin + processes]
        children = [Child(play, part) for part in side_by_side]
        for child, part in zip(children, side_by_side, strict=True):
            try:
                tally.add(child.result(PATIENCE), runs=len(part))
            except ChildError as error:
                tally.add([failure(error, f"seeds {part}")], runs=len(part))
    return tally
