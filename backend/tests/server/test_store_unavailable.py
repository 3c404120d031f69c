"""An unavailable database: requests fail within a time limit and have no effect."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.server.app import build, engine_of
from sluicegate.server.settings import Settings
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import Database
from tests.engine.stage import Counted, calls, says, scripted
from tests.patience import LEASE
from tests.real_stores.databases import fresh_database
from tests.real_stores.postgres import Postgres
from tests.server.exchange import PATIENCE, chat_body, chunks, client, started
from tests.server.page import Page
from tests.stores.builders import unwritable

PAY = [calls(("pay", {"n": 1})), says("done")]

Outage = Callable[[], AbstractAsyncContextManager[None]]


@dataclass
class Stage:
    """A served agent with one gated tool, whose database can be made unavailable."""

    http: httpx.AsyncClient
    counted: Counted
    outage: Outage

    async def pending_page(self) -> Page:
        """A page with a pending approval."""
        page = Page(self.http)
        await page.say("pay")
        return page

    def approve(self, page: Page) -> Any:
        """Approve on the page; the request may fail."""
        for part in page.pending():
            part["state"], part["approval"]["approved"] = "approval-responded", True
        body = {"id": page.chat_id, "messages": page.messages}
        return self.http.post("/api/chat", json=body, headers={"x-ai-sdk": "7"})


@pytest.fixture(scope="module")
def own_server(real_stores_folder: Path) -> Iterator[Postgres]:
    """A PostgreSQL server that tests may stop."""
    server = Postgres(real_stores_folder / "unavailable")
    server.create()
    server.start()
    yield server
    server.stop()


@pytest.fixture(
    params=["sqlite locked", "sqlite unwritable", "postgresql stopped", "postgresql frozen"]
)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    kind, how = request.param.split()
    if kind == "sqlite":
        path = tmp_path / "chats.db"
        async with staged(f"sqlite+aiosqlite:///{path}", tmp_path) as (http, counted, database):
            ways = {
                "locked": lambda: locked(path),
                "unwritable": lambda: read_only(database),
            }
            yield Stage(http, counted, ways[how])
        return
    server: Postgres = request.getfixturevalue("own_server")
    async with fresh_database(server) as url, staged(url, tmp_path) as (http, counted, _):
        ways = {"stopped": lambda: stopped(server), "frozen": lambda: frozen(server)}
        yield Stage(http, counted, ways[how])


@asynccontextmanager
async def staged(
    url: str, folder: Path
) -> AsyncIterator[tuple[httpx.AsyncClient, Counted, Database]]:
    counted = Counted()
    settings = Settings(
        sessions=url,
        artifacts=f"file:{folder}/files",
        lease_ttl=LEASE,
        max_messages_per_minute=10**6,
        max_turns_per_minute=10**6,
    )
    application = build(engine_of(scripted(PAY, [counted.tool()]), settings), settings)
    async with started(application.app), client(application.app) as http:
        engine = await application.engine.get()
        assert isinstance(engine, ChatEngine)
        yield http, counted, engine.resources.database


@asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


@asynccontextmanager
async def read_only(database: Database) -> AsyncIterator[None]:
    connections: list[sqlite3.Connection] = []

    def make_unwritable(connection: Connection) -> None:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        connections.append(driver)
        unwritable(connection)

    await database.write(make_unwritable)
    try:
        yield
    finally:
        connections[0].execute("PRAGMA query_only=OFF")


@asynccontextmanager
async def stopped(server: Postgres) -> AsyncIterator[None]:
    await asyncio.to_thread(server.stop)
    try:
        yield
    finally:
        await asyncio.to_thread(server.start)


@asynccontextmanager
async def frozen(server: Postgres) -> AsyncIterator[None]:
    server.freeze()
    try:
        yield
    finally:
        server.thaw()


def asks_to_retry(response: httpx.Response) -> bool:
    """Whether a response asks the client to retry."""
    return (
        response.status_code == 503
        and response.headers["retry-after"] == "5"
        and response.headers["x-error-code"] == "unavailable"
        and response.text.endswith(".")
    )


async def test_requests_that_need_the_database_are_refused_until_it_is_available(
    stage: Stage,
) -> None:
    http, (page, other) = stage.http, (await stage.pending_page(), await stage.pending_page())
    chat, approval = f"/api/chats/{other.chat_id}", f"/api/approvals/{other.asks()[0]}"
    async with stage.outage():
        assert asks_to_retry(await stage.approve(page))
        assert asks_to_retry(await http.post(approval, json={"approved": True}))
        assert asks_to_retry(await http.post("/api/chat", json=chat_body("pay", chat="new")))
        assert asks_to_retry(await http.patch(chat, json={"title": "Other"}))
        assert asks_to_retry(await http.post(f"/api/chat/{other.chat_id}/stop"))
        assert asks_to_retry(await http.delete(chat))
    assert stage.counted.runs == []
    await ready(http)
    cards = (await http.get("/api/approvals")).json()["approvals"]
    assert {card["state"] for card in cards} == {"requested"}
    await page.post()
    await other.answer()
    assert stage.counted.runs == [1, 1]


async def ready(http: httpx.AsyncClient) -> None:
    """Wait with the timeout of a client."""
    async with asyncio.timeout(PATIENCE):
        while (await http.get("/readyz")).status_code != 200:
            pass


async def test_a_tool_does_not_run_if_its_claim_is_not_stored(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await stage.pending_page()
    claim = Ledger.claim
    async with AsyncExitStack() as outages:

        async def without_a_store(*args: Any, **named: Any) -> Any:
            await outages.enter_async_context(stage.outage())
            return await claim(*args, **named)

        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "claim", without_a_store)
            read = await page.answer()
        assert [chunk["type"] for chunk in read][-1] == "error"
        assert stage.counted.runs == []
    await ready(stage.http)
    # The turn could not release its lease before; it does so now.
    async with asyncio.timeout(PATIENCE):
        while (answer := await stage.approve(page)).status_code != 200:
            assert answer.headers["x-error-code"] in ("unavailable", "held_elsewhere")
    assert [chunk["type"] for chunk in chunks(answer.text)][-1] == "finish"
    assert stage.counted.runs == [1]
