"""The fault proxy itself, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.faults.chaos import Chaos, Direction, chaos_before
from tests.stores.builders import LIMIT


@pytest.fixture
async def chaos() -> AsyncIterator[Chaos]:
    """A proxy in front of an echo server."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1024):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with chaos_before(server.sockets[0].getsockname()[1]) as made:
        yield made
    server.close()


async def connect(chaos: Chaos) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", chaos.port)


def reply_to_come(chaos: Chaos) -> asyncio.Event:
    """Return what is set once the proxy has seen a piece on its way to a client."""
    seen = asyncio.Event()

    def spares(way: Direction, _: bytes) -> bool:
        if way == "down":
            seen.set()
        return True

    chaos.weather.spares = spares
    return seen


async def test_bytes_pass_the_proxy(chaos: Chaos) -> None:
    reader, writer = await connect(chaos)
    writer.write(b"hello")
    assert await reader.readexactly(5) == b"hello"
    writer.close()


async def test_every_byte_may_arrive_alone(chaos: Chaos) -> None:
    chaos.weather.size = 1
    chaos.weather.delay = 0.001
    reader, writer = await connect(chaos)
    writer.write(b"hello")
    first = await reader.read(1024)
    assert 0 < len(first) < 5
    assert first + await reader.readexactly(5 - len(first)) == b"hello"
    writer.close()


async def test_a_cut_ends_the_connection_and_a_reset_is_an_error(chaos: Chaos) -> None:
    reader, writer = await connect(chaos)
    writer.write(b"x")
    await reader.readexactly(1)
    chaos.cut()
    assert await reader.read() == b""
    writer.close()
    reader, writer = await connect(chaos)
    writer.write(b"x")
    await reader.readexactly(1)
    chaos.reset()
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()


async def test_silence_keeps_the_connection_and_loses_the_bytes(chaos: Chaos) -> None:
    reader, writer = await connect(chaos)
    chaos.weather.silent = {"down"}
    replied = reply_to_come(chaos)
    writer.write(b"lost")
    reading = asyncio.create_task(reader.read(1024))
    async with asyncio.timeout(LIMIT):
        await replied.wait()
    await asyncio.wait([reading], timeout=0.1)
    assert not reading.done()
    chaos.weather.silent = set()
    writer.write(b"heard")
    assert await reading == b"heard"
    writer.close()


async def test_a_piece_may_be_the_last_of_its_connection(chaos: Chaos) -> None:
    chaos.weather.spares = lambda way, piece: b"bad" not in piece
    chaos.weather.swallows = lambda way, piece: way == "down" and b"quiet" in piece
    reader, writer = await connect(chaos)
    writer.write(b"bad")
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()
    replied = reply_to_come(chaos)
    reader, writer = await connect(chaos)
    writer.write(b"quiet")
    reading = asyncio.create_task(reader.read(1024))
    async with asyncio.timeout(LIMIT):
        await replied.wait()
    await asyncio.wait([reading], timeout=0.1)
    assert not reading.done()
    chaos.cut()
    assert await reading == b""
    writer.close()


async def test_a_stopped_proxy_refuses_and_returns_on_its_port(chaos: Chaos) -> None:
    reader, writer = await connect(chaos)
    port = chaos.port
    await chaos.down()
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await connect(chaos)
    await chaos.up()
    assert chaos.port == port
    reader, writer = await connect(chaos)
    writer.close()
