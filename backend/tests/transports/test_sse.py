"""The chat over server-sent events, in process and over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest
from sse_starlette.sse import AppStatus
from starlette.types import Message, Receive, Scope, Send

from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.errors import StoreError, TurnRunning
from sluicegate.server.security_headers import HEADERS as SECURITY_HEADERS
from sluicegate.transports.open_streams import KEEP_ALIVE, OpenStreams
from sluicegate.transports.slow_clients import WriteLimits
from sluicegate.transports.sse import EventStream
from sluicegate.wire.chunks import StartChunk
from tests.server.exchange import PATIENCE, chat_body, chunks, client, over_socket, serving
from tests.server.fake_engine import (
    MESSAGE,
    FakeEngine,
    FakeReader,
    Step,
    answer,
    application,
    fake_app,
)

SECRET = "sk-very-secret"


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


async def test_a_turn_is_streamed_as_a_comment_its_chunks_and_the_terminator(
    engine: FakeEngine,
) -> None:
    engine.steps = answer("Hel", "lo\n\ndata: x")
    async with client(fake_app(engine)) as http:
        response = await http.post("/api/chat", json=chat_body())
    assert response.status_code == 200
    assert response.content == (
        b": stream-open\n\n"
        b'data: {"type":"start","messageId":"msg-1"}\n\n'
        b'data: {"type":"text-start","id":"t"}\n\n'
        b'data: {"type":"text-delta","id":"t","delta":"Hel"}\n\n'
        b'data: {"type":"text-delta","id":"t","delta":"lo\\n\\ndata: x"}\n\n'
        b'data: {"type":"text-end","id":"t"}\n\n'
        b'data: {"type":"finish","finishReason":"stop","messageMetadata":{}}\n\n'
        b"data: [DONE]\n\n"
    )


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_stream_has_exactly_the_stream_headers(engine: FakeEngine, method: str) -> None:
    async with client(fake_app(engine)) as http:
        if method == "POST":
            response = await http.post("/api/chat", json=chat_body())
        else:
            response = await http.get("/api/chat/c1/stream")
    assert dict(response.headers) == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
        "x-vercel-ai-ui-message-stream": "v1",
        **SECURITY_HEADERS,
    }


async def test_the_request_reaches_the_engine_unchanged(engine: FakeEngine) -> None:
    async with client(fake_app(engine)) as http:
        await http.post("/api/chat", json=chat_body("Hello", chat="my-chat"))
    [(name, request, user, caller)] = engine.calls
    assert (name, user, caller, caller.via) == ("start", "local", RequestingClient(major=6), "sse")
    assert request.chat_id == "my-chat"
    assert request.user_message.texts == ("Hello",)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, RequestingClient(major=6)),
        ({"x-ai-sdk": "6"}, RequestingClient(major=6)),
        ({"x-ai-sdk": "7"}, RequestingClient(major=7)),
        ({"x-ai-sdk": "7", "x-release": "preview"}, RequestingClient(major=7, release="preview")),
        ({"x-release": "deferred"}, RequestingClient(major=6, release="deferred")),
        ({"x-release": "progressive"}, RequestingClient(major=6, release="progressive")),
    ],
)
@pytest.mark.parametrize("path", ["chat", "chat/c1/stream"])
async def test_the_reader_id_of_the_headers_reaches_the_engine(
    engine: FakeEngine, path: str, headers: dict[str, str], expected: RequestingClient
) -> None:
    async with client(fake_app(engine), headers=headers) as http:
        if path == "chat":
            await http.post("/api/chat", json=chat_body())
        else:
            await http.get(f"/api/{path}")
    assert engine.calls[0][-1] == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("x-ai-sdk", "5"), ("x-ai-sdk", ""), ("x-ai-sdk", "7.0"), ("x-release", "all")],
)
@pytest.mark.parametrize("path", ["chat", "chat/c1/stream"])
async def test_an_unknown_header_value_is_refused(
    engine: FakeEngine, path: str, name: str, value: str
) -> None:
    async with client(fake_app(engine), headers={name: value}) as http:
        request = (
            http.post("/api/chat", json=chat_body()) if path == "chat" else http.get(f"/api/{path}")
        )
        response = await request
    assert (response.status_code, response.headers["x-error-code"]) == (400, "malformed")
    assert name in response.text
    assert engine.calls == []


async def test_nothing_to_resume_is_204_without_a_body(engine: FakeEngine) -> None:
    engine.runs = False
    async with client(fake_app(engine)) as http:
        response = await http.get("/api/chat/c1/stream")
    assert (response.status_code, response.content) == (204, b"")
    assert engine.calls == [("resume", "c1", "local", RequestingClient(major=6))]


async def test_a_resumed_stream_is_framed_like_a_new_one(engine: FakeEngine) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.get("/api/chat/c1/stream")
    assert [chunk["type"] for chunk in chunks(response.text)] == [
        "start",
        "text-start",
        "text-delta",
        "text-end",
        "finish",
    ]


async def test_stop_reaches_the_engine_and_returns_no_body(engine: FakeEngine) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.post("/api/chat/c1/stop")
    assert (response.status_code, response.content) == (204, b"")
    assert engine.calls == [("stop", "c1", "local")]


async def test_a_refusal_of_the_engine_precedes_any_stream(engine: FakeEngine) -> None:
    engine.refusal = TurnRunning()
    async with client(fake_app(engine)) as http:
        response = await http.post("/api/chat", json=chat_body())
    assert (response.status_code, response.headers["x-error-code"]) == (409, "turn_running")
    assert response.headers["content-type"] == "text/plain; charset=utf-8"


async def test_head_does_not_start_a_resume(engine: FakeEngine) -> None:
    async with client(fake_app(engine)) as http:
        response = await http.head("/api/chat/c1/stream")
    assert response.status_code == 405
    assert engine.calls == []


@pytest.mark.parametrize("path", ["chat/{}/stream", "chat/{}/stop"])
@pytest.mark.parametrize("chat", ["%20c1", "c%00", "c%0a", "a%7Cb", "x" * 129, "c%C3%A9"])
async def test_an_impossible_chat_id_is_not_found(engine: FakeEngine, path: str, chat: str) -> None:
    method = "GET" if path.endswith("stream") else "POST"
    async with client(fake_app(engine)) as http:
        response = await http.request(method, f"/api/{path.format(chat)}")
    assert (response.status_code, response.headers["x-error-code"]) == (404, "unknown")
    assert engine.calls == []


async def test_a_stream_closes_its_reader_exactly_once(engine: FakeEngine) -> None:
    async with client(fake_app(engine)) as http:
        await http.post("/api/chat", json=chat_body())
    assert engine.readers[0].times_closed == 1


class Stream:
    """One open response over a real socket."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._pieces = response.aiter_bytes()
        self.text = ""

    async def read_until(self, mark: str) -> str:
        async with asyncio.timeout(PATIENCE):
            while mark not in self.text:
                self.text += (await anext(self._pieces)).decode()
        return self.text

    async def read_all(self) -> str:
        async with asyncio.timeout(PATIENCE):
            async for piece in self._pieces:
                self.text += piece.decode()
        return self.text


