"""Hostile models from seeds: the digest of what was shown is the digest of what ran."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tests.faults.soak.portions import play_portions
from tests.faults.soak.tally import Tally, failure
from tests.properties.hostile_world import HostileWorld

PORTION: Final = 200
"""Seeds that one process plays with the same tools."""


def play(first: int, count: int, processes: int) -> Tally:
    """Play that many seeds from the first on, in that many processes at a time."""
    return play_portions(
        Tally("hostile models"),
        _play,
        range(first, first + count),
        portion=PORTION,
        processes=processes,
    )


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
