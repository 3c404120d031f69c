"""The connections of users and peers, and the rate of a user's requests."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from google.adk.agents.llm_agent import LlmAgent
from starlette.applications import Starlette
from websockets.exceptions import InvalidStatus

from sluicegate import create_app
from sluicegate.errors import TooManyRequests
from sluicegate.server.connection_limits import ConnectionLimits
from sluicegate.server.limit_refusal_log import RefusalLog
from sluicegate.server.settings import Settings
from sluicegate.server.user_request_limits import UserLimits
from sluicegate.wire.chunks import StartChunk
from tests.clock import Clock
from tests.real_stores.valkey import Valkey
from tests.server.exchange import (
    PATIENCE,
    RawConnection,
    chat_body,
    client,
    over_socket,
    serving,
    started,
)
from tests.server.fake_engine import MESSAGE, FakeEngine, application
from tests.transports.socket_client import opened, send_frame
from tests.transports.test_live_socket import server

ADA = {"Authorization": "Bearer token-ada"}
BOB = {"Authorization": "Bearer token-bob"}
Address = tuple[str, int]


@pytest.fixture
def auth(tmp_path: Path) -> str:
    tokens = tmp_path / "tokens"
    digests = {
        name: hashlib.sha256(f"token-{name}".encode()).hexdigest() for name in ("ada", "bob")
    }
    tokens.write_text("".join(f"sha256:{digest} {name}\n" for name, digest in digests.items()))
    return f"bearer:{tokens}"


@contextlib.asynccontextmanager
async def served(engine: FakeEngine, **settings: Any) -> AsyncIterator[Address]:
    async with serving(application(engine, **settings), Settings(port=0, **settings)) as address:
        yield address


async def test_every_request_counts_against_the_rate_of_its_user(
    engine: FakeEngine,
    auth: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    standing = functools.partial(UserLimits, clock=Clock())
    monkeypatch.setattr("sluicegate.server.app.UserLimits", standing)
    async with (
        served(engine, auth=auth, max_requests_per_minute=5) as address,
        over_socket(address) as http,
        opened(address, additional_headers=ADA) as client,
    ):
        statuses = [
            (await http.get("/api/chats/unknown", headers=ADA)).status_code,
            (await http.get("/api/approvals", headers=ADA)).status_code,
            (await http.post("/api/approvals/a1", json={}, headers=ADA)).status_code,
            (await http.get("/api/chats/c1/files/unknown", headers=ADA)).status_code,
        ]
        assert statuses == [404, 200, 202, 404]
        assert (await client.exchange(send_frame()))[-1]["type"] == "end"
        for _ in range(2):
            refused = await http.get("/api/approvals", headers=ADA)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        [error] = await client.exchange(send_frame("r2"))
        assert error["code"] == "too_many_requests"
        assert (await http.get("/api/approvals", headers=BOB)).status_code == 200
    lines = [line for line in caplog.messages if "max_requests_per_minute" in line]
    assert lines == ["refused: a limit is reached limit=max_requests_per_minute by=ada"]


async def test_a_live_socket_counts_against_the_rate_of_its_user(tmp_path: Path) -> None:
    async with server(tmp_path, max_requests_per_minute=2) as (address, _):
        async with opened(address, "/api/live?chat=c1") as client:
            assert (await client.exchange(send_frame()))[-1]["type"] == "end"
        async with opened(address, "/api/live?chat=c1") as client:
            assert (await client.next("live"))["code"] == "too_many_requests"
            assert await client.wait_closed() == (1013, "too_many_requests")


async def test_replicas_count_the_rate_of_a_user_together(valkey: Valkey, tmp_path: Path) -> None:
    def replica(name: str) -> Starlette:
        return create_app(
            LlmAgent(name="assistant", model="gemini-2.5-flash"),
            sessions=f"sqlite+aiosqlite:///{tmp_path}/{name}.db",
            artifacts=f"file:{tmp_path}/{name}",
            streams=valkey.url(),
            max_requests_per_minute=60,
            page=False,
        )

    one, two = replica("one"), replica("two")
    async with started(one), started(two), client(one) as here, client(two) as there:
        for _ in range(50):
            assert (await here.get("/api/approvals")).status_code == 200
        accepted = 0
        async with asyncio.timeout(PATIENCE):
            while (await there.get("/api/approvals")).status_code == 200:
                accepted += 1
                await asyncio.sleep(0.02)
    # Alone it would have accepted 60.
    assert accepted < 60


def test_a_user_may_send_again_after_a_minute() -> None:
    now = 0.0
    limits = UserLimits(per_minute=2, connections=1, clock=lambda: now)
    for _ in range(2):
        limits.count_request("ada")
    with pytest.raises(TooManyRequests):
        limits.count_request("ada")
    now = 61.0
    limits.count_request("ada")


async def test_the_connections_of_a_user_are_limited_over_all_transports(
    engine: FakeEngine, auth: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine.steps = [StartChunk(message_id=MESSAGE), asyncio.Event()]
    async with (
        served(engine, auth=auth, max_connections_per_user=2) as address,
        over_socket(address, timeout=PATIENCE) as http,
        opened(address) as without_user,
    ):
        async with opened(address, additional_headers=ADA):
            body = json.dumps(chat_body())
            headers = ADA | {"content-type": "application/json"}
            async with http.stream("POST", "/api/chat", content=body, headers=headers) as stream:
                assert stream.status_code == 200
                assert (await http.get("/api/approvals", headers=ADA)).status_code == 429
                with pytest.raises(InvalidStatus) as caught:
                    async with opened(address, additional_headers=ADA):
                        pass
                assert caught.value.response.status_code == 429
                [error] = await without_user.exchange(send_frame() | {"headers": ADA})
                assert error["code"] == "too_many_requests"
                assert (await http.get("/api/approvals", headers=BOB)).status_code == 200
        async with asyncio.timeout(PATIENCE):
            while (await http.get("/api/approvals", headers=ADA)).status_code != 200:
                pass
    lines = [line for line in caplog.messages if "max_connections_per_user" in line]
    assert lines == ["refused: a limit is reached limit=max_connections_per_user by=ada"]


@pytest.mark.parametrize("setting", ["max_connections", "max_connections_per_peer"])
async def test_connections_are_limited_in_all_and_for_each_peer(
    engine: FakeEngine, caplog: pytest.LogCaptureFixture, setting: str
) -> None:
    settings: dict[str, Any] = {setting: 2, "trusted_proxies": ()}
    async with served(engine, **settings) as address:
        async with opened(address) as socket, RawConnection.open(address) as idle:
            await idle.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert (await idle.answer()).status == 200
            async with RawConnection.open(address) as third:
                refused = await third.answer()
                assert (refused.status, refused.headers["retry-after"]) == (503, "5")
                assert refused.headers["x-error-code"] == "unavailable"
                assert await third.is_closed()
            assert await socket.is_alive()
        async with asyncio.timeout(PATIENCE):
            while await status(address) != 200:
                pass
    lines = [line for line in caplog.messages if f"limit={setting} " in line]
    assert lines == [f"refused: a limit is reached limit={setting} by=127.0.0.1"]


async def status(address: Address) -> int:
    async with RawConnection.open(address) as raw:
        await raw.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        return (await raw.answer()).status


async def test_the_connections_of_a_trusted_proxy_are_those_of_many_users(
    engine: FakeEngine,
) -> None:
    async with served(engine, max_connections_per_peer=1) as address, opened(address) as first:
        async with opened(address) as second:
            assert await second.is_alive()
        assert await first.is_alive()


@pytest.mark.parametrize(
    ("hosts", "accepted"),
    [
        (["192.0.2.1", "192.0.2.1"], [True, False]),
        (["192.0.2.1", "192.0.2.2"], [True, True]),
        (["192.0.2.1", "::ffff:192.0.2.1"], [True, False]),
        (["2001:db8::1", "2001:db8::2"], [True, False]),
        (["2001:db8::1", "2001:db8:0:1::1"], [True, True]),
        (["10.0.0.1", "10.0.0.1"], [True, True]),
        ([None, None], [True, True]),
    ],
)
def test_a_peer_is_an_address_or_a_network_of_one_client(
    hosts: list[str | None], accepted: list[bool]
) -> None:
    limits = ConnectionLimits(
        total=3, per_peer=1, trusted=["10.0.0.0/8"], refusals=RefusalLog(clock=lambda: 0.0)
    )
    transports = [cast("asyncio.BaseTransport", object()) for _ in hosts]
    answers = [limits.accept(each, host) for each, host in zip(transports, hosts, strict=True)]
    assert answers == accepted
    for transport in transports:
        limits.release(transport)
    assert limits.accept(transports[1], hosts[1])


def test_a_refusal_is_logged_once_a_minute_for_each_subject(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    log = RefusalLog(clock=lambda: now)
    for seconds in (0.0, 30.0, 61.0):
        now = seconds
        log.note("limit", "ada")
        log.note("limit", "bob")
    assert len(caplog.messages) == 4
