"""A replica that is suspended and resumed, as on a swapped-out or suspended machine."""

from __future__ import annotations

import asyncio
import time

import httpx

from tests.faults.conftest import Pair
from tests.faults.served import LEASE, LIMIT, asking, at, resuming
from tests.server.page import Page


async def test_f10_a_replica_suspended_past_its_lease_writes_nothing_more(
    replicas: Pair, one: httpx.AsyncClient, two: httpx.AsyncClient
) -> None:
    page = Page(one)
    async with asking(page, "story:stop") as here, resuming(page, two) as there:
        await asyncio.gather(here.until("reasoning-delta"), there.until("reasoning-delta"))
        replicas.one.freeze()
        try:
            async with asyncio.timeout(LEASE + LIMIT):
                assert (await there.to_the_end())[-1]["type"] == "error"
            # The other replica has taken the chat over while the first one is suspended.
            after = Page(two, chat_id=page.chat_id)
            assert (await after.say("story:approval"))[-1]["finishReason"] == "tool-calls"
            await after.answer()
            stored = (await two.get(f"/api/chats/{page.chat_id}")).json()["messages"]
        finally:
            replicas.one.thaw()
        async with asyncio.timeout(LIMIT):
            assert (await here.to_the_end())[-1]["type"] == "error"
    assert (await one.get(f"/api/chats/{page.chat_id}")).json()["messages"] == stored
    assert replicas.two.effects(page.chat_id) == ["pay"]


async def test_f10_an_approval_sent_to_a_suspended_replica_runs_once(
    replicas: Pair, one: httpx.AsyncClient, two: httpx.AsyncClient
) -> None:
    page = Page(one)
    await page.say("story:approval")
    answered = at(page, one)
    replicas.one.freeze()
    try:
        suspended = asyncio.create_task(answered.answer())
        elsewhere = at(page, two)
        assert (await elsewhere.answer())[-1]["type"] == "finish"
    finally:
        replicas.one.thaw()
    assert (await suspended)[-1]["type"] == "finish"
    assert replicas.two.effects(page.chat_id) == ["pay"]


async def test_f23_a_short_stall_loses_no_lease(
    replicas: Pair, one: httpx.AsyncClient, two: httpx.AsyncClient
) -> None:
    for _ in range(3):
        page = Page(one)
        async with asking(page, "story:stop") as here, resuming(page, two) as there:
            await asyncio.gather(here.until("reasoning-delta"), there.until("reasoning-delta"))
            replicas.one.freeze()
            begun = time.monotonic()
            try:
                # A third of the lease: one renewal is missed, and no more.
                await asyncio.sleep(LEASE / 3)
            finally:
                replicas.one.thaw()
            # A busy machine may lengthen a stall, and then another one is short.
            is_short = time.monotonic() - begun < LEASE / 2
            stopped = await two.post(f"/api/chat/{page.chat_id}/stop")
            assert stopped.status_code == 204 or not is_short
            streamed, resumed = await asyncio.gather(here.to_the_end(), there.to_the_end())
        if is_short:
            break
    assert is_short
    assert streamed[-1]["finishReason"] == "other"
    assert resumed == streamed
