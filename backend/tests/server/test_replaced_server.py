"""A server that is replaced leaves new connections to another process and answers the others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

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

    agent = LlmAgent(name="host", model=ScriptedModel(scenarios=parse_scenarios(SCENARIOS)))
    settings = Settings(
        port=0, sessions=new_database(folder / "chats.db"), artifacts=f"file:{folder}/files"
    )
    application = build(engine_of(agent, settings), settings, authenticate=authenticate)
    listener = bind(settings)
    shutdown = Watched(application.shutdown)
    server = Unsignalled(
        server_of(application, settings).config, drainable=shutdown, drain_timeout=PATIENCE * 10
    )
    async with application.app.router.lifespan_context(application.app):
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        async with over_socket(listener.getsockname()[:2]) as http:
            requested = asyncio.ensure_future(request(http))
            await has_begun.wait()
            server.replace()
            await shutdown.is_finishing.wait()
            may_go_on.set()
            yield requested
        async with asyncio.timeout(PATIENCE):
            await serving


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
