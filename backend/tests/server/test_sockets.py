"""Access checks and authentication of sockets."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import HTTPConnection
from websockets.exceptions import InvalidStatus

from sluicegate.errors import Unauthenticated, Unavailable
from sluicegate.server.socket_authentication import SocketCaller
from sluicegate.server.user_request_limits import UserLimits
from sluicegate.wire.chunks import StartChunk
from tests.server.exchange import PATIENCE, RawConnection, serving
from tests.server.fake_engine import MESSAGE, FakeEngine, application
from tests.transports.socket_client import (
    opened,
    resume_frame,
    send_frame,
)


@contextlib.asynccontextmanager
async def refused(address: tuple[str, int], **handshake: Any) -> AsyncIterator[InvalidStatus]:
    with pytest.raises(InvalidStatus) as caught:
        async with opened(address, **handshake):
            pass
    yield caught.value


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"]
)
async def test_a_disallowed_origin_is_refused_before_the_socket_is_accepted(
    engine: FakeEngine, origin: str
) -> None:
    async with serving(application(engine)) as address, refused(address, origin=origin) as error:
        assert error.response.status_code == 403
        assert error.response.headers["x-error-code"] == "origin"
        assert "--origin" in error.response.body.decode()


async def test_an_unknown_host_is_refused_before_the_socket_is_accepted(
    engine: FakeEngine,
) -> None:
    async with serving(application(engine)) as address, RawConnection.open(address) as raw:
        await raw.write(
            b"GET /api/chat/ws HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        said = await raw.answer()
    assert (said.status, said.headers["x-error-code"]) == (403, "host")
    assert "--allowed-host evil.example" in said.body.decode()


@pytest.mark.parametrize("origin", [None, "http://127.0.0.1:{port}", "http://localhost:3000"])
async def test_pages_of_allowed_origins_may_open_a_socket(
    engine: FakeEngine, origin: str | None
) -> None:
    async with serving(application(engine)) as address:
        named = None if origin is None else origin.format(port=address[1])
        async with opened(address, origin=named) as client:
            assert (await client.exchange(send_frame()))[-1]["type"] == "end"


async def test_a_socket_on_another_path_is_not_found(engine: FakeEngine) -> None:
    async with (
        serving(application(engine)) as address,
        refused(address, path="/api/nowhere") as error,
    ):
        assert error.response.status_code == 404
        assert error.response.headers["x-error-code"] == "unknown"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    write_tokens(path, ada="token-ada", bob="token-bob")
    return path


def write_tokens(path: Path, **tokens: str) -> None:
    lines = [f"sha256:{hashlib.sha256(t.encode()).hexdigest()} {u}\n" for u, t in tokens.items()]
    path.write_text("".join(lines))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_the_handshake_authenticates_the_user_if_it_can(
    engine: FakeEngine, tokens: Path
) -> None:
    app = application(engine, auth=f"bearer:{tokens}")
    async with (
        serving(app) as address,
        opened(address, additional_headers=bearer("token-ada")) as client,
    ):
        await client.exchange(send_frame())
        # A frame cannot change the user of the handshake.
        await client.exchange(send_frame() | {"headers": bearer("token-bob")})
    assert [call[2] for call in engine.calls] == ["ada", "ada"]


async def test_a_frame_authenticates_the_user_if_the_handshake_cannot(
    engine: FakeEngine, tokens: Path
) -> None:
    app = application(engine, auth=f"bearer:{tokens}")
    async with serving(app) as address, opened(address) as client:
        [error] = await client.exchange(send_frame())
        assert (error["type"], error["code"]) == ("error", "unauthenticated")
        for token, user in (("token-ada", "ada"), ("token-bob", "bob")):
            for frame in (send_frame(), resume_frame()):
                await client.exchange(frame | {"headers": bearer(token)})
                assert user in engine.calls[-1]
        for headers in (
            bearer("token-eve"),
            {"authorization": "token-ada"},
            {"authorization": "Basic token-ada"},
            {"authorization": "Bearer tokén"},
            {"x-user": "ada"},
            {"cookie": "token-ada"},
        ):
            [error] = await client.exchange(send_frame() | {"headers": headers})
            assert error["code"] == "unauthenticated"
    assert len(engine.calls) == 4


async def test_a_token_in_the_url_is_ignored(engine: FakeEngine, tokens: Path) -> None:
    app = application(engine, auth=f"bearer:{tokens}")
    path = "/api/chat/ws?token=token-ada&authorization=Bearer%20token-ada"
    async with serving(app) as address, opened(address, path) as client:
        [error] = await client.exchange(send_frame())
        assert error["code"] == "unauthenticated"
    assert engine.calls == []


@pytest.mark.parametrize("headers", [{}, {"x-user": "a b"}], ids=["nobody", "no name"])
async def test_the_socket_is_refused_if_no_frame_could_authenticate_it(
    engine: FakeEngine, headers: dict[str, str]
) -> None:
    app = application(engine, auth="header:x-user")
    async with (
        serving(app) as address,
        refused(address, additional_headers=headers) as error,
    ):
        assert error.response.status_code == 401
        assert error.response.headers["x-error-code"] == "unauthenticated"


async def test_a_proxy_names_the_user_of_the_socket(engine: FakeEngine) -> None:
    app = application(engine, auth="header:x-user")
    async with (
        serving(app) as address,
        opened(address, additional_headers={"x-user": "ada"}) as client,
    ):
        await client.exchange(send_frame() | {"headers": {"x-user": "bob"}})
    assert engine.calls[0][2] == "ada"


class CurrentUser:
    """Authenticates one user, which a test can change."""

    def __init__(self) -> None:
        self.user: str | None = "ada"
        self.asked = 0

    async def __call__(self, _: HTTPConnection) -> str | None:
        self.asked += 1
        return self.user


@pytest.mark.parametrize("then", [None, "bob"])
async def test_a_revoked_user_is_disconnected_without_sending_a_frame(
    engine: FakeEngine, then: str | None
) -> None:
    current_user = CurrentUser()
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    app = application(engine, authenticate=current_user, recheck_interval=0.02, keep_alive=0.01)
    async with serving(app) as address, opened(address) as client:
        await client.send(send_frame())
        await client.next()
        asked = current_user.asked
        while current_user.asked < asked + 3:
            await client.next("-")
        current_user.user = then
        assert await client.wait_closed() == (4401, "unauthenticated")
        async with asyncio.timeout(PATIENCE):
            await engine.readers[0].closed.wait()


async def test_a_revoked_user_is_disconnected_at_the_next_request(
    engine: FakeEngine,
) -> None:
    current_user = CurrentUser()
    app = application(engine, authenticate=current_user)
    async with serving(app) as address, opened(address) as client:
        await client.exchange(send_frame())
        current_user.user = None
        [error] = await client.exchange(send_frame())
        assert error["code"] == "unauthenticated"
        assert await client.wait_closed() == (4401, "unauthenticated")
    assert len(engine.calls) == 1


async def test_a_revoked_token_closes_the_socket(engine: FakeEngine, tokens: Path) -> None:
    app = application(engine, auth=f"bearer:{tokens}", recheck_interval=0.02)
    async with serving(app) as address, opened(address) as client:
        await client.exchange(send_frame() | {"headers": bearer("token-ada")})
        write_tokens(tokens, bob="token-bob")
        assert await client.wait_closed() == (4401, "unauthenticated")


async def test_a_user_with_a_newer_valid_token_stays_connected(tokens: Path) -> None:
    connection = HTTPConnection({"type": "websocket", "headers": []})
    valid = {"Bearer one": "ada", "Bearer two": "ada"}

    async def authenticate(asked: HTTPConnection) -> str | None:
        return valid.get(asked.headers.get("authorization", ""))

    limits = UserLimits(per_minute=10, connections=1)
    caller = SocketCaller(authenticate, connection, limits, frame_tokens=True)
    await caller.authenticate_handshake()
    for token in ("Bearer one", "Bearer two"):
        assert await caller.authenticate({"authorization": token}) == "ada"
    del valid["Bearer one"]
    await caller.recheck()
    valid["Bearer two"] = "bob"
    with pytest.raises(Unauthenticated):
        await caller.recheck()


async def test_an_unavailable_authentication_refuses_the_handshake(
    engine: FakeEngine,
) -> None:
    async def broken(_: HTTPConnection) -> str | None:
        raise Unavailable

    app = application(engine, authenticate=broken)
    async with serving(app) as address, refused(address) as error:
        assert error.response.status_code == 503
        assert error.response.headers["retry-after"] == "5"


async def test_a_later_authentication_failure_closes_only_its_socket(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    asked = 0

    async def breaks(_: HTTPConnection) -> str | None:
        nonlocal asked
        asked += 1
        if asked > 1:
            raise RuntimeError("sk-very-secret")
        return "ada"

    app = application(engine, authenticate=breaks, recheck_interval=0.02)
    async with serving(app) as address, opened(address) as client:
        assert (await client.wait_closed())[0] == 1011
    assert "RuntimeError" in caplog.text
    assert "sk-very-secret" not in caplog.text
