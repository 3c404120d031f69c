"""Schedules drawn from seeds: any order of callbacks, and a kill at any moment (F24)."""

from __future__ import annotations

import gc
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from tests.faults import seeded_world
from tests.faults.seeded_world import World
from tests.faults.soak.portions import play_portions
from tests.faults.soak.tally import Tally, failure

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
    return play_portions(
        Tally("seeded schedules"),
        partial(_play, folder),
        range(first, first + count),
        portion=PORTION,
        processes=processes,
    )


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
