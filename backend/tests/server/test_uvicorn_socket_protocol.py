"""WebSocket frames below the messages: fragments, pings, timeouts and compression."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import weakref
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.utils import ClientDisconnected
from websockets.protocol import State
from websockets.server import ServerProtocol

from sluicegate.server.settings import Settings
from sluicegate.server.uvicorn_protocols import LimitedSocketProtocol
from sluicegate.server.uvicorn_server import ServerTimings, server_of
from sluicegate.transports.socket_connection import TEXTS
from sluicegate.wire.chunks import StartChunk
from tests.server.exchange import PATIENCE, RawConnection, serving
from tests.server.fake_engine import FakeEngine, application
from tests.server.raw_frames import BINARY, CONTINUATION, HEAD, PING, PONG, TEXT, frame
from tests.transports.socket_client import opened, padded, send_frame


async def test_frames_are_not_compressed(engine: FakeEngine) -> None:
    async with (
        serving(application(engine)) as address,
        opened(address, compression="deflate") as client,
    ):
        assert client.connection.protocol.extensions == []
        assert (await client.exchange(send_frame()))[-1]["type"] == "end"


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536, 200_000])
def test_batched_messages_are_framed_like_single_messages(size: int) -> None:
    protocol, written = connected()
    texts = ["ä" + "x" * max(0, size - 2), "", "x" * size]

    asyncio.run(protocol.send_texts(texts))

    alone = ServerProtocol()
    alone.state = State.OPEN
    for text in texts:
        alone.send_text(text.encode())
    assert written == [b"".join(alone.data_to_send())]


@pytest.mark.parametrize("ended", ["disconnected", "close_sent", "conn"])
def test_nothing_is_written_after_the_end(ended: str) -> None:
    protocol, written = connected()
    if ended == "conn":
        protocol.conn.state = State.CLOSING
    else:
        setattr(protocol, ended, True)

    with pytest.raises(ClientDisconnected):
        asyncio.run(protocol.send_texts(["late"]))
    assert written == []


def connected() -> tuple[LimitedSocketProtocol, list[bytes]]:
    """A protocol with an open socket, and its written bytes."""
    written: list[bytes] = []
    protocol = LimitedSocketProtocol.__new__(LimitedSocketProtocol)
    protocol.writable = asyncio.Event()
    protocol.writable.set()
    protocol.disconnected = protocol.close_sent = False
    protocol.conn = ServerProtocol()
    protocol.conn.state = State.OPEN
    protocol.transport = cast("asyncio.Transport", SimpleNamespace(write=written.append))
    return protocol, written


async def test_chunks_are_sent_through_the_batching_extension(engine: FakeEngine) -> None:
    batches: list[list[str]] = []
    app = application(engine)

    async def counting(scope: Scope, receive: Receive, send: Send) -> None:
        """Record the batches that the application passes to the extension of the server."""
        if scope["type"] == "websocket":
            offered = scope["extensions"][TEXTS]

            async def send_texts(texts: Iterable[str], write: Any = offered["call"]) -> None:
                batches.append(list(texts))
                await write(batches[-1])

            scope["extensions"][TEXTS] = {"call": send_texts}
        await app.app(scope, receive, send)

    counted = replace(app, app=cast("Starlette", counting))
    async with serving(counted) as address, opened(address) as client:
        frames = await client.exchange(send_frame())
    assert [frame["type"] for frame in frames] == ["chunk"] * 5 + ["end"]
    assert [json.loads(text) for batch in batches for text in batch] == frames[:5]


def test_ping_interval_and_limits_come_from_the_settings() -> None:
    settings = Settings(max_body_bytes=1234)
    config = server_of(application(FakeEngine()), settings).config
    assert config.ws_max_size == 1234
    live = ServerTimings()
    assert (config.ws_ping_interval, config.ws_ping_timeout) == (live.ping, live.ping)
    assert live.ping + live.ping <= 20.0
    assert live.live_ping + live.live_pong <= 10.0
    assert not config.ws_per_message_deflate


async def test_a_closed_socket_is_freed_without_the_garbage_collector(engine: FakeEngine) -> None:
    freed = asyncio.Event(), asyncio.Event()
    async with serving(application(engine)) as address:
        with without_garbage_collector():
            others = sockets()
            async with opened(address) as client:
                await client.exchange(send_frame())
                [socket] = [each for each in sockets() if each not in others]
                weakref.finalize(socket, freed[0].set)
                weakref.finalize(socket.conn, freed[1].set)
                del socket
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*(event.wait() for event in freed))


@contextlib.contextmanager
def without_garbage_collector() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def sockets() -> list[LimitedSocketProtocol]:
    """All sockets of the process."""
    # `isinstance` would accept a weak proxy, too.
    found = [each for each in gc.get_objects() if issubclass(type(each), LimitedSocketProtocol)]
    return cast("list[LimitedSocketProtocol]", found)


@contextlib.asynccontextmanager
async def raw_socket(
    engine: FakeEngine, *, timings: ServerTimings | None = None, **settings: Any
) -> AsyncIterator[RawConnection]:
    app = application(engine, **settings)
    async with (
        serving(app, Settings(port=0, **settings), timings=timings) as address,
        RawConnection.open(address) as raw,
    ):
        await raw.write(HEAD)
        assert (await raw.answer()).status == 101
        yield raw


async def close_code(raw: RawConnection) -> int:
    """Read frames up to a close frame and return its code."""
    async with asyncio.timeout(PATIENCE):
        while True:
            opcode, length = await raw.reader.readexactly(2)
            if length == 126:
                length = int.from_bytes(await raw.reader.readexactly(2), "big")
            payload = await raw.reader.readexactly(length)
            if opcode & 0x0F == 0x8:
                return int.from_bytes(payload[:2], "big")


@pytest.mark.parametrize("opcode", [PING, PONG])
async def test_a_flood_of_control_frames_is_refused(engine: FakeEngine, opcode: int) -> None:
    async with raw_socket(engine, max_frames_burst=10, max_frames_per_second=1) as raw:
        await raw.write(frame(opcode) * 11)
        assert await close_code(raw) == 1008


@pytest.mark.parametrize("piece", [b"", b"x"], ids=["empty", "one byte"])
@pytest.mark.parametrize("opcode", [TEXT, BINARY], ids=["text", "binary"])
async def test_a_message_of_too_many_fragments_is_refused(
    engine: FakeEngine, opcode: int, piece: bytes
) -> None:
    async with raw_socket(engine) as raw:
        await raw.write(frame(opcode, b"{", fin=False) + frame(CONTINUATION, piece, fin=False) * 64)
        assert await close_code(raw) == 1008


async def test_a_message_of_the_maximum_number_of_fragments_is_read(engine: FakeEngine) -> None:
    text = json.dumps(send_frame()).encode()
    async with raw_socket(engine) as raw:
        await raw.write(frame(TEXT, text, fin=False) + frame(CONTINUATION, fin=False) * 62)
        await raw.write(frame(CONTINUATION))
        async with asyncio.timeout(PATIENCE):
            await engine.has_readers(1)


async def test_a_large_fragmented_message_is_read(engine: FakeEngine) -> None:
    text = padded(200_000).encode()
    pieces = [text[start : start + 1024] for start in range(0, len(text), 1024)]
    async with raw_socket(engine) as raw:
        await raw.write(frame(TEXT, pieces[0], fin=False))
        for piece in pieces[1:-1]:
            await raw.write(frame(CONTINUATION, piece, fin=False))
        await raw.write(frame(CONTINUATION, pieces[-1]))
        async with asyncio.timeout(PATIENCE):
            await engine.has_readers(1)


async def test_a_binary_message_is_refused(engine: FakeEngine) -> None:
    async with raw_socket(engine) as raw:
        await raw.write(frame(TEXT, b"\xff"))
        assert await close_code(raw) == 1007


async def test_a_peer_that_neither_reads_nor_answers_pings_is_dropped(
    engine: FakeEngine,
) -> None:
    engine.steps = [StartChunk(message_id="x" * 10_000_000)] * 5
    async with raw_socket(engine, timings=ServerTimings(ping=0.05)) as raw:
        cast("asyncio.Transport", raw.writer.transport).pause_reading()
        await raw.write(frame(TEXT, json.dumps(send_frame()).encode()))
        async with asyncio.timeout(PATIENCE):
            await engine.has_readers(1)
            await engine.readers[0].closed.wait()
