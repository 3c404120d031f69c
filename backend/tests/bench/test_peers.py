"""Validation and counting of the streams of the measured servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.client import BenchError
from bench.crowd import measure_crowd
from bench.peers import ADK, AG_UI, FLOOR, PEERS, SOCKET
from bench.rounds import measure
from bench.script import DELTA, FAST, SHORT, SLOW, SLOW_DELTAS, pieces_of
from bench.server_process import ServerProcess, own_server

PEER = {peer.name: peer for peer in PEERS}


def _stream(*events: object) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


DELTA_CHUNK = {"type": "text-delta", "id": "1", "delta": DELTA}
FINISH = {"type": "finish"}


def test_only_the_deltas_of_a_stream_are_counted() -> None:
    body = _stream({"type": "start"}, DELTA_CHUNK, DELTA_CHUNK, FINISH) + b"data: [DONE]\n\n"

    assert PEER[FLOOR].deltas(body) == 2


@pytest.mark.parametrize(
    "body",
    [
        _stream(DELTA_CHUNK),
        _stream(DELTA_CHUNK, {"type": "error", "errorText": "no"}),
        _stream({**DELTA_CHUNK, "delta": "the script has no scenario"}, FINISH),
        b"",
    ],
    ids=["no end", "an error", "another text", "empty"],
)
def test_a_stream_that_differs_from_the_script_is_refused(body: bytes) -> None:
    with pytest.raises(BenchError):
        PEER[FLOOR].deltas(body)


def test_the_aggregate_event_of_adk_is_no_delta() -> None:
    part = {"content": {"parts": [{"text": DELTA}]}, "partial": True}
    whole = {"content": {"parts": [{"text": DELTA * 2}]}, "partial": False}

    assert PEER[ADK].deltas(_stream(part, part, whole)) == 2


@pytest.mark.parametrize(
    ("text", "pieces", "seconds"),
    [(FAST, 30, 0), (SLOW, SLOW_DELTAS, 0.001), ("steady 100 2", 200, 0.01), (SHORT, 5, 0)],
)
def test_the_prepared_model_generates_the_requested_deltas(
    monkeypatch: pytest.MonkeyPatch, text: str, pieces: int, seconds: float
) -> None:
    monkeypatch.setenv("BENCH_DELTAS", "30")

    assert pieces_of(text) == (pieces, seconds)
    assert len(DELTA.encode()) == 20


def test_buffered_text_is_counted_by_its_deltas() -> None:
    held = {**DELTA_CHUNK, "delta": DELTA * 30}

    assert PEER["gated_7"].deltas(_stream(held, FINISH)) == 30
    with pytest.raises(BenchError):
        PEER["gated_7"].deltas(_stream({**held, "delta": DELTA * 2 + "more"}, FINISH))


def test_the_frames_of_a_socket_are_counted() -> None:
    frames = [{"type": "chunk", "chunk": each} for each in (DELTA_CHUNK, DELTA_CHUNK, FINISH)]
    body = b"\n".join(json.dumps(frame).encode() for frame in (*frames, {"type": "end"}))

    assert PEER[SOCKET].deltas(body) == 2
    with pytest.raises(BenchError, match="no good end"):
        PEER[SOCKET].deltas(b'{"type":"end"}')


def test_the_runs_of_ag_ui_are_counted() -> None:
    said = {"type": "TEXT_MESSAGE_CONTENT", "delta": DELTA}

    assert PEER[AG_UI].deltas(_stream(said, said, {"type": "RUN_FINISHED"})) == 2
    with pytest.raises(BenchError, match="no good end"):
        PEER[AG_UI].deltas(_stream(said))


def test_gaps_are_measured_between_the_deltas_of_a_stream(tmp_path: Path) -> None:
    command = own_server("floor")
    with ServerProcess(command, tmp_path / "floor", {"BENCH_DELTAS": "30"}) as server:
        found = measure_crowd(server, streams=3, seconds=1)

    assert found.streams == 3
    assert 0 < found.p50 <= found.p99 <= found.worst


def test_the_floor_is_measured_in_its_own_process(tmp_path: Path) -> None:
    floor = PEER[FLOOR]
    command = own_server("floor")
    with ServerProcess(command, tmp_path / "floor", {"BENCH_DELTAS": "30"}) as server:
        servers = {floor.name: server}
        samples = measure([floor], servers, rounds=3, deltas=30, progress=lambda _: None)
        assert server.resident_kib() > 1_000
        with pytest.raises(BenchError, match="sent 30 deltas, not 31"):
            measure([floor], servers, rounds=0, deltas=31, progress=lambda _: None)

    kept = samples[FLOOR]
    for values in (kept.per_delta, kept.whole, kept.first_delta, kept.client):
        assert len(values) == 3
        assert min(values) > 0


def test_a_server_that_exits_immediately_is_an_error_with_its_output(tmp_path: Path) -> None:
    command = own_server("nobody")
    with (
        ServerProcess(command, tmp_path / "floor", {}) as server,
        pytest.raises(BenchError, match="No module named"),
    ):
        server.address()
