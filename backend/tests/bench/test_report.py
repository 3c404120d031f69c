"""The printed table and the chart."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bench.crowd import Crowd
from bench.idle_sockets import Idle
from bench.large_request_flood import Flood
from bench.peers import AG_UI, AI_SDK, FLOOR, PEERS, SOCKET, SSE
from bench.pending import Pending
from bench.report import Report, Spread, spread
from bench.rounds import Samples
from bench.svg_chart import picture
from bench.turn_and_start_times import Rates, Turn


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
    return Report(
        rounds=3,
        deltas=2_000,
        titles={peer.name: peer.title for peer in PEERS},
        samples=samples,
        missing=["somebody else"],
        crowds=[Crowd(50, 10e-3, 12.5e-3, 20e-3, 30e-6)],
        memory=40.0,
        lag=1.5e-3,
        turns={5_000: Turn(0.1, 0.3, 0.2)},
        approvals={1: Rates(answered=25.0, whole=20.0)},
        start={"import": 0.05},
        pending=Pending(count=500, resident_kib=250, tasks=0, sockets=0),
    )


def test_a_spread_is_the_median_with_minimum_and_maximum() -> None:
    assert spread([3.0, 1.0, 10.0]) == Spread(3.0, 1.0, 10.0)


def test_a_ratio_is_taken_within_each_round() -> None:
    report = _report(**{SSE: [16.0, 48.0, 24.0], FLOOR: [16.0, 16.0, 12.0]})

    assert report.ratio(SSE, FLOOR) == Spread(2.0, 1.0, 3.0)


def test_the_socket_overhead_is_compared_with_the_sse_overhead() -> None:
    report = _report(
        **{FLOOR: [5e-6, 4e-6, 5e-6], SSE: [15e-6, 14e-6, 10e-6], SOCKET: [20e-6, 14e-6, 20e-6]}
    )

    assert report.socket_added() == pytest.approx(1.5)
    assert "WebSocket adds 1.50 x what SSE adds (at most 1.5)" in report.table()
    assert Report(rounds=1, deltas=1).socket_added() is None


def test_idle_sockets_are_measured_open_and_after_closing() -> None:
    idle = Idle(sockets=100, before=1_000, opened=(4_000, 4_100), closed=(3_900, 4_000))

    assert (idle.kib_per_socket, idle.growth) == (30.0, 1.0)
    table = Report(rounds=1, deltas=1, idle=idle).table()
    assert "100 idle sockets: 30.0 KiB each (at most 40); 2 rounds" in table


def test_small_requests_beside_large_ones_are_reported_with_their_targets() -> None:
    sent = {"text": 3, "values": 4}
    flood = Flood(
        (0.001, 0.002), (0.02, 0.3), (0.02,), large=sent, before=100.0, peak=180.0, after=104.0
    )

    assert flood.growth == 80.0
    assert flood.left == pytest.approx(0.04)
    table = Report(rounds=1, deltas=1, flood=flood).table()
    assert "a list of chats: p50 2 ms, p99 2 (at most 250)" in table
    assert "a short answer: p50 300 ms, p99 300 (at most 250)" in table
    assert "7 of these: the process grows by 80 MiB (at most 250), 4 % are left (" in table


def test_a_row_that_was_not_measured_has_no_ratio() -> None:
    assert Report(rounds=1, deltas=1).ratio(SSE, FLOOR) is None
    assert Report(rounds=1, deltas=1).first_added() is None


def test_the_first_delta_is_compared_with_the_floor() -> None:
    report = _report(**{SSE: [50e-6] * 3, FLOOR: [10e-6] * 3})

    assert report.first_added() == pytest.approx(4e-3)


def test_the_table_has_a_row_for_every_peer_with_its_ratio_to_the_floor() -> None:
    lines = _report(**{FLOOR: [10e-6] * 3, SOCKET: [150e-6] * 3}).table().splitlines()

    for peer in PEERS:
        rows = [line for line in lines if line.startswith(peer.title)]
        assert rows, peer.title
    ours = next(line for line in lines if line.startswith("sluicegate, WebSocket"))
    assert " 15.0 " in ours
    assert "150.0 (150.0 - 150.0)" in ours


@pytest.mark.parametrize(
    "words",
    [
        "sluicegate, SSE: 2.0 x the floor (at most 3.5)",
        "AI SDK 7 on Node takes 4.0 x as long (at least 1.6)",
        "ag-ui-adk takes 20.0 x as long (at least 7.0)",
        "somebody else                              not on this machine",
        "  50 streams at 100 deltas/s: gap p50 10.0 ms, p99 12.5 ms, worst 20 ms, 30 µs of CPU",
        "An open stream: 40 KiB of memory",
        "The first delta arrives 1.5 ms after the model's (at most 3)",
        "A turn in a session of 5,000 events: 100 ms, 300 ms the first time, ADK alone 200 ms; "
        "0.50 x (at most 0.6)",
        "Approvals, 1 at once: 25.0 a second (at least 20), 20.0 with their questions",
        "Cold start, import: 50 ms",
        "250 KiB of memory (500 KiB per 1,000), 0 tasks, 0 sockets",
    ],
)
def test_the_table_shows_which_targets_were_met(words: str) -> None:
    report = _report(
        **{FLOOR: [10e-6] * 3, SSE: [20e-6] * 3, AI_SDK: [80e-6] * 3, AG_UI: [400e-6] * 3}
    )
    assert words in report.table()


def test_the_json_contains_every_sample_and_its_environment() -> None:
    document = _report(**{SSE: [120e-6, 130e-6, 140e-6]}).json()

    assert document["rows"][SSE]["per_delta"] == [120e-6, 130e-6, 140e-6]
    assert document["to_floor"][SSE] == pytest.approx(1.3)
    assert document["to_ours"][SSE] == 1.0
    assert document["pending"]["kib_per_thousand"] == 500
    assert document["machine"]["python"].startswith("Python 3.")


def test_the_chart_has_a_proportional_bar_for_every_row() -> None:
    drawn = ElementTree.fromstring(picture(_report(**{FLOOR: [10e-6] * 3})))

    space = "{http://www.w3.org/2000/svg}"
    bars = [float(each.attrib["width"]) for each in drawn.iter(f"{space}rect")][1:]
    texts = [each.text or "" for each in drawn.iter(f"{space}text")]
    assert len(bars) == len(PEERS)
    assert bars[0] == pytest.approx(bars[1] / 10, rel=0.05)
    assert all(peer.title in texts for peer in PEERS)
    assert "10.0 (1.0 x)" in texts
