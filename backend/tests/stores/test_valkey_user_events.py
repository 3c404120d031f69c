"""The events of users over a server: shared by processes, lost servers and dead processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from redis.asyncio import Redis

from sluicegate.stores.streams.user_events import UserEventReader, role_topic
from sluicegate.stores.streams.valkey_user_events import ProcessLiveness, ValkeyUserEvents
from sluicegate.wire.user_events import chat_deleted
from tests.real_stores.valkey import Valkey
from tests.stores.builders import LIMIT, PATIENT_STREAMS

Make: TypeAlias = Callable[[], Any]


@pytest.fixture
def server(real_stores_folder: Path, tmp_path: Path) -> Iterator[Valkey]:
    """A server that a test may kill."""
    server = Valkey(real_stores_folder / tmp_path.name)
    server.start()
    yield server
    server.kill()


@pytest.fixture
async def make(server: Valkey) -> AsyncIterator[Make]:
    """Makes the events of one process."""
    made: list[ValkeyUserEvents] = []

    async def make_one() -> ValkeyUserEvents:
        made.append(ValkeyUserEvents(server.url(), "app", lease_ttl=15, timings=PATIENT_STREAMS))
        await made[-1].start()
        return made[-1]

    yield make_one
    for events in made:
        await events.aclose()


class Reader:
    """Reads events up to one that is waited for; ``position`` is the id of the last."""

    def __init__(self, reader: UserEventReader) -> None:
        self._reader = reader
        self.position = ""

    async def until(self, last: str) -> list[str]:
        found: list[str] = []
        async with asyncio.timeout(LIMIT):
            while last not in found:
                for entry in await self._reader.read():
                    event = json.loads(entry.data)
                    found.append(event.get("chatId") or event["type"])
                    self.position = str(entry.cursor)
        return found


async def test_an_event_reaches_every_process_and_is_resumed_at_any(make: Make) -> None:
    one, two = await make(), await make()
    here, there = Reader(one.read("ann", None)), Reader(two.read("ann", None))
    assert await here.until("ready") == await there.until("ready") == ["ready"]
    one.publish("bob", chat_deleted("other"))
    for chat in "ab":
        one.publish("ann", chat_deleted(chat))
    assert await here.until("b") == await there.until("b") == ["a", "b"]
    assert here.position == there.position
    two.publish("ann", chat_deleted("c"))
    assert await here.until("c") == ["c"]
    assert await Reader(two.read("ann", there.position)).until("c") == ["ready", "c"]
    # A process that starts later has read what the server keeps.
    three = await make()
    assert await Reader(three.read("ann", there.position)).until("c") == ["ready", "c"]


async def test_an_event_of_a_role_reaches_its_holders_at_every_process(make: Make) -> None:
    one, two = await make(), await make()
    there = Reader(two.read("ann", None, ["finance"]))
    assert await there.until("ready") == ["ready"]
    one.publish(role_topic("legal"), chat_deleted("other"))
    one.publish(role_topic("finance"), chat_deleted("a"))
    assert await there.until("a") == ["a"]


async def test_without_the_server_events_stay_in_the_process_and_others_are_reset(
    make: Make, server: Valkey
) -> None:
    one, two = await make(), await make()
    here, there = Reader(one.read("ann", None)), Reader(two.read("ann", None))
    other = Reader(two.read("bob", None))
    assert await here.until("ready") == await there.until("ready") == await other.until("ready")
    server.kill()
    one.publish("ann", chat_deleted("a"))
    assert await here.until("a") == ["a"]
    server.start()
    assert (await there.until("reset"))[-1] == "reset"
    assert (await here.until("reset"))[-1] == "reset"
    two.publish("ann", chat_deleted("b"))
    assert (await here.until("b"))[-1] == "b"


async def test_every_connection_is_reset_after_the_death_of_a_process(
    make: Make, server: Valkey
) -> None:
    client = Redis(host="127.0.0.1", port=server.port)
    key = "alive"
    dead, alive = ProcessLiveness(key, 20), ProcessLiveness(key, 20)
    assert not await dead.renew(client)
    found: Any = await client.zrange(key, 0, 0, withscores=True)
    [(member, seen)] = found
    assert not await alive.renew(client)
    await client.zadd(key, {member: seen - 30})
    assert await alive.renew(client)
    assert not await alive.renew(client)
    await alive.leave(client)
    assert await client.zcard(key) == 0
    await client.aclose()


async def test_events_before_a_reset_of_all_are_missing_everywhere(
    make: Make, server: Valkey
) -> None:
    one, two = await make(), await make()
    reader = Reader(two.read("ann", None))
    await reader.until("ready")
    before = reader.position
    client = Redis(host="127.0.0.1", port=server.port)
    [key] = [key async for key in client.scan_iter("sluicegate:events:*", _type="zset")]
    stream = key.removesuffix(b":alive")
    await client.xadd(stream, {b"data": b'{"type":"reset"}'})
    await client.aclose()
    assert await reader.until("reset") == ["reset"]
    assert await Reader(two.read("ann", before)).until("reset") == ["reset"]
    one.publish("ann", chat_deleted("a"))
    assert await reader.until("a") == ["a"]


async def test_events_close_at_any_moment_of_a_connection(make: Make) -> None:
    for steps in range(150):
        events = await make()
        for _ in range(steps):
            await asyncio.sleep(0)
        async with asyncio.timeout(LIMIT):
            await events.aclose()
