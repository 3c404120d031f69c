"""Requests to an in-process application, and to a server over a real connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp, Message, Scope

from sluicegate.server.app import Application
from sluicegate.server.settings import Settings
from sluicegate.server.uvicorn_server import Server, ServerTimings, bind, server_of

ORIGIN = "http://127.0.0.1:8000"
PATIENCE = 30.0
"""Timeout of a test in seconds; only a defect reaches it."""
STARTING = 120.0
"""The same for a start, which may import ADK and LiteLLM for the first time on the machine."""


def client(
    app: ASGIApp, *, peer: str = "127.0.0.1", base_url: str = ORIGIN, **options: Any
) -> httpx.AsyncClient:
    """An in-process client with the given peer address."""
    transport = httpx.ASGITransport(app, client=(peer, 50000), raise_app_exceptions=False)
    return httpx.AsyncClient(
        transport=transport, base_url=base_url, **{"timeout": PATIENCE, **options}
    )


def over_socket(address: tuple[str, int], **options: Any) -> httpx.AsyncClient:
    """A client of a real server; it skips loading certificates, which takes time."""
    host, port = address
    return httpx.AsyncClient(
        base_url=f"http://{host}:{port}", verify=False, **{"timeout": PATIENCE, **options}
    )


@contextlib.asynccontextmanager
async def started(app: ASGIApp) -> AsyncIterator[None]:
    """Run the lifespan of an application; errors of its startup are raised here."""
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message] = asyncio.Queue()

    async def phase(name: str, limit: float) -> None:
        await to_app.put({"type": f"lifespan.{name}"})
        said = asyncio.create_task(from_app.get())
        async with asyncio.timeout(limit):
            await asyncio.wait([said, running], return_when=asyncio.FIRST_COMPLETED)
        if not said.done() or said.result()["type"] == f"lifespan.{name}.failed":
            said.cancel()
            await running

    scope: Scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
    running = asyncio.ensure_future(app(scope, to_app.get, from_app.put))
    await phase("startup", STARTING)
    yield
    await phase("shutdown", PATIENCE)
    await running


def user_message(text: str = "Hi", *, message_id: str = "u1") -> dict[str, Any]:
    """A user's message as the AI SDK posts it."""
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


def chat_body(text: str = "Hi", *, chat: str = "c1") -> dict[str, Any]:
    """The body of a new message."""
    return {"id": chat, "message": user_message(text), "trigger": "submit-message"}


def chunks(body: str) -> list[dict[str, Any]]:
    """The chunks of a complete stream, without comments and terminator."""
    events = [event for event in body.split("\n\n") if event.startswith("data: ")]
    return [json.loads(event[6:]) for event in events if event != "data: [DONE]"]


@contextlib.asynccontextmanager
async def serving(
    application: Application,
    settings: Settings | None = None,
    *,
    timings: ServerTimings | None = None,
) -> AsyncIterator[tuple[str, int]]:
    """Run the real server on a free port until the block ends."""
    chosen = settings or Settings(port=0)
    async with _running(server_of(application, chosen, timings=timings)) as address:
        yield address


@contextlib.asynccontextmanager
async def serving_alone(app: ASGIApp) -> AsyncIterator[tuple[str, int]]:
    """Run an application with plain ``uvicorn``."""
    config = uvicorn.Config(app, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
    async with _running(Server(config)) as address:
        yield address


@contextlib.asynccontextmanager
async def _running(server: Server) -> AsyncIterator[tuple[str, int]]:
    listener = bind(Settings(port=0))
    quiet = QuietServer(server)
    running = asyncio.create_task(quiet.serve(sockets=[listener]))
    try:
        async with asyncio.timeout(PATIENCE):
            await quiet.is_ready.wait()
        yield listener.getsockname()[:2]
    finally:
        quiet.may_end.set()
        async with asyncio.timeout(PATIENCE):
            await running


class QuietServer(Server):
    """A server that ignores signals and stops when the test sets ``should_exit``."""

    def __init__(self, server: Server) -> None:
        self.is_ready, self.may_end = asyncio.Event(), asyncio.Event()
        super().__init__(server.config, drainable=server.drainable, on_ready=self.is_ready.set)

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield

    async def main_loop(self) -> None:
        # uvicorn checks ten times a second whether to exit.
        await self.on_tick(0)
        await self.may_end.wait()


@dataclass(frozen=True)
class RawAnswer:
    """A response as received over a connection."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class RawConnection:
    """A connection on which a test writes arbitrary bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, address: tuple[str, int]) -> AsyncIterator[RawConnection]:
        reader, writer = await asyncio.open_connection(*address)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def answer(self) -> RawAnswer:
        """Read one response that has a content-length or ends with the connection."""
        async with asyncio.timeout(PATIENCE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            status, *lines = head.decode("latin-1").split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in lines if line)
            body = await self.reader.readexactly(int(fields.get("content-length", "0")))
        return RawAnswer(int(status.split(" ")[1]), fields, body)

    async def is_closed(self) -> bool:
        """Whether the peer closes the connection within the time limit."""
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                await self.reader.read()
        return True
