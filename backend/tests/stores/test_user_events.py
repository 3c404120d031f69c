"""The events of users in memory: what is kept, what a position is worth, who is woken."""

from __future__ import annotations

import asyncio
import json

import pytest

from sluicegate.stores.streams.user_events import (
    MemoryUserEvents,
    RetentionLimits,
    StoredEvent,
    UserEventReader,
    role_topic,
)
from sluicegate.wire.user_events import chat_deleted
from tests.clock import Clock
from tests.stores.builders import LIMIT

SMALL = RetentionLimits(per_user=3, total=6, seconds=60.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def events(clock: Clock) -> MemoryUserEvents:
    return MemoryUserEvents(SMALL, clock=clock, started_at=lambda: 1_000.0)


async def read(reader: UserEventReader) -> list[StoredEvent]:
    async with asyncio.timeout(LIMIT):
        return list(await reader.read())


def kinds(entries: list[StoredEvent]) -> list[str]:
    return [
        str(json.loads(entry.data).get("chatId") or json.loads(entry.data)["type"])
        for entry in entries
    ]


def publish(events: MemoryUserEvents, *chats: str, user: str = "ann") -> None:
    for chat in chats:
        events.publish(user, chat_deleted(chat))


async def resumed(events: MemoryUserEvents, after: str, *, user: str = "ann") -> list[str]:
    reader = events.read(user, after)
    try:
        return kinds(await read(reader))
    finally:
        reader.close()


async def test_a_reader_gets_the_events_of_its_user_from_now_on(events: MemoryUserEvents) -> None:
    publish(events, "before")
    reader = events.read("ann", None)
    assert kinds(await read(reader)) == ["ready"]
    waiting = asyncio.create_task(read(reader))
    await asyncio.sleep(0)
    publish(events, "other", user="bob")
    publish(events, "a", "b")
    assert kinds(await waiting) == ["a", "b"]


async def test_a_reader_resumes_after_any_event_that_is_kept(events: MemoryUserEvents) -> None:
    reader = events.read("ann", None)
    [ready] = await read(reader)
    publish(events, "a", "b")
    first, _ = await read(reader)
    reader.close()
    assert await resumed(events, str(ready.cursor)) == ["ready", "a", "b"]
    assert await resumed(events, str(first.cursor)) == ["ready", "b"]


async def test_a_reader_gets_the_events_of_roles_among_those_of_its_user(
    events: MemoryUserEvents,
) -> None:
    finance = role_topic("finance")
    reader = events.read("ann", None, ["finance", "legal"])
    [ready] = await read(reader)
    waiting = asyncio.create_task(read(reader))
    await asyncio.sleep(0)
    publish(events, "a", user=finance)
    publish(events, "b")
    publish(events, "c", user=role_topic("legal"))
    publish(events, "d", user=role_topic("sales"))
    publish(events, "e", user="finance")
    entries = await waiting
    assert kinds(entries) == ["a", "b", "c"]
    assert [entry.is_of_role for entry in entries] == [True, False, True]
    assert entries == sorted(entries)
    again = events.read("ann", str(ready.cursor), ["legal"])
    assert kinds(await read(again)) == ["ready", "b", "c"]
    # What is forgotten of a role is missing as well.
    publish(events, *"fghi", user=finance)
    assert kinds(await read(reader)) == ["reset"]
    assert kinds(await read(events.read("ann", str(ready.cursor), ["finance"]))) == ["reset"]


async def test_a_position_before_a_forgotten_event_is_reset(events: MemoryUserEvents) -> None:
    reader = events.read("ann", None)
    [ready] = await read(reader)
    publish(events, "a", "b", "c")
    assert await resumed(events, str(ready.cursor)) == ["ready", "a", "b", "c"]
    publish(events, "d")
    assert await resumed(events, str(ready.cursor)) == ["reset"]


@pytest.mark.parametrize(
    "after", ["", "x", "1", "-", "0-0", "999999-5", "1000000-1", "2000000-0", "1" * 60]
)
async def test_an_unknown_position_is_reset(events: MemoryUserEvents, after: str) -> None:
    assert await resumed(events, after) == ["reset"]


async def test_a_reader_that_falls_behind_is_reset(events: MemoryUserEvents) -> None:
    reader = events.read("ann", None)
    await read(reader)
    publish(events, *"abcde")
    assert kinds(await read(reader)) == ["reset"]
    publish(events, "f")
    assert kinds(await read(reader)) == ["f"]


async def test_events_are_forgotten_after_their_time_and_beyond_the_total(
    events: MemoryUserEvents, clock: Clock
) -> None:
    publish(events, "a")
    position = str((await read(events.read("ann", None)))[0].cursor)
    publish(events, "b")
    clock.now += SMALL.seconds + 1
    publish(events, "c", user="bob")
    assert await resumed(events, position) == ["reset"]
    for number in range(50):
        publish(events, *"xyz", user=f"user-{number}")
    assert events.kept <= SMALL.total


async def test_a_silent_connection_is_not_reset_by_the_events_of_others(
    events: MemoryUserEvents, clock: Clock
) -> None:
    reader = events.read("ann", None)
    [ready] = await read(reader)
    for number in range(50):
        clock.now += 10
        publish(events, *"xyz", user=f"user-{number}")
    publish(events, "a")
    assert kinds(await read(reader)) == ["a"]
    reader.close()
    # Its client comes back.
    assert await resumed(events, str(ready.cursor)) == ["ready", "a"]


async def test_a_reader_that_is_cancelled_keeps_nothing(events: MemoryUserEvents) -> None:
    reader = events.read("ann", None)
    await read(reader)
    for _ in range(3):
        waiting = asyncio.create_task(reader.read())
        await asyncio.sleep(0)
        waiting.cancel()
        publish(events, "a")
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert kinds(await read(reader)) == ["a"]
