"""The arithmetic of capacity, of several processes, and of the death of one."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.capacity import Capacity, Step, planned, step_of
from bench.command import main
from bench.multiple_processes import Scaling, killed_of
from bench.people import Sample, shortened
from bench.people_process import Used
from bench.report import Report


def _step(people: int = 100, *, first: float = 0.09, gap: float = 0.04, **more: Any) -> Step:
    sample = Sample(seconds=20.0, first=[first], gaps=[gap], deltas=20_000, turns=100, cpu=2.0)
    return step_of(
        people,
        {**shortened(sample), **more},
        server_seconds=10.0,
        grown_kib=51_200,
        used=(
            Used(1.0, 1.0, 100, 1_000, 5_000),
            Used(5.0, 2.0, 900, 2_001_000, 8_005_000),
        ),
    )


def test_a_step_is_what_was_used_in_each_second() -> None:
    step = _step()

    assert (step.server, step.database, step.streams, step.client) == (0.5, 0.2, 0.05, 0.1)
    assert (step.commits, step.log_bytes, step.stream_bytes) == (800, 2_000_000, 8_000_000)


@pytest.mark.parametrize(
    ("step", "holds"),
    [
        (_step(), True),
        (_step(first=0.1001), False),
        (_step(gap=0.0501), False),
        (_step(failures=["lost"]), False),
        (_step(first=0.1, gap=0.05), True),
    ],
)
def test_a_step_holds_when_both_limits_are_kept_and_nothing_fails(
    step: Step, *, holds: bool
) -> None:
    assert step.holds is holds


def test_a_step_in_which_nobody_was_answered_does_not_hold() -> None:
    assert not step_of(
        1, shortened(Sample(seconds=1.0)), server_seconds=0, grown_kib=0, used=(Used(), Used())
    ).holds


def test_the_capacity_is_the_last_step_that_holds() -> None:
    found = Capacity("server", (_step(50), _step(100), _step(150, gap=0.2)))

    assert found.most == found.steps[1]
    assert found.per_core == 200
    assert Capacity("server", (_step(25, gap=1.0),)).per_core is None


def test_a_plan_is_in_proportion_to_a_step() -> None:
    plan = planned(_step(), 1_050)

    assert plan.processes == 11
    assert plan.server_cores == pytest.approx(5.25)
    assert plan.database_cores == pytest.approx(2.1)
    assert plan.commits == pytest.approx(420)
    assert plan.stream_bytes == pytest.approx(4.2e6)
    assert plan.memory_bytes == pytest.approx(10.5 * 50 * 2**20)


def test_the_report_shows_each_step_the_plan_and_what_two_processes_cost() -> None:
    found = Capacity("server", (_step(100),))
    scaling = Scaling(50, (1e-4, 1e-4), (1.05e-4, 1.07e-4), (1.2e-4, 1.2e-4))
    report = Report(rounds=1, deltas=1, capacity=[found], scaling=scaling)

    lines = report.table().splitlines()
    assert any(
        line.startswith("server: 100 people: first delta p50 90 ms, p99 90 ms (at most 100), gap")
        for line in lines
    )
    assert "server: 200 people for each core" in lines
    assert any(line.startswith("10,000 people: 100 processes with 50.0 cores") for line in lines)
    assert any("50 people each: 1.06 x the CPU of a delta" in line for line in lines)
    assert report.json()["capacity"][0]["steps"][0]["people"] == 100


def test_what_the_death_of_a_process_has_broken_is_counted_by_process() -> None:
    sample = shortened(Sample(lost=[1, 2, 9], restored=[3.0], repeated=2))
    ran = Counter({"paid": 1, "twice": 2})
    states = {
        "paid": "executed",
        "twice": "executed",
        "vanished": "executed",
        "open": "approved",
        "maybe": "unknown",
    }

    killed = killed_of(10, ({1, 2, 3}, {8, 9}), sample, ran, states)

    assert (killed.open, killed.lost, killed.foreign) == ((3, 2), 3, 1)
    assert (killed.twice, killed.forgotten) == (1, 2)
    assert killed.states == {"executed": 3, "approved": 1, "unknown": 1}
    line = Report(rounds=1, deltas=1, killed=killed).table()
    assert "3 answers broke off, 1 of them of the other, 0 were not restored, the last" in line


def test_people_talk_to_the_server_and_to_the_ai_sdk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"

    assert main(["--short", "--only", "capacity", "--json", str(written)]) == 0

    assert "sluicegate, SQLite: 2 people: first delta" in capsys.readouterr().out
    for found in json.loads(written.read_text("utf-8"))["capacity"]:
        [step] = found["steps"]
        assert step["failures"] == []
        assert step["deltas"] > 0
        assert step["server"] > 0
