"""The soak test counts and reports failures; ``make soak`` runs it."""

from __future__ import annotations

import sys

import pytest

from tests.faults.promises import DoubleEffect, LostDecision
from tests.faults.soak.cases import cases
from tests.faults.soak.short import run
from tests.faults.soak.tally import Tally, failure, head


def test_the_long_run_has_the_promised_length() -> None:
    counts = {case.name: case.count for case in cases()}
    assert len(counts) == len(cases())
    asked = {
        "two approvals": 1000,
        "drifting previews": 1_000,
        "kill": 600,
        "random trees": 5_000,
        "seeded schedules": 20_000,
        "hostile models": 20_000,
        "fuzzed": 60_000,
    }
    for words, least in asked.items():
        assert sum(count for name, count in counts.items() if name.startswith(words)) >= least


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (DoubleEffect("paid twice"), (1, 0, 0)),
        (LostDecision("forgotten"), (0, 1, 0)),
        (KeyError("else"), (0, 0, 1)),
        (AssertionError(), (0, 0, 1)),
    ],
)
def test_a_failure_is_counted_by_its_kind(error: Exception, counted: tuple[int, ...]) -> None:
    tally = Tally("case")
    tally.add([], runs=3)
    assert tally.holds
    tally.add([failure(error, "seed 7")], runs=1)
    assert not tally.holds
    assert (tally.double_effects, tally.lost_decisions, tally.broken) == counted
    assert "seed 7" in tally.notes[0]
    assert tally.row().split() == ["case", "4", *map(str, counted), "0.0"]
    assert len(tally.row()) == len(head())


def test_a_case_without_runs_fails() -> None:
    assert not Tally("case").holds


CHILDREN = """
import asyncio, os, signal
from tests.faults.soak.child import Child, ChildError

async def adds(a, b): return a + b
async def fails(): raise ValueError("broken inside")
def dies(): os.kill(os.getpid(), signal.SIGKILL)
def hangs(): signal.pause()

assert Child(adds, 1, 2).result(60) == 3
Child(dies).wait_for_death(60)
for child, wait, words in (
    (Child(fails), Child.result, "broken inside"),
    (Child(dies), Child.result, "its process died"),
    (Child(hangs), lambda child, _: child.result(0.1), "took too long"),
    (Child(adds, 1, 2), Child.wait_for_death, "ended with 0"),
):
    try:
        wait(child, 60)
    except ChildError as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
"""


async def test_a_child_reports_how_it_ended() -> None:
    assert await run(sys.executable, "-c", CHILDREN) == (0, "")


async def test_a_case_is_run_by_its_name(soak: list[str]) -> None:
    code, printed = await run(*soak, "--count", "2", "kill", "P1", "sqlite")
    assert code == 0
    [_, row] = printed.splitlines()
    assert row.split()[:-1] == ["kill", "P1,", "sqlite", "2", "0", "0", "0"]


async def test_an_unknown_case_name_is_a_failure(soak: list[str]) -> None:
    code, _ = await run(*soak, "nothing")
    assert code == 1