@contextlib.asynccontextmanager
async def streaming(engine: FakeEngine, **settings: Any) -> AsyncIterator[Stream]:
    """A streaming response from a dedicated server."""
    async with (
        serving(application(engine, **settings)) as address,
        over_socket(address) as http,
        http.stream("POST", "/api/chat", json=chat_body()) as response,
    ):
        assert response.status_code == 200
        yield Stream(response)


async def test_comments_are_sent_at_the_start_and_during_silence(engine: FakeEngine) -> None:
    go_on = asyncio.Event()
    engine.steps = [go_on, *answer("Hello")]
    async with streaming(engine, keep_alive=0.01) as stream:
        assert await stream.read_until("\n\n") == ": stream-open\n\n"
        silent = await stream.read_until(": keep-alive\n\n: keep-alive\n\n")
        assert "data:" not in silent
        go_on.set()
        assert (await stream.read_all()).endswith("data: [DONE]\n\n")


async def test_no_keep_alive_comment_is_sent_before_its_interval(engine: FakeEngine) -> None:
    loop = asyncio.get_running_loop()
    silence = 0.05
    said = [asyncio.Event() for _ in range(100)]
    for number, each in enumerate(said):
        loop.call_later(number * silence / 10, each.set)
    first, begin, delta, *_ = answer("a")
    pieces: list[Step] = [step for event in said for step in (event, delta)]
    engine.steps = [first, begin, *pieces, *answer("a")[3:]]
    last = loop.time()

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        nonlocal last
        if message.get("body") == KEEP_ALIVE:
            assert loop.time() - last >= silence - 0.001
        last = loop.time()

    stream = EventStream(
        FakeReader(engine.steps),  # type: ignore[arg-type]
        open_streams=OpenStreams(),
        keep_alive=silence,
        limits=WriteLimits(1_000_000, 60.0),
    )
    scope = {"type": "http", "asgi": {"version": "3.0"}, "method": "POST"}
    await stream(scope, receive, send)


