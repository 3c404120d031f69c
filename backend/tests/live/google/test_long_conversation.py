"""A long conversation: connections are renewed, approvals come and go, and no word is lost."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.engine.stage import Counted
from tests.live.google.conftest import OpenSite
from tests.live.google.live_api import (
    GEMINI_2_5,
    GEMINI_3_1,
    GEMINI_3_8,
    LIMIT,
    Call,
    Family,
    Say,
    Script,
    Step,
)
from tests.live.google.page import Page
from tests.parts import PART

MINUTES_OF_A_CONNECTION = 10
MINUTES_BETWEEN_PAYMENTS = 3
ROOM = 8
"""Objects of the live chat that may be there at one time and not at another."""


def script_of(minutes: int) -> Script:
    """One question in each minute, every third with a payment."""
    steps: dict[str, list[Step]] = {"waits for a person": [Say("I have asked you.")]}
    for minute in range(minutes):
        steps[f'"paid": {minute}}}'] = [Say(f"Paid in minute {minute}.")]
        steps[f"payment of minute {minute}."] = [Call("pay", {"n": minute})]
        steps[f"question of minute {minute}."] = [Say(f"Answer of minute {minute}.")]
    return steps


def live_objects() -> Counter[str]:
    """The objects of the live chats of this process, by class."""
    gc.collect()
    types: list[Any] = [type(each) for each in gc.get_objects()]
    return Counter(
        kind.__qualname__ for kind in types if str(kind.__module__).startswith("sluicegate.live.")
    )


async def ask(page: Page, minute: int) -> tuple[str, str]:
    """Say a question, wait for the answer; returns both as they have to be stored."""
    question, answer = f"The question of minute {minute}.", f"Answer of minute {minute}."
    await page.speak(question)
    await until_last(page, answer)
    return question, answer


async def pay(page: Page, minute: int, interim: str) -> tuple[str, str]:
    """Ask for a payment, approve it, wait for the report; as `ask`."""
    question, answer = f"The payment of minute {minute}.", f"{interim}Paid in minute {minute}."
    await page.speak(question)
    await page.until_state("pay", "approval-requested")
    await page.is_settled()
    asked = (await page.stored())["messages"][-1]
    [part] = [each for each in asked["parts"] if "approval" in each]
    path = f"/api/approvals/{part['approval']['id']}"
    response = await page.http.post(path, json={"approved": True})
    assert response.status_code == 202, response.text
    await until_last(page, answer)
    return question, answer


@contextlib.asynccontextmanager
async def listening(page: Page) -> AsyncIterator[None]:
    """Read what the page is sent: the server ends a connection that nobody reads."""

    async def read() -> None:
        async for _ in page.client.connection:
            pass

    reading = asyncio.create_task(read())
    try:
        yield
    finally:
        reading.cancel()


async def until_last(page: Page, text: str) -> None:
    """Wait until the last message has a text, and nothing runs."""
    texts: list[str] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LIMIT):
            while texts[-1:] != [text]:
                await page.is_settled()
                texts = await page.texts()
    assert texts[-1:] == [text], texts[-4:]


@pytest.mark.parametrize(
    ("family", "minutes"),
    [(GEMINI_2_5, 15), (GEMINI_3_1, 15), (GEMINI_3_8, 60 if PART == "all" else 40)],
    ids=["2.5", "3.1", "3.8"],
)
async def test_a_long_conversation_is_stored_word_for_word(
    open_site: OpenSite, family: Family, minutes: int
) -> None:
    paid = Counted()
    # The minutes of the conversation are shorter than those of the server.
    limits = dict.fromkeys(("max_turns_per_minute", "max_requests_per_minute"), 1_000_000)
    site = await open_site(family, script_of(minutes), [paid.tool()], settings=limits)
    interim = "I have asked you." if family is GEMINI_3_1 else ""
    said: list[str] = []
    early: Counter[str] = Counter()
    async with site.page() as page, listening(page):
        for minute in range(minutes):
            if minute % MINUTES_BETWEEN_PAYMENTS == 0:
                said += await pay(page, minute, interim)
            else:
                said += await ask(page, minute)
            if minute % MINUTES_OF_A_CONNECTION == MINUTES_OF_A_CONNECTION - 1:
                count = len(site.api.connections)
                await site.api.last.go_away()
                await site.api.until(
                    lambda count=count: len(site.api.connections) > count and site.api.last.setup
                )
                if not early or minute < minutes / 2:
                    early = live_objects()
        assert await page.texts() == said
        grown = live_objects() - early
        assert sum(grown.values()) <= ROOM, grown
    assert paid.runs == [*range(0, minutes, MINUTES_BETWEEN_PAYMENTS)]
    assert len(site.api.connections) == 1 + minutes // MINUTES_OF_A_CONNECTION
