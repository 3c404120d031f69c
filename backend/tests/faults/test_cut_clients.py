"""Clients behind a network that cuts, resets, silences and fragments connections (F8)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, cast

import httpx
import pytest

from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.reducer import reduce_chunks
from sluicegate.wire.ui_messages import UIMessage
from tests.faults.chaos import Chaos, Direction, chaos_before
from tests.faults.conftest import Pair
from tests.faults.served import LIMIT, Stream, asking, client_of
from tests.server.page import CHUNK, Page

SEVEN = {"x-ai-sdk": "7"}
LIVE = {"x-release": "progressive"}
"""The release policy that emits text immediately."""


@pytest.fixture
async def direct(replicas: Pair) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(replicas.one.url) as http:
        yield http


@pytest.fixture
async def chaos(replicas: Pair) -> AsyncIterator[Chaos]:
    async with chaos_before(replicas.one.port) as made:
        yield made


def reduced(chunks: list[dict[str, Any]]) -> UIMessage:
    """Reduce chunks to a message, as a client does."""
    return reduce_chunks([CHUNK.validate_python(each) for each in chunks], None)


async def over(page: Page) -> list[UIMessage]:
    """The stored messages once the turn is over."""
    async with asyncio.timeout(LIMIT):
        while True:
            chat = (await page.http.get(f"/api/chats/{page.chat_id}")).json()
            if chat["status"] != "running":
                return cast("list[UIMessage]", chat["messages"])
            # The turn ends in another process, without a notification.
            await asyncio.sleep(0.02)


def cutting(count: int, does: Callable[[], None]) -> Callable[[Direction, bytes], bool]:
    """Forward that many chunks, then inject a fault."""
    passed = 0

    def spares(way: Direction, piece: bytes) -> bool:
        nonlocal passed
        if way == "down":
            passed += piece.count(b"data: ")
            if passed > count:
                does()
        return True

    return spares


@pytest.mark.parametrize("way", ["cut", "reset", "silence"])
@pytest.mark.parametrize("after", [0, 1, 2, 3, 10, 20, 30, 40, 50, 60, 63])
async def test_f8_a_client_cut_off_after_any_chunk_resumes_the_whole_message(
    chaos: Chaos, direct: httpx.AsyncClient, after: int, way: str
) -> None:
    async with client_of(chaos.url) as http:
        page = Page(http)
        silent = asyncio.Event()
        chaos.weather.spares = cutting(after, fault(chaos, way, silent))

        async def ask() -> None:
            async with asking(page, "story:sixty_chunks", **LIVE) as stream:
                await stream.to_the_end()

        await until_silent(ask(), silent)
        page.http = direct
        async with direct.stream("GET", f"/api/chat/{page.chat_id}/stream", headers=SEVEN) as again:
            resumed = await Stream(again).to_the_end()
        question, answer = await over(page)
    assert question["role"] == "user"
    if again.status_code == 200:
        assert comparable(reduced(resumed)) == comparable(answer)
    [text] = [part["text"] for part in answer["parts"] if part["type"] == "text"]
    assert text == " ".join(f"piece {number:02}" for number in range(1, 61)) + "."


def fault(chaos: Chaos, way: str, silent: asyncio.Event) -> Callable[[], None]:
    """The fault of the connections; ``silent`` is set when no more bytes pass."""

    def silence() -> None:
        chaos.weather.silent = {"up", "down"}
        silent.set()

    return {"cut": chaos.cut, "reset": chaos.reset, "silence": silence}[way]


async def until_silent(asking: Coroutine[Any, Any, object], silent: asyncio.Event) -> None:
    """Await a request; a client leaves a connection that has become silent."""
    request, silence = asyncio.create_task(asking), asyncio.create_task(silent.wait())
    await asyncio.wait([request, silence], timeout=LIMIT, return_when=asyncio.FIRST_COMPLETED)
    assert request.done() or silence.done()
    for task in (request, silence):
        task.cancel()
    with contextlib.suppress(httpx.TransportError, asyncio.CancelledError):
        await request


@pytest.mark.parametrize("way", ["cut", "reset", "silence"])
async def test_f8_an_approved_call_is_not_affected_by_a_disconnect(
    replicas: Pair, chaos: Chaos, direct: httpx.AsyncClient, way: str
) -> None:
    page = Page(direct)
    await page.say("story:approval")
    [part] = page.pending()
    part["state"] = "approval-responded"
    part["approval"]["approved"] = True
    silent = asyncio.Event()
    chaos.weather.spares = cutting(0, fault(chaos, way, silent))
    async with client_of(chaos.url) as http:
        body = {"id": page.chat_id, "messages": page.messages}
        for _ in range(2):
            # A request without a response is sent again.
            await until_silent(http.post("/api/chat", json=body, headers=SEVEN), silent)
    _, answer = await over(page)
    [card] = [part for part in answer["parts"] if "approval" in part]
    assert card["state"] == "output-available"
    assert replicas.one.effects(page.chat_id) == ["pay"]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_f8_a_fragmented_stream_is_the_same_stream(
    chaos: Chaos, direct: httpx.AsyncClient, size: int
) -> None:
    chaos.weather.size = size
    async with client_of(chaos.url) as http:
        page = Page(http)
        await page.say("story:two_in_one_step")
        await page.answer()
    assert comparable(await Page(direct, chat_id=page.chat_id).history()) == comparable(
        page.messages[-1]
    )


async def test_f8_a_slow_reader_gets_everything_and_delays_no_other(
    chaos: Chaos, direct: httpx.AsyncClient
) -> None:
    chaos.weather.size, chaos.weather.delay = 256, 1.0
    async with client_of(chaos.url) as http:
        slow = Page(http)
        reading = asyncio.create_task(slow.say("story:sixty_thoughts"))
        quick = Page(direct)
        await quick.say("story:plain")
        assert not reading.done()
        chaos.weather.delay = 0.005
        await reading
    assert comparable(await Page(direct, chat_id=slow.chat_id).history()) == comparable(
        slow.messages[-1]
    )
