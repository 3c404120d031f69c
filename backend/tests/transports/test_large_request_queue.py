"""Large bodies and frames: the count of their values, and how many are read at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.errors import TooManyRequests
from sluicegate.transports.large_request_queue import LARGE, LargeRequests
from tests.server.exchange import PATIENCE, chat_body, over_socket, serving
from tests.server.fake_engine import FakeEngine, application
from tests.transports.socket_client import connected, opened, send_frame
from tests.transports.test_live_socket import server


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


def with_values(frame: dict[str, Any], count: int, *, spaces: int = 0) -> bytes:
    """The frame or body as JSON with exactly ``count`` values."""
    extra = [0] * (count - values_of(frame) - 1)
    return json.dumps(frame | {"decoration": extra}).encode() + b" " * spaces


def values_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(values_of, inner))


SPACES = pytest.mark.parametrize("spaces", [0, LARGE], ids=["small", "large"])


@SPACES
async def test_the_values_of_a_body_are_counted(engine: FakeEngine, spaces: int) -> None:
    app = application(engine, max_json_values=100)
    async with serving(app) as address, over_socket(address) as http:
        for count, status in ((100, 200), (101, 413)):
            content = with_values(chat_body(), count, spaces=spaces)
            headers = {"content-type": "application/json"}
            response = await http.post("/api/chat", content=content, headers=headers)
            assert response.status_code == status
    assert response.headers["x-error-code"] == "too_large"
    assert response.text == (
        "The body has more than 100 JSON values; send the last message without the ones before it."
    )
    assert len(engine.calls) == 1


@SPACES
async def test_the_values_of_a_frame_are_counted(engine: FakeEngine, spaces: int) -> None:
    async with connected(engine, max_json_values=100) as client:
        await client.send(with_values(send_frame(), 100, spaces=spaces).decode())
        assert (await client.all())[-1]["type"] == "end"
        await client.send(with_values(send_frame("r2"), 101, spaces=spaces).decode())
        [error] = await client.all("r2")
        assert (error["type"], error["code"]) == ("error", "too_large")
        assert await client.is_alive()
    assert len(engine.calls) == 1


async def test_the_values_of_a_live_frame_are_counted(tmp_path: Path) -> None:
    async with (
        server(tmp_path, max_json_values=100) as (address, _),
        opened(address, "/api/live?chat=c1") as client,
    ):
        await client.send(with_values(send_frame(), 101).decode())
        [error] = await client.all()
        assert (error["type"], error["code"]) == ("error", "too_large")
        assert (await client.exchange(send_frame("r2")))[-1]["type"] == "end"


async def test_a_large_invalid_frame_is_answered(engine: FakeEngine) -> None:
    async with connected(engine) as client:
        await client.send(json.dumps(send_frame())[:-1] + " " * LARGE)
        [error] = await client.all()
        assert (error["type"], error["code"]) == ("error", "malformed")
        assert await client.is_alive()


async def test_one_large_body_of_a_user_is_read_at_a_time(engine: FakeEngine) -> None:
    async def user(connection: Any) -> str:
        return str(connection.headers["x-user"])

    begun, may_end = asyncio.Event(), asyncio.Event()

    async def first() -> AsyncIterator[bytes]:
        yield json.dumps(chat_body(chat="first")).encode() + b" " * LARGE
        begun.set()
        await may_end.wait()
        yield b" "

    app = application(engine, authenticate=user)
    async with serving(app) as address, over_socket(address, timeout=PATIENCE) as http:

        def post(name: str, content: Any) -> asyncio.Task[Any]:
            headers = {"content-type": "application/json", "x-user": name}
            return asyncio.create_task(http.post("/api/chat", content=content, headers=headers))

        def large(chat: str) -> bytes:
            return json.dumps(chat_body(chat=chat)).encode() + b" " * LARGE

        one = post("ada", first())
        await begun.wait()
        two = post("ada", large("second"))
        # Small requests, and large ones of others, do not wait.
        assert (await post("bob", large("other"))).status_code == 200
        assert (await post("ada", json.dumps(chat_body(chat="small")))).status_code == 200
        may_end.set()
        assert [(await task).status_code for task in (one, two)] == [200, 200]
    assert [call[1].chat_id for call in engine.calls] == ["other", "small", "first", "second"]


async def test_the_thread_that_parses_pauses_for_the_event_loop() -> None:
    large = LargeRequests(at_once=1, max_values=10)
    data = b'"' + b"x" * 64 * LARGE + b'"'
    began, used = time.perf_counter(), 0.0

    def parse() -> object:
        nonlocal used
        begun = time.thread_time()
        value = large.loads(data)
        used = time.thread_time() - begun
        return value

    assert await large.run(len(data), parse) == "x" * 64 * LARGE
    # At least a millisecond after each step of 64 KiB.
    assert time.perf_counter() - began - used >= 0.064


async def test_admissions_are_given_in_order_one_to_each_user() -> None:
    large = LargeRequests(at_once=2, max_values=1)
    ada, again, bob, eve = (large.request(user) for user in ("ada", "ada", "bob", "eve"))
    assert [each.done() for each in (ada, again, bob, eve)] == [True, False, True, False]
    large.release("bob", bob)
    assert [each.done() for each in (again, eve)] == [False, True]
    large.release("ada", again)
    large.release("ada", ada)
    assert large.request("ada").done()
    with pytest.raises(TooManyRequests):
        async with large.admission("ada", within=0.01):
            pass
    large.release("eve", eve)
    async with large.admission("eve", within=PATIENCE):
        assert not large.request("eve").done()
