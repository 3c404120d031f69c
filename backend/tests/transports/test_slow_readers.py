"""A client that does not read uses little memory, slows no other client, and is aborted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from sluicegate.core.chat_and_turn_keys import ChatKey, TurnKey
from sluicegate.engine.turn.reader import TurnReader
from sluicegate.server.settings import Settings
from sluicegate.stores.streams.memory import MemoryStreamStore
from tests.server.exchange import PATIENCE, chat_body, chunks, over_socket, serving
from tests.server.fake_engine import FakeEngine, answer, application
from tests.transports.socket_client import send_frame

KIB = 1024
WORDS = answer(*["x" * KIB] * 4 * KIB)
"""Four mebibytes of chunks, available immediately."""


class StoredEngine(FakeEngine):
    """Replays a stream store to every reader."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[TurnReader] = []
        self._store = MemoryStreamStore()
        self.has_left = asyncio.Event()

    async def start(self, request: Any, *, user: str, client: Any) -> Any:
        chat = ChatKey("app", user, f"{request.chat_id}-{len(self.stored)}")
        key = TurnKey(chat, "turn", 1)
        writer, found = await self._store.open(key), await self._store.find(key.chat)
        assert writer is not None
        assert found is not None
        reader = TurnReader((), found.read(), major=7, on_close=self._on_close)
        self.stored.append(reader)
        for chunk in WORDS:
            await writer.publish(chunk)  # type: ignore[arg-type]
        await writer.close()
        return reader

    def _on_close(self, *, aborted: bool) -> None:
        self.has_left.set()

    async def until_closed(self) -> None:
        """Wait until a reader was closed."""
        async with asyncio.timeout(PATIENCE):
            await self.has_left.wait()


@contextlib.asynccontextmanager
async def engine_serving(**settings: Any) -> AsyncIterator[tuple[StoredEngine, tuple[str, int]]]:
    engine = StoredEngine()
    async with serving(application(engine, **settings), Settings(port=0, **settings)) as address:
        yield engine, address


Rest = Callable[[], Awaitable[bytes]]
"""Reads the rest, up to the end of the connection or of the response."""


async def connected(address: tuple[str, int]) -> socket.socket:
    """A connection with small buffers."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(0)
    await asyncio.get_running_loop().sock_connect(connection, address)
    return connection


@contextlib.asynccontextmanager
async def stuck_stream(address: tuple[str, int]) -> AsyncIterator[Rest]:
    """Send a request over SSE and read nothing."""
    loop = asyncio.get_running_loop()
    body = json.dumps(chat_body()).encode()
    head = (
        "POST /api/chat HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"x-ai-sdk: 7\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with await connected(address) as connection:
        await loop.sock_sendall(connection, head.encode() + body)

        async def rest() -> bytes:
            said = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := await loop.sock_recv(connection, 64 * KIB):
                    said += piece
            return said

        yield rest


@contextlib.asynccontextmanager
async def stuck_socket(address: tuple[str, int]) -> AsyncIterator[Rest]:
    """Send a request over a WebSocket and read nothing."""
    uri = f"ws://{address[0]}:{address[1]}/api/chat/ws"
    connection = await connected(address)
    async with connect(
        uri,
        sock=connection,
        max_queue=1,
        compression=None,
        open_timeout=PATIENCE,
        close_timeout=0,
    ) as client:
        await client.send(json.dumps(send_frame()))

        async def rest() -> bytes:
            said: list[str] = []
            with contextlib.suppress(ConnectionClosed):
                while not said or '"end"' not in said[-1]:
                    said.append(await client.recv(decode=True))
            return "".join(said).encode()

        yield rest


Stuck = Callable[[tuple[str, int]], contextlib.AbstractAsyncContextManager[Rest]]


@pytest.fixture(params=[stuck_stream, stuck_socket])
def stuck(request: pytest.FixtureRequest) -> Stuck:
    found: Stuck = request.param
    return found


async def test_a_client_that_does_not_read_is_aborted(stuck: Stuck) -> None:
    async with (
        engine_serving(reader_patience=0.2) as (engine, address),
        stuck(address) as rest,
    ):
        await engine.until_closed()
        said = await rest()
    assert b'"start"' in said
    assert b"finish" not in said
    assert b"[DONE]" not in said


async def test_the_backlog_of_a_slow_client_is_limited(stuck: Stuck) -> None:
    async with engine_serving(reader_patience=60) as (engine, address), stuck(address):
        # Another client receives everything, so the first will receive nothing more.
        async with over_socket(address) as http:
            response = await http.post("/api/chat", json=chat_body(), headers={"x-ai-sdk": "7"})
        assert len(chunks(response.text)) == len(WORDS)
        total = sum(len(chunk) for chunk in response.text.split("\n\n"))
        assert total - engine.stored[0].backlog <= 256 * KIB


async def test_a_client_with_a_small_backlog_is_not_dropped(stuck: Stuck) -> None:
    async with (
        engine_serving(reader_patience=0.05, reader_backlog=8 * KIB * KIB) as (_, address),
        stuck(address) as rest,
    ):
        async with over_socket(address) as http:
            await http.post("/api/chat", json=chat_body())
        async with asyncio.timeout(PATIENCE):
            assert b"finish" in await rest()
