"""One of two processes is killed while people talk to both, with cards and cut connections."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.capacity import Crowding
from bench.multiple_processes import measure_killed


def test_a_killed_process_loses_no_approval_and_cuts_only_its_own_streams(
    real_stores_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for a busy machine: a turn that loses its lease ends, and runs no approved call.
    monkeypatch.setenv("SLUICEGATE_LEASE_TTL", "10")

    lost = 0
    for number in range(3):
        killed = measure_killed(
            real_stores_folder / f"killed process {number}",
            Crowding((24,), warm=2.0, seconds=6.0, scale=0.1),
        )
        # Each kill keeps the promises, also one that cuts no answer.
        assert killed.open[0] > 0
        assert (killed.foreign, killed.failures) == (0, [])
        assert (killed.twice, killed.forgotten) == (0, 0)
        assert killed.states["executed"] > 0
        assert killed.states.keys() <= {"executed", "unknown"}
        lost += killed.lost
        # At some moments no answer of the process is being read; another kill cuts one.
        if lost:
            break

    assert lost > 0
