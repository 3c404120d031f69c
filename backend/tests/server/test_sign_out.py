"""Signing out ends what the session has open at the server, over every transport."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest

from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.server.app import build, engine_of
from sluicegate.server.session_cookie import COOKIE
from sluicegate.server.settings import Settings
from tests.engine.stage import HeldTool, calls, says, scripted
from tests.patience import LEASE
from tests.real_stores.databases import flush, fresh_database
from tests.real_stores.postgres import Postgres
from tests.real_stores.valkey import Valkey
from tests.server.event_stream import LIMIT, events_of
from tests.server.exchange import chat_body, over_socket, serving, started
from tests.stores.builders import PATIENT, PATIENT_STREAMS
from tests.transports.live_client import opened_live
from tests.transports.socket_client import opened, send_frame

TOKEN = "token-of-ada"
BEARER = {"authorization": f"Bearer {TOKEN}"}
Address: TypeAlias = tuple[str, int]


@dataclass
class Stage:
    """A server, the tool of its running turn, and another server of the same stores or itself."""

    address: Address
    held: HeldTool
    elsewhere: Address

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.address[1]}"

    async def sign_in(self) -> dict[str, str]:
        """Begin a session; returns the headers of a page that has its cookie."""
        async with over_socket(self.address) as http:
            response = await http.post("/api/session", headers=BEARER | {"origin": self.origin})
        return {"cookie": f"{COOKIE}={response.cookies[COOKIE]}", "origin": self.origin}

    async def sign_out(self, session: dict[str, str]) -> None:
        there = f"http://127.0.0.1:{self.elsewhere[1]}"
        async with over_socket(self.elsewhere) as http:
            headers = session | {"origin": there}
            assert (await http.delete("/api/session", headers=headers)).status_code == 204

    async def stored_answer(self) -> str:
        """Let the tool end; returns the last part of the answer that is stored then."""
        async with over_socket(self.address, headers=BEARER, timeout=LIMIT) as http:
            async with events_of(http) as stream:
                await stream.next()
                self.held.may_end.set()
                await stream.until(type="chat", status="ready")
            chat = (await http.get("/api/chats/c1")).json()
        return str(chat["messages"][-1]["parts"][-1]["text"])


@contextlib.asynccontextmanager
async def server(tokens: Path, held: HeldTool, **stores: Any) -> AsyncIterator[Address]:
    script = {"hold": [calls(("hold", {"n": 1})), says("Done.")], ".": [says("Hello.")]}
    settings = Settings(auth=f"bearer:{tokens}", lease_ttl=LEASE, **stores)
    agent = scripted(script, [held.tool()])
    timings = EngineTimings(database=PATIENT, streams=PATIENT_STREAMS)
    open_engine = engine_of(agent, settings, timings=timings)
    application = build(open_engine, settings)
    async with started(application.app), serving(application) as address:
        yield address


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()} ada\n")
    return path


@pytest.fixture(params=["here", "at another replica"])
async def stage(
    request: pytest.FixtureRequest, tokens: Path, tmp_path: Path
) -> AsyncIterator[Stage]:
    """The server of the connections, and where the user signs out."""
    held = HeldTool()
    stores: dict[str, Any] = {"artifacts": f"file:{tmp_path}/files"}
    if request.param == "here":
        url = f"sqlite+aiosqlite:///{tmp_path}/chats.db"
        async with server(tokens, held, sessions=url, **stores) as address:
            yield Stage(address, held, address)
        return
    valkey: Valkey = request.getfixturevalue("valkey")
    await flush(valkey)
    async with fresh_database(request.getfixturevalue("postgres")) as url:
        stores |= {"sessions": url, "streams": valkey.url()}
        async with (
            server(tokens, held, **stores) as one,
            server(tokens, HeldTool(), **stores) as other,
        ):
            yield Stage(one, held, other)


async def the_events(stage: Stage, session: dict[str, str]) -> None:
    async with (
        over_socket(stage.address, headers=session, timeout=LIMIT) as http,
        events_of(http) as stream,
    ):
        await stream.next()
        await stage.sign_out(session)
        await stream.to_the_end()
        assert (await http.get("/api/events")).status_code == 401


async def an_answer(stage: Stage, session: dict[str, str]) -> None:
    async with over_socket(stage.address, headers=session, timeout=LIMIT) as http:
        body = chat_body("hold")
        await read_to_the_end(stage, session, http.stream("POST", "/api/chat", json=body))
    assert await stage.stored_answer() == "Done."


async def a_resumed_answer(stage: Stage, session: dict[str, str]) -> None:
    async with (
        over_socket(stage.address, headers=BEARER, timeout=LIMIT) as starting,
        starting.stream("POST", "/api/chat", json=chat_body("hold")) as first,
        over_socket(stage.address, headers=session, timeout=LIMIT) as http,
    ):
        await stage.held.began.wait()
        await read_to_the_end(stage, session, http.stream("GET", "/api/chat/c1/stream"))
        # The stream that the token itself has opened is another one.
        assert await stage.stored_answer() == "Done."
        assert "[DONE]" in "".join([text async for text in first.aiter_text()])


async def read_to_the_end(stage: Stage, session: dict[str, str], opening: Any) -> None:
    async with opening as response:
        lines = response.aiter_lines()
        while "tool-input-available" not in await anext(lines):
            pass
        await stage.sign_out(session)
        # A clean end would look like a complete answer.
        with pytest.raises(httpx.RemoteProtocolError):
            async for _ in lines:
                pass


async def a_socket(stage: Stage, session: dict[str, str]) -> None:
    async with opened(stage.address, **handshake(session)) as client:
        await client.send(send_frame(text="hold"))
        await stage.held.began.wait()
        await stage.sign_out(session)
        assert await client.wait_closed() == (4401, "unauthenticated")
    assert await stage.stored_answer() == "Done."


async def an_idle_socket(stage: Stage, session: dict[str, str]) -> None:
    async with opened(stage.address, **handshake(session)) as client:
        await stage.sign_out(session)
        assert await client.wait_closed() == (4401, "unauthenticated")


async def a_live_socket(stage: Stage, session: dict[str, str]) -> None:
    async with opened_live(stage.address, **handshake(session)) as client:
        await stage.sign_out(session)
        assert await client.wait_closed() == (4401, "unauthenticated")


def handshake(session: dict[str, str]) -> dict[str, Any]:
    return {"origin": session["origin"], "additional_headers": {"Cookie": session["cookie"]}}


CONNECTIONS = [
    the_events,
    an_answer,
    a_resumed_answer,
    a_socket,
    an_idle_socket,
    a_live_socket,
]


@pytest.mark.parametrize("connection", CONNECTIONS, ids=lambda each: each.__name__)
async def test_sign_out_ends_what_the_session_has_open(
    stage: Stage, connection: Callable[[Stage, dict[str, str]], Awaitable[None]]
) -> None:
    async with asyncio.timeout(LIMIT):
        await connection(stage, await stage.sign_in())


async def test_another_session_of_the_user_stays_open(stage: Stage) -> None:
    session, other = await stage.sign_in(), await stage.sign_in()
    async with (
        opened(stage.address, **handshake(session)) as ended,
        opened(stage.address, **handshake(other)) as client,
        over_socket(stage.address, headers=other, timeout=LIMIT) as http,
        events_of(http) as stream,
    ):
        await stream.next()
        await stage.sign_out(session)
        await ended.wait_closed()
        assert (await client.exchange(send_frame()))[-1]["type"] == "end"
        # Its events are those of the user only.
        seen = await stream.until(type="chat", status="ready")
        assert {event["chatId"] for event in seen} == {"c1"}


async def test_without_a_stream_server_other_replicas_look_sessions_up(
    tokens: Path, tmp_path: Path, postgres: Postgres
) -> None:
    held = HeldTool()
    async with fresh_database(postgres) as url:
        stores: dict[str, Any] = {
            "artifacts": f"file:{tmp_path}/files",
            "sessions": url,
            "recheck_interval": 0.2,
        }
        async with (
            server(tokens, held, **stores) as one,
            server(tokens, HeldTool(), **stores) as other,
        ):
            stage = Stage(one, held, other)
            await an_answer(stage, await stage.sign_in())
