"""Any order of events and a death at any moment: never twice, never lost, and always an end."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.soak.schedules import lived

PARTS = 4
SEEDS = int(os.environ.get("SLUICEGATE_SEEDS", "32"))
FIRST = int(os.environ.get("SLUICEGATE_FIRST_SEED", "0"))


@pytest.fixture(autouse=True)
def _the_dead_say_nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let what a killed server leaves behind be collected here, not in whichever test comes next.

    Closing a generator of a dead task fails in ADK: it resets a variable of another context.
    """
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    yield
    gc.collect()


def test_a_seed_shows_the_same_again(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    assert lived(tmp_path, 7).trace == lived(tmp_path / "again", 7).trace


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_happens_when_every_promise_holds(tmp_path: Path, part: int) -> None:
    for seed in range(FIRST + part, FIRST + SEEDS, PARTS):
        try:
            lived(tmp_path, seed)
        except BaseException as error:
            error.add_note(f"SLUICEGATE_FIRST_SEED={seed} SLUICEGATE_SEEDS=1 shows it again")
            raise
