"""``GET /events`` of a running server: everything that changes for a user, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.adk.tools.function_tool import FunctionTool
from starlette.types import Message, Scope

from sluicegate.server.app import Application, build, engine_of
from sluicegate.server.settings import Settings
from sluicegate.stores.streams.user_events import MemoryUserEvents
from sluicegate.transports.open_streams import OpenStreams
from sluicegate.transports.slow_clients import ABORT
from sluicegate.transports.user_events import EventStreamLimits, UserEventStream
from tests.engine.stage import calls, says, scripted
from tests.patience import LEASE
from tests.server.event_stream import LIMIT, events_of
from tests.server.exchange import over_socket, serving, started
from tests.server.page import Page

SECRET = "4711 to Mallory"


async def pay(to: str) -> dict[str, Any]:
    """Pay."""
    return {"paid": to}


AGENT = scripted(
    {
        "pay": [calls(("pay", {"to": SECRET})), says("Paid.")],
        ".": [says(*["Hello "] * 50)],
    },
    [FunctionTool(pay, require_confirmation=True)],
)


def app_of(folder: Path, **settings: Any) -> Application:
    chosen = Settings(
        sessions=f"sqlite+aiosqlite:///{folder}/chats.db",
        artifacts=f"file:{folder}/files",
        **{"lease_ttl": LEASE, **settings},
    )
    return build(engine_of(AGENT, chosen), chosen, authenticate=header_user)


async def header_user(connection: Any) -> str | None:
    """The user that a header names."""
    user: str | None = connection.headers.get("x-user", "ann")
    return None if user in REVOKED else user


REVOKED: set[str] = set()


@contextlib.asynccontextmanager
async def served(folder: Path, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        running(app_of(folder, **settings)) as address,
        over_socket(address, timeout=LIMIT) as http,
    ):
        yield http


@contextlib.asynccontextmanager
async def running(application: Application) -> AsyncIterator[tuple[str, int]]:
    async with started(application.app), serving(application) as address:
        yield address


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with served(tmp_path) as http:
        yield http


def short(event: dict[str, Any]) -> str:
    return " ".join(str(event[name]) for name in ("type", "status", "state") if name in event)


async def test_a_turn_that_waits_and_a_decision_from_outside_are_events_without_contents(
    http: httpx.AsyncClient,
) -> None:
    page = Page(http)
    async with events_of(http) as stream:
        assert await stream.next() == {"type": "ready"}
        await page.say("pay please")
        begun = await stream.until(type="chat", status="waiting")
        assert [short(event) for event in begun] == [
            "chat",
            "chat running",
            "message",
            "approval requested",
            "message",
            "chat waiting",
        ]
        assert {event["chatId"] for event in begun} == {page.chat_id}
        assert begun[0]["title"] == "pay please"
        assert begun[2]["messageId"] == page.messages[0]["id"]
        assert begun[4]["messageId"] == page.messages[1]["id"]
        [approval] = page.asks()
        assert begun[3] == {
            "type": "approval",
            "chatId": page.chat_id,
            "approvalId": approval,
            "tool": "pay",
            "state": "requested",
        }
        said = await http.post(f"/api/approvals/{approval}", json={"approved": True})
        assert said.status_code == 202
        ended = await stream.until(type="chat", status="ready")
        assert [short(event) for event in ended] == [
            "approval approved",
            "chat",
            "chat running",
            "approval executing",
            "approval executed",
            "message",
            "chat ready",
        ]
        assert SECRET not in json.dumps(stream.events)
        assert "Paid." not in json.dumps(stream.events)
        # What an event says is stored.
        assert (await page.history())["parts"][-1]["text"] == "Paid."


async def test_nothing_is_published_per_delta(http: httpx.AsyncClient) -> None:
    async with events_of(http) as stream:
        await stream.next()
        await Page(http).say("hello")
        assert len(await stream.until(type="chat", status="ready")) == 5


async def test_a_chat_that_is_renamed_superseded_or_deleted_is_an_event(
    http: httpx.AsyncClient,
) -> None:
    page = Page(http)
    await page.say("pay please")
    async with events_of(http) as stream:
        await stream.next()
        await http.patch(f"/api/chats/{page.chat_id}", json={"title": "Rent"})
        [renamed] = await stream.until(type="chat")
        assert renamed["title"] == "Rent"
        await http.post(f"/api/chat/{page.chat_id}/stop")
        stopped = await stream.until(type="chat", status="ready")
        assert [short(event) for event in stopped] == ["approval superseded", "chat ready"]
        await http.delete(f"/api/chats/{page.chat_id}")
        [deleted] = await stream.until(type="chat.deleted")
        assert deleted["chatId"] == page.chat_id


async def test_another_user_sees_nothing_of_it(http: httpx.AsyncClient) -> None:
    async with events_of(http, **{"x-user": "bob"}) as stream:
        await stream.next()
        await Page(http).say("pay please")
        async with events_of(http) as own:
            position = own.position
            await own.next()
            position = own.position
        # Nor with the position of an event of somebody else.
        async with events_of(http, after=position, **{"x-user": "bob"}) as later:
            assert (await later.next())["type"] == "ready"
            bobs = {"x-user": "bob"}
            chat = {
                "id": "bobs",
                "message": {
                    "id": "u",
                    "role": "user",
                    "parts": [{"type": "text", "text": "hello"}],
                },
            }
            await http.post("/api/chat", json=chat, headers=bobs)
            for each in (stream, later):
                seen = await each.until(type="chat", status="ready")
                assert {event["chatId"] for event in seen} == {"bobs"}


@pytest.mark.parametrize("by", ["header", "query"])
async def test_a_connection_resumes_after_the_last_event_that_it_got(
    http: httpx.AsyncClient, by: str
) -> None:
    page = Page(http)
    async with events_of(http) as stream:
        await stream.next()
        await page.say("hello")
        await stream.until(type="chat", status="running")
        position = stream.position
    await http.patch(f"/api/chats/{page.chat_id}", json={"title": "New"})
    if by == "header":
        connecting = events_of(http, after=position)
    else:
        http.params = httpx.QueryParams(after=position)
        connecting = events_of(http)
    async with connecting as stream:
        assert await stream.next() == {"type": "ready"}
        missed = await stream.until(type="chat", title="New")
        assert [short(event) for event in missed] == ["message", "message", "chat ready", "chat"]


async def test_an_unknown_position_and_one_of_an_earlier_process_are_reset(tmp_path: Path) -> None:
    async with served(tmp_path) as http:
        async with events_of(http) as stream:
            await stream.next()
            position = stream.position
        async with events_of(http, after="never-seen") as stream:
            assert await stream.next() == {"type": "reset"}
        refused = await http.get("/api/events", headers={"last-event-id": "1" * 65})
        assert (refused.status_code, refused.headers["x-error-code"]) == (400, "malformed")
    async with served(tmp_path) as http, events_of(http, after=position) as stream:
        assert await stream.next() == {"type": "reset"}


async def test_a_silent_stream_sends_comments(tmp_path: Path) -> None:
    async with served(tmp_path, keep_alive=0.05) as http, events_of(http) as stream:
        await stream.next()
        # At the default interval so many take longer than the limit.
        async with asyncio.timeout(LIMIT):
            for _ in range(5):
                assert await stream.comment() == ": keep-alive"


async def test_a_silent_stream_ends_with_its_credentials(tmp_path: Path) -> None:
    async with (
        served(tmp_path, keep_alive=0.05, recheck_interval=0.5) as http,
        events_of(http, **{"x-user": "carl"}) as stream,
    ):
        await stream.next()
        REVOKED.add("carl")
        try:
            await stream.to_the_end()
            refused = await http.get("/api/events", headers={"x-user": "carl"})
        finally:
            REVOKED.discard("carl")
        assert refused.status_code == 401


async def test_a_graceful_stop_ends_the_stream_with_a_time_to_come_back(tmp_path: Path) -> None:
    application = app_of(tmp_path)
    async with running(application) as address, over_socket(address, timeout=LIMIT) as http:
        async with events_of(http) as stream:
            await stream.next()
            stopping = asyncio.create_task(application.shutdown.drain(LIMIT, asyncio.Event()))
            fields = await stream.to_the_end()
            await stopping
        assert fields == ["retry: 1000", "retry: 1000"]
        assert (await http.get("/api/events")).status_code == 503


async def test_a_client_that_does_not_read_is_dropped() -> None:
    dropped = asyncio.Event()

    async def receive() -> Message:
        await dropped.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def is_still_user() -> bool:
        return True

    events = MemoryUserEvents()
    stream = UserEventStream(
        events.read("ann", None), OpenStreams(), EventStreamLimits(10.0, 60.0, 0.01), is_still_user
    )
    scope: Scope = {"type": "http", "extensions": {ABORT: {"call": dropped.set}}}
    async with asyncio.timeout(LIMIT):
        await stream(scope, receive, send)
    assert dropped.is_set()


async def test_a_user_has_a_limited_number_of_connections(tmp_path: Path) -> None:
    async with (
        served(tmp_path, max_connections_per_user=2) as http,
        events_of(http) as one,
        events_of(http) as two,
    ):
        await asyncio.gather(one.next(), two.next())
        refused = await http.get("/api/events")
        code = refused.headers["x-error-code"]
        assert (refused.status_code, code) == (429, "too_many_requests")
