"""Limits of sockets for messages and idle time; each limit is a setting."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from sluicegate.server.settings import Settings
from sluicegate.wire.chunks import StartChunk
from tests.engine.loop_time import LoopTime
from tests.server.exchange import serving
from tests.server.fake_engine import MESSAGE, FakeEngine, answer, application
from tests.transports.socket_client import abort_frame, connected, opened, padded, send_frame


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


async def test_a_message_of_the_limit_is_read_and_one_byte_more_is_not(engine: FakeEngine) -> None:
    async with connected(engine, max_body_bytes=1000) as client:
        await client.send(padded(1000))
        assert (await client.all())[-1]["type"] == "end"
        await client.send(padded(1001))
        assert (await client.wait_closed())[0] == 1009
    assert len(engine.calls) == 1


async def test_the_application_enforces_the_limit_if_the_server_does_not(
    engine: FakeEngine,
) -> None:
    app = application(engine, max_body_bytes=1000)
    async with serving(app, Settings(port=0)) as address, opened(address) as client:
        await client.send(padded(1000))
        assert (await client.all())[-1]["type"] == "end"
        await client.send(padded(1001))
        assert await client.wait_closed() == (1009, "too_large")
    assert len(engine.calls) == 1


async def test_32_mebibytes_are_read_and_one_byte_more_is_not(engine: FakeEngine) -> None:
    limit = 32 * 1024 * 1024
    async with connected(engine) as client:
        await client.send(padded(limit))
        assert (await client.all())[-1]["type"] == "end"
        await client.send(padded(limit + 1))
        assert (await client.wait_closed())[0] == 1009
    assert len(engine.calls) == 1


@pytest.mark.parametrize("limit", [1, 3])
async def test_the_number_of_open_requests_is_a_setting(engine: FakeEngine, limit: int) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    async with connected(engine, max_requests_per_socket=limit) as client:
        for number in range(limit):
            await client.send(send_frame(f"r{number}"))
            assert (await client.next(f"r{number}"))["type"] == "chunk"
        [error] = await client.exchange(send_frame("one more"))
    assert error["code"] == "too_many_requests"


async def test_a_thousand_requests_are_too_many_frames(engine: FakeEngine) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    async with connected(engine) as client:
        for number in range(1000):
            await client.send(send_frame(f"r{number}"))
        assert await client.wait_closed() == (1008, "too_many_frames")
    assert len(engine.readers) <= 16


async def test_a_burst_is_read_and_one_frame_more_is_not(engine: FakeEngine) -> None:
    settings: dict[str, Any] = {"max_frames_burst": 5, "max_frames_per_second": 1}
    app = application(engine, **settings)
    async with contextlib.AsyncExitStack() as stack:
        address = await stack.enter_async_context(serving(app, Settings(port=0, **settings)))
        with LoopTime.of_running_loop() as time:
            # The socket keeps the clock of its handshake, so that no time allows one frame more.
            time.hold()
            client = await stack.enter_async_context(opened(address))
        await client.send(*(abort_frame() for _ in range(4)))
        assert await client.is_alive()
        await client.send(abort_frame())
        assert await client.wait_closed() == (1008, "too_many_frames")


@pytest.mark.parametrize(
    ("said", "code", "reason"),
    [
        ("", 1007, "malformed"),
        ("hello", 1007, "malformed"),
        ('data: {"type":"send"}\n\n', 1007, "malformed"),
        ("[]", 1008, "malformed"),
        ("{}", 1008, "malformed"),
        ('{"type":"send"}', 1008, "malformed"),
        (json.dumps(send_frame("r" * 129)), 1008, "malformed"),
        (b"", 1003, "text_only"),
        (json.dumps(send_frame()).encode(), 1003, "text_only"),
    ],
    ids=repr,
)
async def test_invalid_frames_close_only_their_own_socket(
    engine: FakeEngine, said: str | bytes, code: int, reason: str
) -> None:
    app = application(engine)
    async with serving(app) as address, opened(address) as good, opened(address) as bad:
        engine.steps = [StartChunk(message_id=MESSAGE), go_on := asyncio.Event()]
        await good.send(send_frame())
        await good.next()
        await bad.send(said)
        assert await bad.wait_closed() == (code, reason)
        go_on.set()
        assert (await good.all())[-1]["type"] == "end"
    assert len(engine.calls) == 1


async def test_a_socket_of_a_user_that_was_opened_early_is_only_idle(engine: FakeEngine) -> None:
    async with connected(engine, first_frame_timeout=0.01, idle_timeout=0.2) as client:
        assert await client.wait_closed() == (1000, "idle")


async def test_a_socket_without_a_user_is_closed(engine: FakeEngine) -> None:
    async def no_user(_: HTTPConnection) -> str | None:
        return None

    app = application(engine, authenticate=no_user, first_frame_timeout=0.05)
    async with serving(app) as address, opened(address) as client:
        assert await client.wait_closed() == (1008, "timeout")


async def test_unauthenticated_frames_do_not_keep_a_socket_open(
    engine: FakeEngine,
) -> None:
    async def no_user(_: HTTPConnection) -> str | None:
        return None

    app = application(engine, authenticate=no_user, first_frame_timeout=0.05)
    async with serving(app) as address, opened(address) as client:
        await client.send(send_frame(), abort_frame(), {"type": "x", "requestId": "r1"})
        assert await client.wait_closed() == (1008, "timeout")


async def test_a_socket_with_an_open_request_is_not_idle(engine: FakeEngine) -> None:
    async def by_frame(connection: HTTPConnection) -> str | None:
        return "ada" if "authorization" in connection.headers else None

    go_on = asyncio.Event()
    engine.steps = [StartChunk(message_id=MESSAGE), go_on, *answer("late")[1:]]
    times: dict[str, Any] = {"first_frame_timeout": 30, "idle_timeout": 0.05, "keep_alive": 0.02}
    app = application(engine, authenticate=by_frame, **times)
    async with serving(app) as address, opened(address) as client:
        # The socket cannot be idle before its first frame, which brings the user.
        await client.send(send_frame() | {"headers": {"authorization": "Bearer token"}})
        await client.next()
        for _ in range(10):
            await client.next("-")
        go_on.set()
        assert (await client.all())[-1]["type"] == "end"
        assert await client.wait_closed() == (1000, "idle")


async def test_an_idle_socket_receives_only_heartbeats(engine: FakeEngine) -> None:
    async with connected(engine, keep_alive=0.01) as client:
        for _ in range(3):
            assert await client.next("-") == {"type": "heartbeat", "requestId": "-"}
        assert (await client.exchange(send_frame()))[-1]["type"] == "end"
