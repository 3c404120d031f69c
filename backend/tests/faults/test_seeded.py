"""Any order of events and a death at any moment: never twice, never lost, and always an end (F24).

``python -m tests.faults.soak seeded --first-seed 12 --count 1`` shows a seed again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.faults.soak.short import run, soaked

SEEDS = int(os.environ.get("SLUICEGATE_SEEDS", "64"))
FIRST = os.environ.get("SLUICEGATE_FIRST_SEED", "0")

SAME_AGAIN = """
import pathlib, sys, tempfile
from tests.faults.soak.schedules import run_seed

sys.unraisablehook = lambda _: None
with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
    assert run_seed(pathlib.Path(one), 7).trace == run_seed(pathlib.Path(two), 7).trace
"""
"""Objects of a killed server fail when they are collected, so it runs in another process."""


async def test_a_seed_reproduces_the_same_run() -> None:
    assert await run(sys.executable, "-c", SAME_AGAIN) == (0, "")


async def test_every_invariant_holds_in_any_order_of_actions(
    soak: list[str], tmp_path: Path
) -> None:
    assert await soaked(soak, tmp_path, SEEDS, "seeded", "--first-seed", FIRST) == SEEDS
