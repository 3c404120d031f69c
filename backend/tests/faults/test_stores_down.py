"""The database or the stream server of two real replicas fails; nothing runs twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from sluicegate.stores.sql.time_limits import DatabaseTimings
from tests.faults.conftest import Pair
from tests.faults.served import LEASE, LIMIT, answers_again, asking, at, resuming
from tests.server.page import Page

ONE_ATTEMPT = 2 * DatabaseTimings().response
"""A request that takes longer has waited for the unavailable database twice."""

Fault = tuple[Callable[[], None], Callable[[], None]]


@pytest.fixture(params=["killed", "frozen"])
def database(replicas: Pair, request: pytest.FixtureRequest) -> Fault:
    server = replicas.postgres
    if request.param == "killed":
        return server.kill, server.start
    return server.freeze, server.thaw


@pytest.fixture(params=["killed", "frozen"])
def streams(replicas: Pair, request: pytest.FixtureRequest) -> Fault:
    server = replicas.valkey
    if request.param == "killed":
        return server.kill, server.start
    return server.freeze, server.thaw


async def test_f11_without_its_database_a_server_answers_503_and_stores_nothing(
    replicas: Pair, one: httpx.AsyncClient, two: httpx.AsyncClient, database: Fault
) -> None:
    breaks, mends = database
    page = Page(one)
    await page.say("story:approval")
    body = at(page, one)
    for part in body.pending():
        part["state"] = "approval-responded"
        part["approval"]["approved"] = True
    # A busy machine may stand still in one of three rounds; a second attempt takes time in each.
    for _ in range(3):
        breaks()
        try:
            begun = time.monotonic()
            answers = await asyncio.gather(
                one.post("/api/chat", json={"id": page.chat_id, "messages": body.messages}),
                two.post(f"/api/approvals/{page.asks()[0]}", json={"approved": True}),
                two.get(f"/api/chats/{page.chat_id}"),
                one.get("/readyz"),
            )
            took = time.monotonic() - begun
            for answer in answers:
                assert answer.status_code == 503, answer.text
                assert int(answer.headers["retry-after"]) > 0
        finally:
            mends()
        await asyncio.gather(answers_again(one), answers_again(two))
        if took < ONE_ATTEMPT:
            break
    assert took < ONE_ATTEMPT
    assert replicas.one.effects(page.chat_id) == []
    # The approval is still pending, and is decided now.
    page.http = two
    page.messages = (await two.get(f"/api/chats/{page.chat_id}")).json()["messages"]
    assert len(page.asks()) == 1
    assert (await page.answer())[-1]["type"] == "finish"
    assert replicas.two.effects(page.chat_id) == ["pay"]


async def test_f11_a_turn_ends_when_its_database_fails(
    replicas: Pair, one: httpx.AsyncClient, two: httpx.AsyncClient, database: Fault
) -> None:
    breaks, mends = database
    page = Page(one)
    held = replicas.one.hold(page.chat_id)
    async with asking(page, "story:sixty_thoughts") as stream:
        await stream.until("start")
        breaks()
        # On a busy machine the answer would be stored before the database fails.
        held.unlink()
        try:
            async with asyncio.timeout(LIMIT):
                chunks = await stream.to_the_end()
        finally:
            mends()
    assert chunks[-1]["type"] in ("finish", "error")
    await asyncio.gather(answers_again(one), answers_again(two))
    await released(page.chat_id, two)
    after = Page(two, chat_id=page.chat_id)
    assert (await after.say("story:approval"))[-1]["finishReason"] == "tool-calls"
    await after.answer()
    assert replicas.two.effects(page.chat_id) == ["pay"]


async def released(chat: str, http: httpx.AsyncClient) -> None:
    """Wait until another server has released a chat, before it would lose it."""
    async with asyncio.timeout(LEASE / 2):
        # The other process releases it, and no event of this one announces it.
        while True:
            answer = await http.get(f"/api/chats/{chat}")
            if answer.is_success and answer.json()["status"] != "running":
                return
            await asyncio.sleep(0.05)


async def test_f12_approvals_work_without_the_stream_server(
    replicas: Pair, one: httpx.AsyncClient, two: httpx.AsyncClient, streams: Fault
) -> None:
    breaks, mends = streams
    page = Page(one)
    await page.say("story:two_in_sequence")
    breaks()
    try:
        for http in (two, one):
            page.http = http
            assert (await page.answer())[-1]["type"] == "finish"
        resumed = await two.get(f"/api/chat/{page.chat_id}/stream")
        assert resumed.status_code == 204
        assert (await at(page, two).history())["parts"] == (await page.history())["parts"]
    finally:
        mends()
    assert replicas.one.effects(page.chat_id) == ["search", "update"]


async def test_f12_a_stream_ends_when_its_server_fails_and_is_shared_again_after(
    replicas: Pair, one: httpx.AsyncClient, two: httpx.AsyncClient, streams: Fault
) -> None:
    breaks, mends = streams
    page = Page(one)
    streamed: list[dict[str, Any]] = []
    async with asking(page, "story:stop") as here, resuming(page, two) as there:
        await asyncio.gather(here.until("reasoning-delta"), there.until("reasoning-delta"))
        breaks()
        try:
            # A reader at the owner is not affected; a reader at the other replica does not hang.
            stopped = await two.post(f"/api/chat/{page.chat_id}/stop")
            assert stopped.status_code == 204
            async with asyncio.timeout(LIMIT):
                streamed, _ = await asyncio.gather(here.to_the_end(), there.to_the_end())
        finally:
            mends()
    assert streamed[-1]["finishReason"] == "other"
    await shared_again(one, two)


async def shared_again(one: httpx.AsyncClient, two: httpx.AsyncClient) -> None:
    """Check that a turn of one replica is read live from the other."""
    page = Page(one)
    async with asking(page, "story:stop") as here:
        await here.until("reasoning-delta")
        async with asyncio.timeout(LIMIT):
            # The other process reconnects, and no event of this one announces it.
            while not await is_resumed(page, two):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await two.post(f"/api/chat/{page.chat_id}/stop")


async def is_resumed(page: Page, http: httpx.AsyncClient) -> bool:
    """Whether a server finds the stream of a chat."""
    async with http.stream("GET", f"/api/chat/{page.chat_id}/stream") as response:
        return response.status_code == 200
