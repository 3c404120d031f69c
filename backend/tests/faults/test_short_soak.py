"""The cases of the soak, each in its short form."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.faults.kill_points import POINTS
from tests.faults.soak.stores import KINDS

BACKEND = Path(__file__).resolve().parents[2]


async def soaked(folder: Path, count: int, *words: str) -> int:
    """Run the cases with these words so often each; returns how many runs there were."""
    results = folder / "results.json"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.soak", *words),
        *("--count", str(count), "--json", str(results)),
        cwd=BACKEND,
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    return sum(tally["runs"] for tally in json.loads(results.read_text()))


@pytest.mark.parametrize("point", POINTS)
async def test_f1_a_server_that_is_killed_never_pays_twice_and_forgets_nothing(
    tmp_path: Path, point: str
) -> None:
    assert await soaked(tmp_path, 2, "kill", point) == 2 * len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
async def test_f3_two_processes_that_take_the_same_yes_pay_once(tmp_path: Path, kind: str) -> None:
    assert await soaked(tmp_path, 7, "two approvals", kind) == 7 * 4


@pytest.mark.parametrize("kind", KINDS)
async def test_f4_of_a_yes_and_a_no_at_once_one_counts(tmp_path: Path, kind: str) -> None:
    assert await soaked(tmp_path, 12, "approve and deny", kind) == 12


@pytest.mark.parametrize("kind", KINDS)
async def test_f5_a_yes_and_new_text_at_once_never_both(tmp_path: Path, kind: str) -> None:
    assert await soaked(tmp_path, 6, "approve and new text", kind) == 6 * 2
