"""The server behind a rewrite of Next.js, configured as documented."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import HTTPConnection

from sluicegate.wire.chunks import StartChunk
from tests.server.exchange import PATIENCE, chat_body, chunks, over_socket, serving, serving_alone
from tests.server.fake_engine import MESSAGE, FakeEngine, answer, application
from tests.server.next_proxy import NextConfig, NextProxy

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to"
CONFIG = NextConfig.read(HOW_TO / "snippets" / "next.config.ts")
PAGE = "http://localhost:3000"


@contextlib.asynccontextmanager
async def behind_next(
    engine: FakeEngine, config: NextConfig = CONFIG, **settings: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the server through the proxy, with the Origin of the page."""
    headers = {"origin": PAGE, "accept-encoding": "gzip"}
    async with (
        serving(application(engine, **settings)) as agent,
        over_socket(agent, timeout=30) as to_agent,
        serving_alone(NextProxy(config, to_agent)) as front,
        over_socket(front, headers=headers) as http,
    ):
        yield http


def test_the_documentation_shows_the_configuration_that_is_tested() -> None:
    file = HOW_TO / "snippets" / "next.config.ts"
    assert f"```ts\n// next.config.ts\n{file.read_text('utf-8')}```" in (
        HOW_TO / "next-js.md"
    ).read_text("utf-8")
    sources = [source for source, _ in CONFIG.rewrites]
    assert sources == ["/api/chat/:path*", "/api/chats/:path*"]
    assert not CONFIG.compress


async def test_a_chunk_is_forwarded_immediately(engine: FakeEngine) -> None:
    go_on = asyncio.Event()
    first, *rest = answer("Hello")
    engine.steps = [first, go_on, *rest]
    async with (
        behind_next(engine) as http,
        http.stream("POST", "/api/chat", json=chat_body()) as response,
    ):
        text = ""
        async with asyncio.timeout(PATIENCE):
            async for piece in response.aiter_text():
                text += piece
                if '"start"' in text:
                    go_on.set()
    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert chunks(text)[-1]["type"] == "finish"


async def test_with_compression_nothing_is_forwarded_until_the_end(engine: FakeEngine) -> None:
    go_on = asyncio.Event()
    first, *rest = answer("Hello")
    engine.steps = [first, go_on, *rest]
    async with (
        behind_next(engine, replace(CONFIG, compress=True)) as http,
        http.stream("POST", "/api/chat", json=chat_body()) as response,
    ):
        reading = asyncio.create_task(response.aread())
        async with asyncio.timeout(PATIENCE):
            while not engine.readers:
                await http.get("/api/chats")
        # The opening comment of the stream was sent, but the proxy buffers it.
        assert response.num_bytes_downloaded == 0
        go_on.set()
        assert chunks((await reading).decode())[-1]["type"] == "finish"


async def test_only_the_api_is_forwarded(engine: FakeEngine) -> None:
    engine.chats["local", "c1"] = {"id": "c1"}
    engine.files["local", "c1", "a b.png"] = (b"content", "image/png")
    engine.runs = False
    async with behind_next(engine) as http:
        assert (await http.get("/api/chats?limit=3&q=x")).json() == {"chats": [], "next": None}
        assert (await http.get("/api/chats/c1")).json() == {"id": "c1"}
        assert (await http.get("/api/chats/c1/files/a%20b.png")).content == b"content"
        assert (await http.patch("/api/chats/c1", json={"title": "T"})).status_code == 204
        assert (await http.delete("/api/chats/c1")).status_code == 204
        assert (await http.get("/api/chat/c1/stream")).status_code == 204
        assert (await http.post("/api/chat/c1/stop")).status_code == 204
        assert (await http.get("/api/auth/session")).text == "Next.js has this page"
    assert ("list_chats", "local", 3, None, "x") in engine.calls


async def test_a_refusal_keeps_its_status_sentence_and_code(engine: FakeEngine) -> None:
    async with behind_next(engine) as http:
        response = await http.post("/api/chat", json={"id": "c1"})
    assert (response.status_code, response.headers["x-error-code"]) == (400, "malformed")
    assert response.text.endswith(".")


async def test_a_client_disconnect_is_forwarded(engine: FakeEngine) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    async with behind_next(engine, keep_alive=0.02) as http:
        async with http.stream("POST", "/api/chat", json=chat_body()) as response:
            await anext(response.aiter_text())
        async with asyncio.timeout(PATIENCE):
            await engine.readers[0].closed.wait()


async def test_an_aborted_stream_stays_aborted(engine: FakeEngine) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), ValueError("x")]
    async with behind_next(engine) as http:
        with pytest.raises(httpx.RemoteProtocolError):
            await http.post("/api/chat", json=chat_body())


async def by_cookie(connection: HTTPConnection) -> str | None:
    return connection.cookies.get("user")


@pytest.mark.parametrize(
    ("settings", "status"),
    [({}, 403), ({"origins": [PAGE]}, 200), ({"public_url": PAGE}, 200)],
    ids=["nothing", "origin", "public URL"],
)
async def test_with_authentication_the_origin_of_the_application_must_be_allowed(
    engine: FakeEngine, settings: dict[str, Any], status: int
) -> None:
    async with behind_next(engine, authenticate=by_cookie, **settings) as http:
        response = await http.get("/api/chats", headers={"cookie": "user=ada"})
    assert response.status_code == status
    assert status != 200 or engine.calls == [("list_chats", "ada", 30, None, None)]
