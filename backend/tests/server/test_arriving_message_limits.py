"""Messages while they arrive: their size and deadline before a user is accepted, and in all."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from sluicegate.server.settings import Settings
from sluicegate.server.uvicorn_protocols import LimitedSocketProtocol, socket_protocol
from sluicegate.server.uvicorn_server import connection_limits, input_limits
from sluicegate.transports.large_request_queue import LARGE
from tests.server.exchange import PATIENCE, RawConnection, serving
from tests.server.fake_engine import FakeEngine, application
from tests.server.protocol_stage import ClockedTasks, protocol_of
from tests.server.raw_frames import CONTINUATION, HEAD, TEXT, cut, frame
from tests.transports.socket_client import opened, send_frame
from tests.transports.test_live_socket import server

LIMIT = 256 * 1024
COOKIE = "session cookie (POST /session)"
TOKEN = {"Authorization": "Bearer token-ada"}
PATHS = pytest.mark.parametrize("path", ["/api/chat/ws", "/api/live?chat=c1"], ids=["chat", "live"])


@pytest.fixture
def auth(tmp_path: Path) -> str:
    """The setting for one user with a token."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"sha256:{hashlib.sha256(b'token-ada').hexdigest()} ada\n")
    return f"bearer:{tokens}"


def sized(size: int, *, token: bool = True, request_id: str = "r1") -> str:
    """A message of exactly so many bytes."""
    text = json.dumps({**send_frame(request_id), "headers": TOKEN if token else {}})
    return text + " " * (size - len(text))


@PATHS
async def test_a_first_message_may_bring_its_token_up_to_a_limit(
    tmp_path: Path, auth: str, path: str
) -> None:
    async with server(tmp_path, auth=auth) as (address, _):
        async with opened(address, path) as client:
            await client.send(sized(LIMIT + 1))
            [error] = await client.all()
            assert (error["type"], error["code"]) == ("error", "too_large")
            assert "262,144 bytes" in error["errorText"]
            assert COOKIE in error["errorText"]
            assert await client.wait_closed() == (1009, "too_large")
        async with opened(address, path) as client:
            await client.send(sized(LIMIT))
            assert (await client.all())[-1]["type"] == "end"
            # There is a user now.
            await client.send(sized(1_000_000, request_id="r2"))
            assert (await client.all("r2"))[-1]["type"] == "end"


@PATHS
async def test_a_user_of_the_handshake_may_send_a_large_first_message(
    tmp_path: Path, auth: str, path: str
) -> None:
    async with (
        server(tmp_path, auth=auth) as (address, _),
        opened(address, path, additional_headers=TOKEN) as client,
    ):
        await client.send(sized(1_000_000, token=False))
        assert (await client.all())[-1]["type"] == "end"


@pytest.mark.parametrize("cuts", [False, True], ids=["whole", "fragments"])
async def test_a_message_that_is_too_large_is_answered_before_its_end(
    auth: str, *, cuts: bool
) -> None:
    text = sized(5_000_000).encode()
    if cuts:
        pieces = [text[start : start + 100_000] for start in range(0, len(text), 100_000)]
        sent = b"".join(cut(TEXT, *pieces)[:4])
    else:
        sent = frame(TEXT, text)[: LIMIT + 100]
    app = application(FakeEngine(), auth=auth)
    async with serving(app) as address, RawConnection.open(address) as raw:
        await raw.write(HEAD)
        assert (await raw.answer()).status == 101
        await raw.write(sent)
        error, code = await answer_and_close(raw)
    assert (error["requestId"], error["code"]) == ("r1", "too_large")
    assert COOKIE in error["errorText"]
    assert code == 1009


async def answer_and_close(raw: RawConnection) -> tuple[dict[str, Any], int]:
    """The next text message and the code of the close frame after it."""
    error = json.loads(await payload(raw))
    return error, int.from_bytes((await payload(raw))[:2], "big")


async def payload(raw: RawConnection) -> bytes:
    async with asyncio.timeout(PATIENCE):
        _, length = await raw.reader.readexactly(2)
        if length == 126:
            length = int.from_bytes(await raw.reader.readexactly(2), "big")
        return await raw.reader.readexactly(length)


async def test_the_application_enforces_the_limit_if_the_server_does_not(auth: str) -> None:
    app = application(FakeEngine(), auth=auth, max_unauthenticated_frame_bytes=1_000)
    async with serving(app, Settings(port=0)) as address, opened(address) as client:
        await client.send(sized(1_001))
        [error] = await client.all()
        assert COOKIE in error["errorText"]
        assert await client.wait_closed() == (1009, "too_large")


