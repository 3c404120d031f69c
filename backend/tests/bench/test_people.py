"""The people of the benchmark, and the streams that they read."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from bench.client import Address
from bench.people import Habits, Person, Sample, percentile, shortened
from bench.people_streams import read_frames, request_of
from bench.script import BEFORE_CALL, DELTA, paced
from bench.server_process import tree_seconds


def test_the_deltas_of_a_card_and_those_after_it_are_those_of_the_answer() -> None:
    assert paced("say 90", is_called=False) == (90, False)
    assert paced("pay 90", is_called=False) == (BEFORE_CALL, True)
    assert paced("pay 90", is_called=True) == (90 - BEFORE_CALL, False)


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_frames_are_read_wherever_they_are_cut(size: int) -> None:
    text = b"x" * size
    length = bytes([size]) if size < 126 else b"\x7e" + size.to_bytes(3, "big")[1:]
    if size > 65_535:
        length = b"\x7f" + size.to_bytes(8, "big")
    sent = b"\x81" + length + text + b"\x89\x01p"
    for cut in {1, 2, 3, 5, len(sent) - 1, len(sent)}:
        assert _frames(sent[:cut], sent[cut:]) == [(0x1, text), (0x9, b"p")]


def _frames(*pieces: bytes) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    rest = b""
    for piece in pieces:
        rest = read_frames(rest + piece, lambda kind, data: found.append((kind, data)))
    assert rest == b""
    return found


def test_a_percentile_of_nothing_is_none() -> None:
    assert percentile([], 0.99) is None
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert shortened(Sample(first=[1.0, 2.0], failures=["x"]))["first"] == [2.0, 2.0, 2.0]


def test_the_cpu_of_a_process_includes_that_of_its_children() -> None:
    async def measured() -> tuple[float, float]:
        code = (
            "import subprocess,sys; subprocess.run([sys.executable, '-c', sys.argv[1]]);"
            "print('ended', flush=True); input()"
        )
        burn = "import time\nwhile time.process_time() < 0.3: pass"
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, burn, stdin=pipe, stdout=pipe
        )
        assert process.stdout is not None
        await process.stdout.readline()
        spent = tree_seconds(process.pid)
        await process.communicate(b"\n")
        return spent, 0.3

    spent, least = asyncio.run(measured())
    assert spent >= least - 0.02


class Answering:
    """A server of one scripted response after the other."""

    def __init__(self, *responses: list[dict[str, Any]] | None) -> None:
        self._responses = list(responses)
        self.requests: list[tuple[str, Any]] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = next((line[16:] for line in head.split("\r\n") if line.startswith("content-l")), "0")
        body = await reader.readexactly(int(size))
        self.requests.append((head.partition(" HTTP")[0], json.loads(body or b"null")))
        response = self._responses.pop(0)
        if response is None:
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        else:
            events = [f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n" for chunk in response]
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + "".join(events).encode())
            if response and response[-1]["type"] in ("finish", "error"):
                writer.write(b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()


DELTAS: list[dict[str, Any]] = [{"type": "text-delta", "id": "t", "delta": DELTA}]
FINISH: dict[str, Any] = {"type": "finish"}
CARD: list[dict[str, Any]] = [
    {"type": "start", "messageId": "a1"},
    *DELTAS,
    {"type": "tool-input-available", "toolCallId": "c1", "input": {"amount": 5}},
    {"type": "tool-approval-request", "approvalId": "p1", "toolCallId": "c1"},
    FINISH,
]


async def talked(*responses: list[dict[str, Any]] | None) -> tuple[Sample, list[tuple[str, Any]]]:
    """What a person sees who gets these responses to one message, and the requests."""
    answering, sample = Answering(*responses), Sample()
    async with await asyncio.start_server(answering.answer, "127.0.0.1", 0) as server:
        address = Address(*server.sockets[0].getsockname())
        # This one uses SSE, and its first answer is not cut.
        person = Person(4, Habits(address, "sluicegate", 0.01), lambda: sample)
        await person.exchange()
    return sample, answering.requests


async def test_an_answer_is_counted_and_timed() -> None:
    sample, [(request, body)] = await talked([*DELTAS * 3, FINISH])

    assert request == "POST /api/chat"
    assert body["messages"][0]["role"] == "user"
    assert (sample.turns, sample.deltas, len(sample.first), len(sample.gaps)) == (1, 3, 1, 2)
    assert sample.failures == []


async def test_a_card_is_approved() -> None:
    sample, [_, (_, body)] = await talked(CARD, [*DELTAS, FINISH])

    part = body["messages"][-1]["parts"][-1]
    assert (part["toolCallId"], part["approval"]) == ("c1", {"id": "p1", "approved": True})
    assert body["messageId"] == "a1"
    assert (sample.turns, sample.approvals) == (2, 1)


async def test_a_card_in_a_resumed_answer_is_not_approved_again() -> None:
    sample, requests = await talked(CARD, DELTAS, [*CARD[:-1], *DELTAS, FINISH])

    assert [request.partition(" ")[0] for request, _ in requests] == ["POST", "POST", "GET"]
    assert (sample.approvals, sample.failures) == (1, [])


async def test_an_answer_that_breaks_off_is_resumed_and_its_deltas_count_once() -> None:
    sample, requests = await talked(DELTAS * 2, [*DELTAS * 5, FINISH])

    chat = requests[0][1]["id"]
    assert [request for request, _ in requests] == [
        "POST /api/chat",
        f"GET /api/chat/{chat}/stream",
    ]
    assert (sample.turns, sample.deltas, len(sample.lost)) == (1, 5, 1)
    assert len(sample.restored) == 1
    assert sample.repeated == 0


async def test_an_answer_that_ends_with_an_error_is_asked_for_again() -> None:
    error = {"type": "error", "errorText": "It has failed."}
    sample, requests = await talked(DELTAS, [*DELTAS, error], [*DELTAS, FINISH])

    assert requests[2] == requests[0]
    assert (sample.repeated, len(sample.restored), sample.failures) == (1, 1, [])


def test_a_request_has_the_length_of_its_body() -> None:
    sent = request_of("POST", Address("h", 1), "/x", {"a": "b"}, b"{}")

    assert sent.startswith(b"POST /x HTTP/1.1\r\nhost: h:1\r\na: b\r\n")
    assert sent.endswith(b"content-length: 2\r\n\r\n{}")
