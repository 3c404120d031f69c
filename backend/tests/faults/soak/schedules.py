"""Schedules drawn from seeds: any order of callbacks, and a kill at any moment (F24)."""

from __future__ import annotations

import gc
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.faults import seeded_world
from tests.faults.seeded_world import World
from tests.faults.soak.child import Child, ChildError
from tests.faults.soak.tally import Tally, failure

PATIENCE: Final = 3600.0
PORTION: Final = 200
"""Seeds that one process runs."""


def run_seed(folder: Path, seed: int) -> World:
    """Run one chat from a seed: concurrent users, perhaps a kill, then the final checks."""
    world = World(folder / f"{seed}.db", seed)
    seeded_world.EFFECTS.clear()
    world.serve(world.crowd, dies=seed % 2 == 1)
    world.serve(world.settle, dies=False)
    return world


def play(folder: Path, first: int, count: int, processes: int) -> Tally:
    """Run that many seeds from the first on, in that many processes at a time."""
    tally = Tally("seeded schedules")
    portions = [
        range(begin, min(begin + PORTION, first + count))
        for begin in range(first, first + count, PORTION)
    ]
    for begin in range(0, len(portions), processes):
        side_by_side = portions[begin : begin + processes]
        children = [Child(_play, folder, seeds) for seeds in side_by_side]
        for child, seeds in zip(children, side_by_side, strict=True):
            try:
                tally.add(child.result(PATIENCE), runs=len(seeds))
            except ChildError as error:
                tally.add([failure(error, f"seeds {seeds}")], runs=len(seeds))
    return tally


def _play(folder: Path, seeds: range) -> list[tuple[str, str]]:
    # Imported modules stay; scanning them after each run would take most of the time.
    gc.freeze()
    # Objects of killed servers fail when they are collected, which is expected.
    sys.unraisablehook = lambda _: None
    failures = []
    for seed in seeds:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            try:
                run_seed(Path(place), seed)
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is counted
                failures.append(failure(error, f"seed {seed}"))
    return failures
