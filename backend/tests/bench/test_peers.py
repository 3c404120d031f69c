"""What is believed of the servers that are measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.client import BenchError
from bench.peers import ADK, FLOOR, PEERS
from bench.rounds import measure
from bench.script import DELTA, FAST, SLOW, SLOW_DELTAS, write_script
from bench.server_process import ServerProcess, own_server
from sluicegate.replay import ScriptedModel

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
def test_a_stream_that_is_not_the_scripts_is_refused(body: bytes) -> None:
    with pytest.raises(BenchError):
        PEER[FLOOR].deltas(body)


def test_the_aggregate_of_adk_is_no_delta() -> None:
    part = {"content": {"parts": [{"text": DELTA}]}, "partial": True}
    whole = {"content": {"parts": [{"text": DELTA * 2}]}, "partial": False}

    assert PEER[ADK].deltas(_stream(part, part, whole)) == 2


def test_a_delta_has_twenty_bytes_and_every_text_of_the_script_is_made_of_them(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.json"
    write_script(script, deltas=30)

    scenarios = ScriptedModel.from_file(script).scenarios
    fast, slow = scenarios.first(FAST, None, None), scenarios.first(SLOW, None, None)
    assert fast is not None
    assert slow is not None
    assert len(DELTA.encode()) == 20
    assert fast.responses[0].delta_chars == slow.responses[0].delta_chars == 20
    assert fast.responses[0].parts[0].text == DELTA * 30
    assert slow.responses[0].parts[0].text == DELTA * SLOW_DELTAS
    assert (slow.responses[0].wait_ms, slow.responses[0].delay_ms) == (1, 1)


def test_the_floor_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    floor = PEER[FLOOR]
    command = own_server("floor")
    with ServerProcess(command, tmp_path / "floor", {"BENCH_DELTAS": "30"}) as server:
        servers = {floor.command: server}
        samples = measure([floor], servers, rounds=3, deltas=30, progress=lambda _: None)
        assert server.resident_kib() > 1_000
        with pytest.raises(BenchError, match="sent 30 deltas, not 31"):
            measure([floor], servers, rounds=0, deltas=31, progress=lambda _: None)

    kept = samples[FLOOR]
    for values in (kept.per_delta, kept.whole, kept.first_delta, kept.client):
        assert len(values) == 3
        assert min(values) > 0


def test_a_server_that_ends_at_once_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    command = own_server("floor")
    with (
        ServerProcess(command, tmp_path / "floor", {"BENCH_DELTAS": "many"}) as server,
        pytest.raises(BenchError, match="invalid literal for int"),
    ):
        server.address()
