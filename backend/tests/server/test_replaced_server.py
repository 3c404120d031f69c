"""A server that is replaced leaves new connections to another process and answers the others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from google.adk.agents.llm_agent import LlmAgent
from starlette.requests import HTTPConnection

from sluicegate.replay import ScriptedModel
from sluicegate.replay.scenario import parse_scenarios
from sluicegate.server.app import build, engine_of
from sluicegate.server.settings import Settings
from sluicegate.server.shutdown import Shutdown
from sluicegate.server.uvicorn_server import Server, bind, server_of
from tests.new_database import new_database
from tests.server.exchange import PATIENCE, chat_body, chunks, over_socket

SCENARIOS = {"scenarios": [{"match": "", "responses": [{"parts": [{"text": "Hello."}]}]}]}


class Unsignalled(Server):
    """A server that leaves the signals of the process alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Watched:
    """The shutdown of an application, whose beginning a test can wait for."""

    def __init__(self, shutdown: Shutdown) -> None:
        self._shutdown = shutdown
        self.is_finishing = asyncio.Event()
        self.begin = shutdown.begin
        self.drain = shutdown.drain
        self.abort = shutdown.abort

    async def finish(self, within: float, hurried: asyncio.Event) -> None:
        self.is_finishing.set()
        await self._shutdown.finish(within, hurried)


@dataclass(frozen=True, slots=True)
class Replaceable:
    """A server at an address, and its shutdown."""

    server: Unsignalled
    shutdown: Watched
    address: tuple[str, int]


@contextlib.asynccontextmanager
async def replaceable(
    folder: Path, authenticate: Callable[[HTTPConnection], Awaitable[str]], **more: Any
) -> AsyncIterator[Replaceable]:
    """A server that the block replaces; it has ended after it."""
    agent = LlmAgent(name="host", model=ScriptedModel(scenarios=parse_scenarios(SCENARIOS)))
    stores: dict[str, Any] = {
        "sessions": new_database(folder / "chats.db"),
        "artifacts": f"file:{folder}/files",
    }
    settings = Settings(port=0, **stores, **more)
    application = build(engine_of(agent, settings), settings, authenticate=authenticate)
    listener = bind(settings)
    shutdown = Watched(application.shutdown)
    server = Unsignalled(
        server_of(application, settings).config, drainable=shutdown, drain_timeout=PATIENCE * 10
    )
    async with application.app.router.lifespan_context(application.app):
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        yield Replaceable(server, shutdown, listener.getsockname()[:2])
        async with asyncio.timeout(PATIENCE):
            await serving


@contextlib.asynccontextmanager
async def replaced(
    folder: Path, request: Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]
) -> AsyncIterator[asyncio.Task[httpx.Response]]:
    """Replace a server while it authenticates a request; it has ended after the block."""
    has_begun, may_go_on = asyncio.Event(), asyncio.Event()

    async def authenticate(_connection: HTTPConnection) -> str:
        has_begun.set()
        await may_go_on.wait()
        return "ann"

    async with (
        replaceable(folder, authenticate) as stage,
        over_socket(stage.address) as http,
    ):
        requested = asyncio.ensure_future(request(http))
        await has_begun.wait()
        stage.server.replace()
        await stage.shutdown.is_finishing.wait()
        may_go_on.set()
        yield requested


async def _ann(_connection: HTTPConnection) -> str:
    return "ann"


async def test_a_request_that_has_begun_is_answered_by_the_process_that_is_replaced(
    tmp_path: Path,
) -> None:
    async with replaced(tmp_path, lambda http: http.post("/api/chat", json=chat_body())) as posted:
        response = await posted
    assert response.status_code == 200, response.text
    assert chunks(response.text)[-1]["type"] == "finish"


async def test_events_that_are_requested_before_do_not_hold_the_process_that_is_replaced(
    tmp_path: Path,
) -> None:
    async with replaced(tmp_path, lambda http: http.get("/api/events")) as requested:
        response = await asyncio.wait_for(requested, PATIENCE)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")


@contextlib.asynccontextmanager
async def connection_to(
    stage: Replaceable,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that a server has accepted and has to finish, since it is replaced."""
    reader, writer = await asyncio.open_connection(*stage.address)
    state = stage.server.server_state
    async with asyncio.timeout(PATIENCE):
        while not state.connections:  # noqa: ASYNC110 - it announces nothing
            await asyncio.sleep(0)
        stage.server.replace()
        while any(each.is_serving() for each in stage.server.servers):  # noqa: ASYNC110
            await asyncio.sleep(0)
        yield reader, writer
        writer.close()


async def test_the_first_request_of_an_open_connection_is_answered_by_the_process_that_is_replaced(
    tmp_path: Path,
) -> None:
    async with replaceable(tmp_path, _ann) as stage, connection_to(stage) as (reader, writer):
        writer.write(b"GET /api/chats HTTP/1.1\r\nhost: localhost\r\n\r\n")
        answer = await reader.read()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), answer
    assert b"connection: close" in head.splitlines()
    assert body


async def test_a_connection_that_is_registered_after_the_first_look_is_answered_and_closed(
    tmp_path: Path,
) -> None:
    async with replaceable(tmp_path, _ann) as stage:
        reader, writer = await asyncio.open_connection(*stage.address)
        connections = stage.server.server_state.connections
        async with asyncio.timeout(PATIENCE):
            while not connections:  # noqa: ASYNC110 - it announces nothing
                await asyncio.sleep(0)
            accepted = connections.pop()
            stage.server.replace()
            while any(each.is_serving() for each in stage.server.servers):  # noqa: ASYNC110
                await asyncio.sleep(0)
            # A loop registers a connection some steps after it has accepted it.
            connections.add(accepted)
            # The process that looks once goes on to its end here.
            await asyncio.sleep(0)
            assert not stage.shutdown.is_finishing.is_set()
        writer.write(b"GET /api/chats HTTP/1.1\r\nhost: localhost\r\n\r\n")
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200 "), answer


async def test_an_open_connection_without_a_request_does_not_hold_the_process_that_is_replaced(
    tmp_path: Path,
) -> None:
    async with (
        replaceable(tmp_path, _ann, head_timeout=0.2) as stage,
        connection_to(stage) as (reader, _),
    ):
        assert await reader.read() == b""