async def test_a_chunk_is_sent_immediately(engine: FakeEngine) -> None:
    go_on = asyncio.Event()
    first, *rest = answer("Hello")
    engine.steps = [first, go_on, *rest]
    async with streaming(engine) as stream:
        assert "text-start" not in await stream.read_until('"start"')
        go_on.set()
        await stream.read_all()


async def test_a_disconnect_closes_the_reader_and_stops_no_turn(
    engine: FakeEngine,
) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    async with serving(application(engine)) as address:
        async with (
            over_socket(address) as http,
            http.stream("POST", "/api/chat", json=chat_body()) as response,
        ):
            await Stream(response).read_until('"start"')
        async with asyncio.timeout(PATIENCE):
            await engine.readers[0].closed.wait()
    assert [call[0] for call in engine.calls] == ["start"]
    assert engine.readers[0].times_closed == 1


async def test_a_cancelled_response_closes_its_reader_too(
    engine: FakeEngine,
) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    begun = asyncio.Event()

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        async def noticing(message: Message) -> None:
            await send(message)
            begun.set()

        await fake_app(engine)(scope, receive, noticing)

    async with client(watched) as http, anyio.create_task_group() as tasks:
        tasks.start_soon(functools.partial(http.post, "/api/chat", json=chat_body()))
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert engine.readers[0].times_closed == 1


@pytest.mark.parametrize(
    "failure",
    [ValueError(SECRET), StoreError(SECRET), TurnRunning(SECRET), RuntimeError(SECRET)],
    ids=lambda error: type(error).__name__,
)
async def test_a_failing_reader_aborts_the_connection(
    engine: FakeEngine, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), failure]
    async with streaming(engine) as stream:
        with pytest.raises(httpx.RemoteProtocolError):
            await stream.read_all()
        assert "[DONE]" not in stream.text
    assert engine.readers[0].times_closed == 1
    assert SECRET not in caplog.text
    assert type(failure).__name__ in caplog.text


async def test_a_shutdown_of_any_server_aborts_its_streams(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    async with streaming(engine) as stream:
        # The effect of a signal on a server without support for the application.
        monkeypatch.setattr(AppStatus, "should_exit", True)
        with pytest.raises(httpx.RemoteProtocolError):
            await stream.read_all()
    assert engine.readers[0].times_closed == 1


async def test_a_server_shutdown_aborts_its_streams(engine: FakeEngine) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    async with httpx.AsyncClient(timeout=PATIENCE) as http:
        async with serving(application(engine)) as (host, port):
            request = http.build_request("POST", f"http://{host}:{port}/api/chat", json=chat_body())
            stream = Stream(await http.send(request, stream=True))
            await stream.read_until('"start"')
        with pytest.raises(httpx.RemoteProtocolError):
            await stream.read_all()
    assert engine.readers[0].times_closed == 1


async def test_several_streams_run_concurrently(engine: FakeEngine) -> None:
    go_on = asyncio.Event()
    engine.steps = [StartChunk(message_id=MESSAGE), go_on, *answer("late")[1:]]
    async with (
        serving(application(engine)) as address,
        over_socket(address) as http,
    ):
        waiting = [asyncio.create_task(http.post("/api/chat", json=chat_body())) for _ in range(5)]
        async with asyncio.timeout(PATIENCE):
            while len(engine.readers) < 5:
                await http.get("/healthz")
            go_on.set()
            responses = await asyncio.gather(*waiting)
    expected: list[dict[str, Any]] = chunks(responses[0].text)
    assert expected[-1]["type"] == "finish"
    assert [chunks(response.text) for response in responses] == [expected] * 5
