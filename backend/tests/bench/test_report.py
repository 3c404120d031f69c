"""The numbers that are printed."""

from __future__ import annotations

import re

import pytest

from bench.peers import ALONE, FLOOR, FREE, PEERS, RUNNER
from bench.pending import Pending
from bench.report import Report, Spread, spread
from bench.rounds import Samples


def _report(**per_delta: list[float]) -> Report:
    samples = {}
    for peer in PEERS:
        values = per_delta.get(peer.name, [100e-6] * 3)
        samples[peer.name] = Samples(
            per_delta=values,
            whole=[0.5] * 3,
            first_delta=[value * 100 for value in values],
            client=[1e-6] * 3,
            server=[value / 2 for value in values],
        )
    pending = Pending(count=500, resident_kib=250, tasks=0, sockets=0)
    return Report({peer.name: peer.title for peer in PEERS}, samples, pending, 3, 2_000)


def test_a_spread_is_the_median_and_the_ends() -> None:
    assert spread([3.0, 1.0, 10.0]) == Spread(3.0, 1.0, 10.0)


def test_what_is_added_is_the_difference_within_each_round() -> None:
    report = _report(**{FREE: [110e-6, 220e-6, 130e-6], RUNNER: [100e-6, 200e-6, 100e-6]})

    per_delta, first, work = report.added(FREE, RUNNER)

    assert per_delta.median == pytest.approx(20e-6)
    assert (per_delta.lowest, per_delta.highest) == pytest.approx((10e-6, 30e-6))
    assert first.median == pytest.approx(2e-3)
    assert work is not None
    assert work.median == pytest.approx(10e-6)


@pytest.mark.parametrize(
    ("ours", "words"),
    [(124e-6, ["within", "within"]), (126e-6, ["over", "within"]), (151e-6, ["over", "over"])],
)
def test_the_table_says_whether_the_budget_is_kept(ours: float, words: list[str]) -> None:
    table = _report(**{FREE: [ours] * 3}).table()

    added = table[table.index("What the server adds") :].splitlines()[1]
    assert "agent without gates" in added
    assert re.findall("within|over", added) == words


def test_the_table_has_a_row_for_every_peer_with_its_ratio_to_the_floor() -> None:
    lines = _report(**{FLOOR: [10e-6] * 3, FREE: [150e-6] * 3}).table().splitlines()

    for peer in PEERS:
        rows = [line for line in lines if line.startswith(peer.title)]
        assert rows, peer.title
    ours = next(line for line in lines if line.startswith("sluicegate, agent without gates"))
    assert " 15.0 " in ours
    assert "150.0 (150.0 - 150.0)" in ours


def test_idle_approvals_are_told_per_thousand() -> None:
    assert "250 KiB of memory (500 KiB per 1,000), 0 tasks, 0 sockets" in _report().table()


def test_the_json_holds_every_sample_and_the_verdicts() -> None:
    document = _report(**{FREE: [120e-6, 130e-6, 140e-6]}).json()

    assert document["peers"][FREE]["per_delta"] == [120e-6, 130e-6, 140e-6]
    assert document["added"][FREE][ALONE]["per_delta"] == pytest.approx(30e-6)
    assert document["added"][FREE][ALONE]["within"] is False
    assert document["pending"]["kib_per_thousand"] == 500
