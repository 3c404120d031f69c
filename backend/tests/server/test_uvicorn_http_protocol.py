"""Malformed and incomplete HTTP requests over a real connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio

from sluicegate.server.settings import Settings
from sluicegate.server.uvicorn_protocols import LimitedHttpProtocol, http_protocol
from sluicegate.server.uvicorn_server import ServerTimings, connection_limits
from tests.server.exchange import PATIENCE, RawConnection, chat_body, serving
from tests.server.fake_engine import FakeEngine, application
from tests.server.protocol_stage import ClockedTasks, Wire, protocol_of

HOST = b"Host: 127.0.0.1\r\n"
POST = b"POST /api/chat HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
GET = b"GET /api/chats HTTP/1.1\r\n" + HOST


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[tuple[FakeEngine, tuple[str, int]]]:
    """A shared server with the default settings, but for a head that arrives slowly."""
    engine = FakeEngine()
    async with serving(application(engine), Settings(port=0, head_timeout=PATIENCE)) as address:
        yield engine, address


@pytest.fixture
def engine(shared: tuple[FakeEngine, tuple[str, int]]) -> FakeEngine:
    shared[0].calls.clear()
    return shared[0]


@pytest_asyncio.fixture(loop_scope="module")
async def raw(shared: tuple[FakeEngine, tuple[str, int]]) -> AsyncIterator[RawConnection]:
    async with RawConnection.open(shared[1]) as connection:
        yield connection


@contextlib.asynccontextmanager
async def connected(
    engine: FakeEngine, *, timings: ServerTimings | None = None, **settings: Any
) -> AsyncIterator[RawConnection]:
    """A connection to a dedicated server."""
    chosen = Settings(port=0, **settings)
    app = application(engine, **settings)
    async with (
        serving(app, chosen, timings=timings) as address,
        RawConnection.open(address) as connection,
    ):
        yield connection


def body() -> bytes:
    return httpx.Request("POST", "http://x", json=chat_body()).content


async def test_a_valid_request_is_answered(engine: FakeEngine, raw: RawConnection) -> None:
    content = body()
    await raw.write(POST + b"Content-Length: %d\r\n\r\n" % len(content) + content)
    answer = await raw.answer()
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert "server" not in answer.headers
    assert "date" in answer.headers


async def test_connections_are_kept_alive(engine: FakeEngine, raw: RawConnection) -> None:
    for _ in range(3):
        await raw.write(GET + b"\r\n")
        assert (await raw.answer()).status == 200


@pytest.mark.parametrize(
    "head",
    [
        GET + b"X-Fill: " + b"x" * 33_000 + b"\r\n\r\n",
        GET + b"X-Fill: 1\r\n" * 101 + b"\r\n",
        b"GET /api/chats?q=" + b"x" * 33_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
    ids=["one long field", "many fields", "a long address"],
)
async def test_a_header_section_that_is_too_large_is_refused(
    engine: FakeEngine, raw: RawConnection, head: bytes
) -> None:
    await raw.write(head)
    answer = await raw.answer()
    assert (answer.status, answer.headers["x-error-code"]) == (413, "too_large")
    assert engine.calls == []


@pytest.mark.parametrize("piece", [b"X-Fill: 1\r\n", b"x" * 1000], ids=["fields", "one field"])
async def test_an_endless_header_section_is_refused_while_it_arrives(
    engine: FakeEngine, raw: RawConnection, piece: bytes
) -> None:
    await raw.write(GET + b"X-First: ")
    for _ in range(400):
        await raw.write(piece)
    answer = await raw.answer()
    assert (answer.status, answer.headers["x-error-code"]) == (413, "too_large")
    assert await raw.is_closed()


@pytest.mark.parametrize("said", [GET, b"G", GET + b"X-Half: "])
async def test_a_header_section_that_is_not_complete_in_time_is_refused(
    engine: FakeEngine, said: bytes
) -> None:
    async with connected(engine, head_timeout=0.05) as raw:
        await raw.write(said)
        answer = await raw.answer()
        assert (answer.status, answer.headers["x-error-code"]) == (408, "timeout")
        assert await raw.is_closed()


@pytest.mark.parametrize("said", [b"", b"\r\n\r\n"], ids=["silence", "empty lines"])
async def test_a_connection_without_a_request_is_closed(engine: FakeEngine, said: bytes) -> None:
    async with connected(engine, head_timeout=0.05) as raw:
        await raw.write(said)
        assert await raw.is_closed()


def clocked() -> tuple[LimitedHttpProtocol, Wire, ClockedTasks]:
    """A connection with a stopped clock and ten seconds for its header section."""
    loop, settings = ClockedTasks(), Settings()
    protocol, wire = protocol_of(
        cast("Any", http_protocol)(settings, connection_limits(settings), unread_body_timeout=5.0),
        application(FakeEngine()).app,
        loop=loop,
        timeout_keep_alive=75,
    )
    return protocol, wire, loop


async def responds(wire: Wire) -> bytes:
    """The next bytes that a connection writes."""
    async with asyncio.timeout(PATIENCE):
        await wire.wrote.wait()
    wire.wrote.clear()
    written, wire.written = wire.written, b""
    return written


@pytest.mark.parametrize("said", [b"\r\n", b"G"], ids=["an empty line", "a letter"])
async def test_a_kept_alive_connection_has_the_same_deadline_again(said: bytes) -> None:
    protocol, wire, loop = clocked()
    loop.advance(9.9)
    protocol.data_received(GET + b"\r\n")
    assert (await responds(wire)).startswith(b"HTTP/1.1 200")
    await asyncio.gather(*protocol.tasks)
    loop.advance(5.0)
    protocol.data_received(said)
    loop.advance(9.9)
    assert not wire.closed
    loop.advance(0.2)
    assert wire.closed


async def test_many_incomplete_requests_are_dropped_while_others_are_answered() -> None:
    half_open = [clocked() for _ in range(100)]
    for protocol, wire, loop in half_open:
        protocol.data_received(GET)
        loop.advance(9.9)
        assert not wire.closed
        loop.advance(0.2)
        assert wire.closed
        assert wire.written.startswith(b"HTTP/1.1 408")
    protocol, wire, _ = clocked()
    protocol.data_received(GET + b"\r\n")
    assert (await responds(wire)).startswith(b"HTTP/1.1 200")
    await asyncio.gather(*protocol.tasks)


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{"]
)
async def test_an_incomplete_body_is_refused_and_its_connection_closed(
    engine: FakeEngine, framing: bytes
) -> None:
    async with connected(engine, timings=ServerTimings(unread_body=0.05), body_timeout=0.05) as raw:
        await raw.write(POST + framing)
        answer = await raw.answer()
        assert (answer.status, answer.headers["x-error-code"]) == (408, "timeout")
        assert await raw.is_closed()
    assert engine.calls == []


async def test_a_body_declared_too_large_is_refused_before_it_is_sent(
    engine: FakeEngine,
) -> None:
    length = 32 * 1024 * 1024 + 1
    async with connected(engine, timings=ServerTimings(unread_body=0.05)) as raw:
        await raw.write(POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % length)
        answer = await raw.answer()
        assert (answer.status, answer.headers["x-error-code"]) == (413, "too_large")
        assert await raw.is_closed()


async def test_a_refusal_can_be_read_while_the_body_is_still_being_sent(
    engine: FakeEngine,
) -> None:
    patient = ServerTimings(unread_body=PATIENCE)
    async with connected(engine, timings=patient, max_body_bytes=1000) as raw:
        await raw.write(POST + b"Content-Length: 3000000\r\n\r\n" + b" " * 3_000_000)
        assert (await raw.answer()).status == 413
        # The rest was read and discarded; the connection remains usable.
        await raw.write(GET + b"\r\n")
        assert (await raw.answer()).status == 200


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: five\r\n\r\n",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}",
        b"Transfer-Encoding: chunked\r\n\r\n-5\r\n{}",
        b"Transfer-Encoding: gzip\r\n\r\n{}",
    ],
)
async def test_a_body_with_an_inconsistent_length_is_not_http(
    engine: FakeEngine, raw: RawConnection, framing: bytes
) -> None:
    await raw.write(POST + framing)
    answer = await raw.answer()
    assert (answer.status, answer.headers["x-error-code"]) == (400, "malformed")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert await raw.is_closed()
    assert engine.calls == []


async def test_a_content_length_that_is_too_small_truncates_the_body(
    engine: FakeEngine, raw: RawConnection
) -> None:
    await raw.write(POST + b"Content-Length: 10\r\n\r\n" + body())
    answer = await raw.answer()
    assert (answer.status, answer.headers["x-error-code"]) == (400, "malformed")
    assert engine.calls == []


@pytest.mark.parametrize(
    "said",
    [b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n", b"GET\r\n\r\n"],
    ids=["words", "TLS", "another version", "no address"],
)
async def test_invalid_http_gets_the_standard_error_body(
    engine: FakeEngine, raw: RawConnection, said: bytes
) -> None:
    await raw.write(said)
    answer = await raw.answer()
    assert (answer.status, answer.headers["x-error-code"]) == (400, "malformed")
    assert answer.body.endswith(b".")


@pytest.mark.parametrize("path", [b"/api/chats/%2e%2e", b"/api/chats/..", b"/api/chats/%00"])
async def test_a_path_with_an_invalid_chat_id_is_not_found(
    engine: FakeEngine, raw: RawConnection, path: bytes
) -> None:
    await raw.write(b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    answer = await raw.answer()
    assert (answer.status, answer.headers["x-error-code"]) == (404, "unknown")
    assert engine.calls == []


@pytest.mark.parametrize("method", [b"GET", b"POST"])
async def test_an_upgrade_of_an_ordinary_route_is_answered(
    engine: FakeEngine, raw: RawConnection, method: bytes
) -> None:
    await raw.write(
        method
        + b" /api/chats HTTP/1.1\r\n"
        + HOST
        + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        + b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    assert (await raw.answer()).status == (404 if method == b"GET" else 405)


async def test_a_client_that_disconnects_during_its_body_leaves_nothing_behind(
    shared: tuple[FakeEngine, tuple[str, int]],
    engine: FakeEngine,
    raw: RawConnection,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with RawConnection.open(shared[1]) as leaving:
        await leaving.write(POST + b"Content-Length: 100\r\n\r\n{")
    await raw.write(GET + b"\r\n")
    assert (await raw.answer()).status == 200
    assert [call[0] for call in engine.calls] == ["list_chats"]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_limits_apply_to_each_request_of_a_connection(
    engine: FakeEngine, raw: RawConnection
) -> None:
    fill = b"X-Fill: " + b"x" * 20_000 + b"\r\n\r\n"
    await raw.write((GET + fill) * 5)
    assert [(await raw.answer()).status for _ in range(5)] == [200] * 5
