"""Two real servers on one PostgreSQL and one Valkey server: each serves every chat (A2)."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest

from sluicegate.testing.message_comparison import comparable
from tests.faults.conftest import Pair
from tests.faults.served import LEASE, LIMIT, asking, at, client_of, resuming
from tests.server.event_stream import events_of
from tests.server.page import Page


async def card(page: Page) -> str:
    """The state of the only card of the stored message."""
    [part] = [part for part in (await page.history())["parts"] if "approval" in part]
    return str(part["state"])


async def card_states(page: Page, http: httpx.AsyncClient) -> list[str]:
    """The states of the cards of the stored message."""
    parts = (await at(page, http).history())["parts"]
    return [str(part["state"]) for part in parts if "approval" in part]


async def test_any_replica_answers_any_request(
    replicas: Pair, one: httpx.AsyncClient, two: httpx.AsyncClient
) -> None:
    page = Page(one)
    await page.say("story:two_in_sequence")
    for http in (two, one):
        page.http = http
        await page.answer()
    for http in (one, two):
        assert comparable(await at(page, http).history()) == comparable(page.messages[-1])
    assert replicas.one.effects(page.chat_id) == ["search", "update"]


async def test_a_decision_at_one_replica_is_visible_at_the_other_at_once(
    one: httpx.AsyncClient, two: httpx.AsyncClient
) -> None:
    page = Page(one)
    await page.say("story:two_in_one_step")
    first, second = page.asks()
    said = await one.post(f"/api/approvals/{first}", json={"approved": True})
    assert said.status_code == 202
    waiting = (await two.get("/api/approvals")).json()["approvals"]
    mine = [each["approvalId"] for each in waiting if each["chatId"] == page.chat_id]
    assert mine == [second]
    parts = (await at(page, two).history())["parts"]
    states = {part["approval"]["id"]: part["state"] for part in parts if "approval" in part}
    assert states == {first: "approval-responded", second: "approval-requested"}
    contrary = await two.post(f"/api/approvals/{first}", json={"approved": False})
    assert contrary.headers["x-error-code"] == "already_decided"


async def test_every_connection_sees_a_decision_and_the_turn_that_it_lets_go_on(
    replicas: Pair, one: httpx.AsyncClient, two: httpx.AsyncClient
) -> None:
    page = Page(one)
    async with events_of(one) as here, events_of(two) as there:
        for stream in (here, there):
            await stream.next()
        await page.say("story:two_in_one_step")
        first, second = page.asks()
        for stream in (here, there):
            await stream.until(type="chat", chatId=page.chat_id, status="waiting")
        # The last decision lets the turn go on, at whichever replica each is given.
        for http, approval in ((two, first), (one, second)):
            said = await http.post(f"/api/approvals/{approval}", json={"approved": True})
            assert said.status_code == 202
            for stream in (here, there):
                await stream.until(type="approval", approvalId=approval, state="approved")
        for stream in (here, there):
            seen = await stream.until(type="chat", chatId=page.chat_id, status="ready")
            executed = [event["approvalId"] for event in seen if event.get("state") == "executed"]
            assert sorted(executed) == sorted([first, second])
        position = there.position
    await two.patch(f"/api/chats/{page.chat_id}", json={"title": "Both"})
    # A position of one replica is known at the other.
    async with events_of(one, after=position) as stream:
        assert await stream.next() == {"type": "ready"}
        await stream.until(type="chat", chatId=page.chat_id, title="Both")
    assert (await card_states(page, two)) == ["output-available"] * 2


async def test_the_death_of_a_replica_resets_every_connection(
    replicas: Pair, one: httpx.AsyncClient, two: httpx.AsyncClient
) -> None:
    async with events_of(one) as lost, events_of(two) as there:
        await lost.next()
        await there.next()
        replicas.one.kill()
        await there.until(type="reset")


async def test_a_turn_of_one_is_read_live_at_the_other_and_stopped_there(
    one: httpx.AsyncClient, two: httpx.AsyncClient
) -> None:
    page = Page(one)
    async with asking(page, "story:stop") as here:
        await here.until("reasoning-delta")
        async with resuming(page, two) as there:
            await there.until("reasoning-delta")
            stopped = await two.post(f"/api/chat/{page.chat_id}/stop")
            assert stopped.status_code == 204
            async with asyncio.timeout(LIMIT):
                written, read = await asyncio.gather(here.to_the_end(), there.to_the_end())
    assert written == read
    assert written[-1]["finishReason"] == "other"


async def test_f9_a_killed_replica_leaves_an_error_and_usable_approvals(
    replicas: Pair, one: httpx.AsyncClient, two: httpx.AsyncClient
) -> None:
    waiting, page = Page(one), Page(one)
    await waiting.say("story:approval")
    async with asking(page, "story:stop") as here:
        await here.until("reasoning-delta")
        async with resuming(page, two) as there:
            await there.until("reasoning-delta")
            replicas.one.kill()
            begun = time.monotonic()
            # Pending cards do not wait for the lease of another chat.
            elsewhere = at(waiting, two)
            await elsewhere.answer()
            assert await card(elsewhere) == "output-available"
            assert time.monotonic() - begun < LEASE
            async with asyncio.timeout(LEASE + LIMIT):
                last = (await there.to_the_end())[-1]
            with pytest.raises(httpx.TransportError):
                await here.to_the_end()
    assert last["type"] == "error"
    assert replicas.two.effects(waiting.chat_id) == ["pay"]
    # The chat continues at the other replica.
    after = Page(two, chat_id=page.chat_id)
    assert (await after.say("story:plain"))[-1]["type"] == "finish"


async def test_f22_a_rolling_restart_loses_nothing(
    replicas: Pair,
) -> None:
    async with client_of(replicas.one.url) as http:
        waiting, page = Page(http), Page(http)
        await waiting.say("story:two_in_sequence")
        async with asking(page, "story:stop") as here:
            await here.until("reasoning-delta")
            stopped = asyncio.create_task(asyncio.to_thread(replicas.one.stop))
            last = (await here.to_the_end())[-1]
            await stopped
    assert (last["type"], "restarting" in last["errorText"]) == ("error", True)
    async with client_of(replicas.two.url) as http:
        waiting.http = http
        await waiting.answer()
        # The interrupted chat is free at once: its lease was released.
        assert (await at(page, http).say("story:plain"))[-1]["type"] == "finish"
    replicas.one.revive()
    await asyncio.to_thread(replicas.two.stop)
    async with client_of(replicas.one.url) as http:
        waiting.http = http
        await waiting.answer()
        assert comparable(await waiting.history()) == comparable(waiting.messages[-1])
    assert replicas.one.effects(waiting.chat_id) == ["search", "update"]
