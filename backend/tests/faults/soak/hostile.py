"""Hostile models from seeds: the digest of what was shown is the digest of what ran."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tests.faults.soak.child import Child, ChildError
from tests.faults.soak.tally import Tally, failure
from tests.properties.hostile_world import HostileWorld

PATIENCE: Final = 3600.0
PORTION: Final = 200
"""Seeds that one process plays with the same tools."""


def play(first: int, count: int, processes: int) -> Tally:
    """Play that many seeds from the first on, in that many processes at a time."""
    tally = Tally("hostile models")
    portions = [
        range(begin, min(begin + PORTION, first + count))
        for begin in range(first, first + count, PORTION)
    ]
    for begin in range(0, len(portions), processes):
        side_by_side = portions[begin : begin + processes]
        children = [Child(_play, seeds) for seeds in side_by_side]
        for child, seeds in zip(children, side_by_side, strict=True):
            try:
                tally.add(child.result(PATIENCE), runs=len(seeds))
            except ChildError as error:
                tally.add([failure(error, f"seeds {seeds}")], runs=len(seeds))
    return tally


async def _play(seeds: range) -> list[tuple[str, str]]:
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        world = await HostileWorld.open(Path(folder), seeds.start)
        for seed in seeds:
            try:
                await world.play(seed)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
                failures.append(failure(error, f"seed {seed}"))
        await world.engine.close()
    return failures
