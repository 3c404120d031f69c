"""What a socket's peer does below its messages: pieces, pings, silence and compression."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from sluicegate.server.serving import server_of
from sluicegate.server.settings import Settings
from sluicegate.wire.chunks import StartChunk
from tests.server.exchange import PATIENCE, RawConnection, serving
from tests.server.fake_engine import FakeEngine, application
from tests.server.raw_frames import BINARY, CONTINUATION, HEAD, PING, PONG, TEXT, frame
from tests.transports.socket_client import opened, padded, send_frame


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


async def test_nothing_is_compressed(engine: FakeEngine) -> None:
    async with (
        serving(application(engine)) as address,
        opened(address, compression="deflate") as client,
    ):
        assert client.connection.protocol.extensions == []
        assert (await client.asks(send_frame()))[-1]["type"] == "end"


def test_pings_and_limits_are_those_of_the_settings() -> None:
    settings = Settings(max_body_bytes=1234)
    config = server_of(application(FakeEngine()), settings).config
    assert config.ws_max_size == 1234
    assert (config.ws_ping_interval, config.ws_ping_timeout) == (20.0, 20.0)
    assert not config.ws_per_message_deflate


@contextlib.asynccontextmanager
async def raw_socket(engine: FakeEngine, **settings: Any) -> AsyncIterator[RawConnection]:
    app = application(engine, **settings)
    async with (
        serving(app, Settings(port=0, **settings)) as address,
        RawConnection.open(address) as raw,
    ):
        await raw.write(HEAD)
        assert (await raw.answer()).status == 101
        yield raw


async def close_code(raw: RawConnection) -> int:
    """Read frames until a close frame; its code."""
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
async def test_a_message_in_tiny_pieces_is_refused(
    engine: FakeEngine, opcode: int, piece: bytes
) -> None:
    async with raw_socket(engine) as raw:
        await raw.write(frame(opcode, b"{", fin=False) + frame(CONTINUATION, piece, fin=False) * 64)
        assert await close_code(raw) == 1008


async def test_a_message_in_as_many_pieces_as_may_be_is_read(engine: FakeEngine) -> None:
    text = json.dumps(send_frame()).encode()
    async with raw_socket(engine) as raw:
        await raw.write(frame(TEXT, text, fin=False) + frame(CONTINUATION, fin=False) * 62)
        await raw.write(frame(CONTINUATION))
        async with asyncio.timeout(PATIENCE):
            await engine.has_readers(1)


async def test_a_large_message_in_pieces_is_read(engine: FakeEngine) -> None:
    text = padded(200_000).encode()
    pieces = [text[start : start + 1024] for start in range(0, len(text), 1024)]
    async with raw_socket(engine) as raw:
        await raw.write(frame(TEXT, pieces[0], fin=False))
        for piece in pieces[1:-1]:
            await raw.write(frame(CONTINUATION, piece, fin=False))
        await raw.write(frame(CONTINUATION, pieces[-1]))
        async with asyncio.timeout(PATIENCE):
            await engine.has_readers(1)


async def test_a_message_that_is_no_text_is_refused(engine: FakeEngine) -> None:
    async with raw_socket(engine) as raw:
        await raw.write(frame(TEXT, b"\xff"))
        assert await close_code(raw) == 1007


async def test_a_peer_that_answers_no_ping_is_dropped_though_it_reads_nothing(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluicegate.server.serving.PING_SECONDS", 0.05)
    engine.steps = [StartChunk(message_id="x" * 10_000_000)] * 5
    async with raw_socket(engine) as raw:
        raw.reader._transport.pause_reading()  # type: ignore[attr-defined]
        await raw.write(frame(TEXT, json.dumps(send_frame()).encode()))
        async with asyncio.timeout(PATIENCE):
            await engine.has_readers(1)
            await engine.readers[0].left.wait()