async def test_sockets_without_a_user_share_a_limit(auth: str) -> None:
    settings: dict[str, Any] = {
        "auth": auth,
        "max_unauthenticated_bytes": 300_000,
        "unauthenticated_frame_timeout": PATIENCE,
    }
    part = frame(TEXT, sized(LIMIT, request_id="r9").encode())[:200_000]
    app = application(engine := FakeEngine(), **settings)
    async with serving(app, Settings(port=0, **settings)) as address:
        async with RawConnection.open(address) as first, RawConnection.open(address) as second:
            for raw in (first, second):
                await raw.write(HEAD)
                assert (await raw.answer()).status == 101
            await first.write(part)
            # The server has read it when it answers the next one.
            async with opened(address, additional_headers=TOKEN) as client:
                assert await client.is_alive()
            await second.write(part)
            error, code = await answer_and_close(second)
            assert (error["code"], code) == ("too_many_requests", 1013)
        # The first socket is gone, so there is room again.
        async with opened(address) as client:
            await client.send(sized(200_000))
            assert (await client.all())[-1]["type"] == "end"
    assert len(engine.calls) == 1


Stage = tuple[Any, Any, ClockedTasks]


def protocol_kind(**settings: Any) -> type[LimitedSocketProtocol]:
    """The class of the sockets of one server."""
    chosen = Settings(**settings)
    limits = input_limits(application(FakeEngine()), chosen)
    kind: type[LimitedSocketProtocol] = socket_protocol(
        chosen, connection_limits(chosen), limits, live_ping=(3.0, 7.0)
    )
    return kind


async def stage(kind: type[LimitedSocketProtocol] | None = None) -> Stage:
    """A connected socket on a clock that the test advances."""

    async def accept(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass

    loop = ClockedTasks()
    kind = kind or protocol_kind()
    protocol, wire = protocol_of(kind, accept, loop=loop, ws_ping_interval=None)
    protocol.data_received(HEAD)
    async with asyncio.timeout(PATIENCE):
        await wire.wrote.wait()
    wire.written = b""
    return protocol, wire, loop


async def test_a_message_without_a_user_has_five_seconds_once_it_has_begun() -> None:
    protocol, wire, loop = await stage()
    loop.advance(50)
    protocol.data_received(frame(TEXT, sized(1_000).encode())[:500])
    loop.advance(4.9)
    assert wire.written == b""
    loop.advance(0.2)
    assert b'"code":"timeout"' in wire.written
    protocol.connection_lost(None)


async def test_a_message_of_a_user_has_the_time_of_a_body() -> None:
    protocol, wire, loop = await stage()
    protocol.scope["extensions"]["sluicegate.authenticated"]["call"]("ada")
    protocol.data_received(frame(TEXT, b"{}", fin=False))
    loop.advance(29)
    assert wire.written == b""
    protocol.data_received(frame(CONTINUATION, b" "))
    loop.advance(60)
    assert wire.written == b""
    protocol.data_received(frame(TEXT, sized(1_000).encode())[:500])
    loop.advance(31)
    assert b'"code":"timeout"' in wire.written
    protocol.connection_lost(None)


async def test_one_large_message_of_a_user_is_read_at_a_time(auth: str) -> None:
    app = application(engine := FakeEngine(), auth=auth)
    head = HEAD.replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer token-ada\r\n\r\n")
    one, two = (
        frame(TEXT, sized(2 * LARGE, token=False, request_id=name).encode()) for name in "ab"
    )
    async with (
        serving(app) as address,
        RawConnection.open(address) as first,
        RawConnection.open(address) as second,
        opened(address, additional_headers=TOKEN) as third,
    ):
        for raw in (first, second):
            await raw.write(head)
            assert (await raw.answer()).status == 101
        await first.write(one[: LARGE + 1000])
        assert await third.is_alive()
        await second.write(two)
        # A small message does not wait.
        assert (await third.exchange(send_frame("small")))[-1]["type"] == "end"
        assert len(engine.calls) == 1
        await first.write(one[LARGE + 1000 :])
        async with asyncio.timeout(PATIENCE):
            await engine.has_readers(3)


async def test_a_second_large_message_of_a_user_stays_unread() -> None:
    kind = protocol_kind()
    one, two = await stage(kind), await stage(kind)
    part = frame(TEXT, b"x" * (LARGE + 1), fin=False)
    for protocol, _, _ in (one, two):
        protocol.scope["extensions"]["sluicegate.authenticated"]["call"]("ada")
        protocol.data_received(part)
    assert [wire.is_paused for _, wire, _ in (one, two)] == [False, True]
    one[0].connection_lost(None)
    async with asyncio.timeout(PATIENCE):
        for _ in itertools.count():
            if not two[1].is_paused:
                break
            await asyncio.sleep(0)
    two[0].connection_lost(None)


async def test_a_large_message_that_is_not_text_closes_the_socket(auth: str) -> None:
    app = application(FakeEngine(), auth=auth)
    head = HEAD.replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer token-ada\r\n\r\n")
    async with serving(app) as address, RawConnection.open(address) as raw:
        await raw.write(head)
        assert (await raw.answer()).status == 101
        await raw.write(frame(TEXT, sized(LARGE, token=False).encode() + b"\xff"))
        assert int.from_bytes((await payload(raw))[:2], "big") == 1007
