"""Disconnects and aborted requests of sockets, and their effect on turns."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from sluicegate.wire.chunks import StartChunk
from tests.server.exchange import PATIENCE, serving
from tests.server.fake_engine import MESSAGE, FakeEngine, answer, application
from tests.transports.socket_client import (
    SocketClient,
    abort_frame,
    opened,
    send_frame,
    until_closed,
)

SECRET = "sk-very-secret"

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_abort_closes_the_reader_and_sends_no_more_frames(
    engine: FakeEngine, client: SocketClient
) -> None:
    go_on = asyncio.Event()
    engine.steps = [StartChunk(message_id=MESSAGE), go_on, *answer("late")[1:]]
    await client.send(send_frame(), send_frame("r2"))
    await client.next("r1")
    await client.next("r2")
    await client.send(abort_frame("r1"))
    async with asyncio.timeout(PATIENCE):
        await engine.readers[0].closed.wait()
    assert engine.readers[0].aborted
    assert engine.readers[1].times_closed == 0
    go_on.set()
    assert (await client.all("r2"))[-1]["type"] == "end"
    assert await client.is_alive()
    assert client.unread == []
    assert [call[0] for call in engine.calls] == ["start", "start"]


@pytest.mark.parametrize("request_id", ["foreign", "r1"], ids=["unknown", "ended"])
async def test_an_abort_of_an_unknown_request_is_ignored(
    engine: FakeEngine, client: SocketClient, request_id: str
) -> None:
    await client.exchange(send_frame())
    await client.send(abort_frame(request_id))
    assert await client.is_alive()
    assert client.unread == []
    assert engine.readers[0].times_closed == 1


async def test_an_abort_on_another_socket_closes_no_reader(
    shared: tuple[FakeEngine, tuple[str, int]], engine: FakeEngine, client: SocketClient
) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    await client.send(send_frame())
    await client.next()
    async with opened(shared[1]) as other:
        await other.send(abort_frame())
        assert await other.is_alive()
    assert engine.readers[0].times_closed == 0


async def test_a_request_starts_even_if_the_client_aborts_immediately(
    engine: FakeEngine, client: SocketClient
) -> None:
    engine.pause = asyncio.Event()
    await client.send(send_frame(), abort_frame())
    assert await client.is_alive()
    assert engine.readers == []
    engine.pause.set()
    await until_closed(engine)
    assert [call[0] for call in engine.calls] == ["start"]
    assert engine.readers[0].aborted
    assert await client.is_alive()
    assert client.unread == []


async def test_requests_aborted_during_preparation_still_count(
    engine: FakeEngine, client: SocketClient
) -> None:
    engine.pause = asyncio.Event()
    for number in range(16):
        await client.send(send_frame(f"r{number}"), abort_frame(f"r{number}"))
    [error] = await client.exchange(send_frame("one more"))
    assert error["code"] == "too_many_requests"
    engine.pause.set()
    await until_closed(engine, 16)


@pytest.mark.parametrize("how", ["close", "cut"])
async def test_a_disconnect_closes_the_readers_and_stops_no_turn(
    shared: tuple[FakeEngine, tuple[str, int]], engine: FakeEngine, how: str
) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    async with opened(shared[1]) as client:
        await client.send(send_frame("r1"), send_frame("r2"))
        await client.next("r1")
        await client.next("r2")
        if how == "cut":
            client.connection.transport.abort()
        else:
            await client.connection.close(1001)
        await until_closed(engine, 2)
    assert [reader.times_closed for reader in engine.readers] == [1, 1]
    assert [reader.aborted for reader in engine.readers] == [False, False]
    assert [call[0] for call in engine.calls] == ["start", "start"]


async def test_a_disconnect_during_preparation_closes_the_reader_too(
    shared: tuple[FakeEngine, tuple[str, int]], engine: FakeEngine
) -> None:
    engine.pause = asyncio.Event()
    async with opened(shared[1]) as client:
        await client.send(send_frame())
        assert await client.is_alive()
    engine.pause.set()
    await until_closed(engine)
    assert engine.readers[0].times_closed == 1


async def test_a_server_shutdown_closes_sockets_with_1012(engine: FakeEngine) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    app = application(engine)
    async with serving(app) as address, opened(address) as client, opened(address) as idle:
        await client.send(send_frame())
        await client.next()
        app.shutdown.abort()
        assert await client.wait_closed() == (1012, "restart")
        assert await idle.wait_closed() == (1012, "restart")
        await until_closed(engine)
    assert not engine.readers[0].aborted


async def test_a_server_shutdown_does_not_wait_for_sockets(engine: FakeEngine) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    async with contextlib.AsyncExitStack() as clients:
        async with serving(application(engine)) as address:
            client = await clients.enter_async_context(opened(address))
            await client.send(send_frame())
            await client.next()
        assert (await client.wait_closed())[0] == 1012
    assert engine.readers[0].times_closed == 1
