"""The chat over a WebSocket: the protocol, concurrent requests, and how each request ends."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.engine.describe_exceptions import type_name
from sluicegate.errors import StoreError, StoreUnavailable, TurnRunning, Unavailable
from sluicegate.wire.chunks import StartChunk, TextDeltaChunk
from tests.server.exchange import PATIENCE, serving, serving_alone
from tests.server.fake_engine import MESSAGE, FakeEngine, answer, application
from tests.transports.socket_client import (
    SocketClient,
    abort_frame,
    chunks,
    opened,
    resume_frame,
    send_frame,
    until_closed,
)

SECRET = "sk-very-secret"

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_send_is_answered_by_numbered_chunks_and_an_end(
    engine: FakeEngine, client: SocketClient
) -> None:
    engine.steps = answer("Hel", "lo")
    frames = await client.exchange(send_frame())
    assert [chunk["type"] for chunk in chunks(frames)] == [
        "start",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "finish",
    ]
    assert {frame["requestId"] for frame in frames} == {"r1"}
    assert frames[-1] == {"type": "end", "requestId": "r1"}
    assert engine.readers[0].times_closed == 1
    assert not engine.readers[0].aborted


async def test_the_request_reaches_the_engine_unchanged(
    engine: FakeEngine, client: SocketClient
) -> None:
    await client.exchange(send_frame(text="Hello", chat="my-chat") | {"messageId": "m1"})
    [(name, request, user, caller)] = engine.calls
    assert (name, user, caller) == ("start", "local", RequestingClient(major=7))
    assert (request.chat_id, request.message_id) == ("my-chat", "m1")
    assert request.user_message.texts == ("Hello",)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, RequestingClient(major=7)),
        ({"x-ai-sdk": "6"}, RequestingClient(major=6)),
        ({"X-AI-SDK": "7", "X-Release": "preview"}, RequestingClient(major=7, release="preview")),
        ({"x-release": "progressive"}, RequestingClient(major=7, release="progressive")),
    ],
)
@pytest.mark.parametrize("frame", [send_frame(), resume_frame()], ids=["send", "resume"])
async def test_the_reader_id_of_a_frame_reaches_the_engine(
    engine: FakeEngine,
    client: SocketClient,
    frame: dict[str, Any],
    headers: dict[str, str],
    expected: RequestingClient,
) -> None:
    await client.exchange({**frame, "headers": headers})
    assert engine.calls[0][-1] == expected
    assert engine.calls[0][-1].via == "websocket"


async def test_a_resume_replays_the_stream_from_the_start(
    engine: FakeEngine, client: SocketClient
) -> None:
    start, *frames = await client.exchange(resume_frame() | {"lastSequence": 3})
    assert start == {"type": "start", "requestId": "r1"}
    assert chunks(frames)[0] == {"type": "start", "messageId": MESSAGE}
    assert frames[-1]["type"] == "end"
    assert engine.calls == [("resume", "c1", "local", RequestingClient(major=7))]


async def test_nothing_to_resume_is_answered_with_no_active_only(
    engine: FakeEngine, client: SocketClient
) -> None:
    engine.runs = False
    assert await client.exchange(resume_frame()) == [{"type": "no-active", "requestId": "r1"}]


@pytest.mark.parametrize("refusal", [TurnRunning(), Unavailable(), TurnRunning("Wait a bit.")])
@pytest.mark.parametrize("frame", [send_frame(), resume_frame()], ids=["send", "resume"])
async def test_a_refusal_of_the_engine_is_an_error_frame_with_its_code(
    engine: FakeEngine,
    client: SocketClient,
    frame: dict[str, Any],
    refusal: TurnRunning | Unavailable,
) -> None:
    engine.refusal = refusal
    assert await client.exchange(frame) == [
        {
            "type": "error",
            "requestId": "r1",
            "errorText": refusal.message,
            "code": refusal.code,
        }
    ]
    engine.refusal = None
    assert (await client.exchange(frame))[-1]["type"] == "end"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"id": "a b"}, "malformed"),
        ({"messages": "x"}, "malformed"),
        ({"messages": []}, "malformed"),
        ({"messages": [{"role": "user"}]}, "malformed"),
        ({"messages": [{"id": "u1", "role": "user", "parts": []}]}, "malformed"),
        ({"trigger": "delete-message"}, "malformed"),
        ({"messageId": 1}, "malformed"),
        ({"headers": {"x-ai-sdk": "5"}}, "malformed"),
        ({"headers": {"x-release": "all"}}, "malformed"),
        ({"type": "ping"}, "malformed"),
    ],
    ids=repr,
)
async def test_a_bad_request_is_refused_and_the_socket_stays_open(
    engine: FakeEngine, client: SocketClient, changes: dict[str, Any], code: str
) -> None:
    [error] = await client.exchange({**send_frame(), **changes})
    assert (error["type"], error["code"]) == ("error", code)
    assert engine.calls == []
    assert (await client.exchange(send_frame()))[-1]["type"] == "end"


@pytest.mark.parametrize(
    "failure", [ValueError(SECRET), StoreError(SECRET), RuntimeError(SECRET)], ids=repr
)
@pytest.mark.parametrize("when", ["start", "read"])
async def test_a_failure_ends_its_request_with_the_id_of_its_log_line(
    engine: FakeEngine,
    client: SocketClient,
    failure: Exception,
    when: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if when == "start":
        engine.refusal = failure
    else:
        engine.steps = [StartChunk(message_id=MESSAGE), failure]
    error = (await client.exchange(send_frame()))[-1]
    assert (error["type"], error["code"]) == ("error", "internal")
    assert SECRET not in str(error) + caplog.text
    [error_id] = re.findall(r"\b[0-9a-f]{8}\b", error["errorText"])
    assert f"error={error_id} {type_name(type(failure))} at " in caplog.text
    engine.__init__()  # type: ignore[misc]
    assert (await client.exchange(send_frame("r2")))[-1]["type"] == "end"


async def test_an_unavailable_store_is_not_reported_as_an_internal_error(
    engine: FakeEngine, client: SocketClient, caplog: pytest.LogCaptureFixture
) -> None:
    engine.refusal = StoreUnavailable(SECRET)
    [error] = await client.exchange(send_frame())
    assert (error["code"], error["errorText"]) == ("unavailable", Unavailable.sentence)
    assert "a store is unavailable" in caplog.text
    assert SECRET not in str(error) + caplog.text


async def test_a_chunk_is_sent_immediately(engine: FakeEngine, client: SocketClient) -> None:
    go_on = asyncio.Event()
    first, *rest = answer("Hello")
    engine.steps = [first, go_on, *rest]
    await client.send(send_frame())
    assert (await client.next())["chunk"]["type"] == "start"
    go_on.set()
    assert (await client.all())[-1]["type"] == "end"


async def test_requests_of_many_chats_run_concurrently_on_one_socket(
    engine: FakeEngine, client: SocketClient
) -> None:
    gates = [asyncio.Event() for _ in range(16)]
    for number, gate in enumerate(gates):
        engine.steps = [StartChunk(message_id=MESSAGE), gate, *answer(f"text {number}")[1:]]
        await client.send(send_frame(f"r{number}", chat=f"c{number}"))
        assert (await client.next(f"r{number}"))["sequence"] == 0
    for number in reversed(range(16)):
        gates[number].set()
        frames = await client.all(f"r{number}")
        assert frames[0]["sequence"] == 1
        assert f"text {number}" in str(frames)
        assert frames[-1]["type"] == "end"
    assert [call[1].chat_id for call in engine.calls] == [f"c{number}" for number in range(16)]


async def test_a_request_above_the_limit_of_open_requests_is_refused(
    engine: FakeEngine, client: SocketClient
) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    await client.send(*(send_frame(f"r{number}") for number in range(16)))
    [error] = await client.exchange(send_frame("one more"))
    assert (error["type"], error["code"]) == ("error", "too_many_requests")
    assert len(engine.readers) == 16
    engine.steps = answer("Hello")
    await client.send(abort_frame("r3"))
    assert (await client.exchange(send_frame("one more")))[-1]["type"] == "end"


async def test_ended_requests_do_not_count_as_open(
    engine: FakeEngine, client: SocketClient
) -> None:
    for _ in range(40):
        assert (await client.exchange(send_frame()))[-1]["type"] == "end"
    assert [reader.times_closed for reader in engine.readers] == [1] * 40


async def test_a_duplicate_request_id_is_refused_and_ends_the_request(
    engine: FakeEngine, client: SocketClient
) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    await client.send(send_frame())
    await client.next()
    [error] = await client.exchange(send_frame(text="again"))
    assert (error["type"], error["code"]) == ("error", "malformed")
    await until_closed(engine)
    assert [call[0] for call in engine.calls] == ["start"]
    assert not engine.readers[0].aborted
    engine.steps = answer("Hello")
    assert len(chunks(await client.exchange(send_frame()))) == 5


async def test_a_bad_frame_under_an_open_request_ends_it_with_one_error(
    engine: FakeEngine, client: SocketClient
) -> None:
    go_on = asyncio.Event()
    engine.steps = [StartChunk(message_id=MESSAGE), go_on, *answer("late")[1:]]
    await client.send(send_frame())
    await client.next()
    await client.send({"type": "pause", "requestId": "r1"})
    assert [frame["type"] for frame in await client.all()] == ["error"]
    await until_closed(engine)
    go_on.set()
    assert await client.is_alive()


async def test_a_frame_of_many_megabytes_does_not_block_other_requests(
    engine: FakeEngine, client: SocketClient
) -> None:
    large = send_frame("large") | {"metadata": "x" * 3_000_000}
    await client.send(large, send_frame("small"))
    assert (await client.all("small"))[-1]["type"] == "end"
    assert (await client.all("large"))[-1]["type"] == "end"


async def test_a_client_that_does_not_read_blocks_no_other_client(engine: FakeEngine) -> None:
    engine.steps = [
        StartChunk(message_id=MESSAGE),
        *(TextDeltaChunk(id="t", delta="x" * 100_000) for _ in range(300)),
    ]
    app = application(engine)
    async with serving(app) as address, opened(address, max_queue=1) as deaf:
        await deaf.send(send_frame())
        async with asyncio.timeout(PATIENCE):
            await engine.has_readers(1)
        engine.steps = answer("Hello")
        async with opened(address) as client:
            assert (await client.exchange(send_frame()))[-1]["type"] == "end"
        assert engine.readers[0].times_closed == 0
        assert (await deaf.all())[-1]["type"] == "end"


async def test_the_socket_protocol_is_the_same_under_every_prefix(engine: FakeEngine) -> None:
    app = application(engine, prefix="/v1")
    async with serving(app) as address, opened(address, "/v1/chat/ws") as client:
        assert (await client.exchange(send_frame()))[-1]["type"] == "end"


async def test_a_mounted_application_has_the_socket_too(engine: FakeEngine) -> None:
    parent = Starlette(routes=[Mount("/agents/one", application(engine).app)])
    async with (
        serving_alone(parent) as address,
        opened(address, "/agents/one/api/chat/ws") as client,
    ):
        assert (await client.exchange(send_frame()))[-1]["type"] == "end"
