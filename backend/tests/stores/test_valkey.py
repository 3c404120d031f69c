"""Streams on a server: copies, faults of the server, stale writers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import ConnectionError as Lost
from redis.exceptions import ResponseError

from sluicegate.core.chat_and_turn_keys import ChatKey, TurnKey
from sluicegate.errors import ConfigurationError
from sluicegate.stores.streams.valkey import ValkeyStreamStore
from sluicegate.stores.streams.valkey_entries import key_of
from tests.real_stores.databases import flush
from tests.real_stores.ports import free_port
from tests.real_stores.valkey import Valkey
from tests.stores.builders import CHAT, LIMIT, PATIENT_STREAMS
from tests.stores.test_stream_store import LATER, TURN, delta, opened, reader_of, texts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    Make = Callable[..., ValkeyStreamStore]


@pytest.fixture
def server(real_stores_folder: Path, tmp_path: Path) -> Iterator[Valkey]:
    """A server that a test may kill."""
    server = Valkey(real_stores_folder / tmp_path.name)
    server.start()
    yield server
    server.kill()


@pytest.fixture
async def make(server: Valkey) -> AsyncIterator[Make]:
    """Makes one store per process, with patient timings unless others are given."""
    made: list[ValkeyStreamStore] = []

    def make_one(**timings: float) -> ValkeyStreamStore:
        made.append(ValkeyStreamStore(server.url(), timings=replace(PATIENT_STREAMS, **timings)))
        return made[-1]

    yield make_one
    for store in made:
        await store.aclose()


@pytest.fixture
async def client(server: Valkey) -> AsyncIterator[Redis]:
    client = Redis(host="127.0.0.1", port=server.port)
    yield client
    await client.aclose()


async def copied(client: Redis, entries: int) -> None:
    """Wait until the server has that many entries of the chat."""
    async with asyncio.timeout(LIMIT):
        while await client.xlen(key_of(CHAT)) < entries:
            pass


async def test_a_turn_that_began_without_the_server_is_shared_when_it_is_available(
    make: Make, server: Valkey, client: Redis
) -> None:
    here, elsewhere = make(), make()
    server.kill()
    writer = await opened(here)
    await writer.publish(delta("a"))
    assert await elsewhere.find(CHAT) is None
    assert not await elsewhere.check()
    server.start()
    await writer.publish(delta("b"))
    await copied(client, 3)
    assert await elsewhere.check()
    reader = await reader_of(elsewhere)
    await writer.close()
    assert await texts(reader) == "ab"


async def test_local_readers_are_not_affected_by_the_death_of_the_server(
    make: Make, server: Valkey
) -> None:
    here = make(close=0.01, delivery=0.0)
    writer = await opened(here)
    await writer.publish(delta("a"))
    reader = await reader_of(here)
    server.kill()
    await writer.publish(delta("b"))
    await writer.close()
    assert await texts(reader) == "ab"


async def test_remote_readers_continue_when_the_server_is_back(
    make: Make, server: Valkey, client: Redis
) -> None:
    here, elsewhere = make(), make()
    writer = await opened(here)
    await writer.publish(delta("a"))
    reader = await reader_of(elsewhere)
    assert len(await anext(reader)) == 1
    server.kill()
    await writer.publish(delta("b"))
    server.start()
    await copied(client, 1)
    # Its beginning is lost, so the turn has no new readers.
    assert await elsewhere.find(CHAT) is None
    assert await make().find(CHAT) is None
    await writer.close()
    assert await texts(reader) == "b"


async def test_remote_readers_end_when_the_server_stays_unavailable(
    make: Make, server: Valkey
) -> None:
    here, elsewhere = make(close=0.01, delivery=0.0), make(unavailable=0.05)
    writer = await opened(here)
    await writer.publish(delta("a"))
    reader = await reader_of(elsewhere)
    server.kill()
    assert await texts(reader) in ("", "a")
    await writer.publish(delta("b"))
    await writer.close()


async def test_an_unresponsive_server_delays_no_turn(make: Make, server: Valkey) -> None:
    here, elsewhere = make(command=0.05, close=0.05), make(command=0.05)
    writer = await opened(here)
    server.freeze()
    await writer.publish(delta("a"))
    assert await elsewhere.find(CHAT) is None
    other = await opened(here, TurnKey(ChatKey("app", "ann", "chat-2"), "turn-1", 1))
    await other.close()
    await writer.close()
    server.thaw()


async def test_a_turn_lost_by_the_server_is_not_found_any_more(
    make: Make, server: Valkey, client: Redis
) -> None:
    here, elsewhere = make(), make()
    writer = await opened(here)
    for text in "abc":
        await writer.publish(delta(text))
    await copied(client, 4)
    await flush(server)
    await writer.publish(delta("d"))
    await copied(client, 1)
    assert await elsewhere.find(CHAT) is None
    reader = await reader_of(here)
    await writer.close()
    assert await texts(reader) == "abcd"


@pytest.mark.parametrize("lost", [1, 2, 3])
async def test_an_entry_whose_reply_is_lost_is_stored_once(
    make: Make, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    here, elsewhere = make(), make()
    calls = 0
    sent = asyncio.Event()

    def losing(real: Any, *, of: tuple[str, ...] = ()) -> Any:
        """A method that sends entries, or the command ``of``, and loses one of its replies."""

        async def method(self: Any, *args: Any, **options: Any) -> Any:
            nonlocal calls
            if args[:1] != of:
                return await real(self, *args, **options)
            calls += 1
            is_lost, has_delta = calls == lost, calls >= 2
            try:
                # The server refuses an entry that it has.
                replies = await real(self, *args, **options)
            finally:
                if has_delta and not is_lost:
                    sent.set()
            if is_lost:
                raise Lost("The answer is gone.")
            return replies

        return method

    monkeypatch.setattr(Pipeline, "execute", losing(Pipeline.execute))
    monkeypatch.setattr(Redis, "execute_command", losing(Redis.execute_command, of=("XADD",)))
    writer = await opened(here)
    await writer.publish(delta("a"))
    await sent.wait()
    reader = await reader_of(elsewhere)
    await writer.publish(delta("b"))
    await writer.close()
    assert await texts(reader) == "ab"
    assert calls > lost


async def test_a_stale_writer_of_another_process_is_fenced_off(make: Make, client: Redis) -> None:
    stale, here, elsewhere = make(), make(), make()
    old = await opened(stale)
    await old.publish(delta("old"))
    await copied(client, 2)
    cut = await reader_of(elsewhere)
    new = await opened(here, LATER)
    await old.publish(delta("too late"))
    await old.close()
    reader = await reader_of(elsewhere, LATER)
    await new.publish(delta("new"))
    await new.close()
    assert await texts(cut) == "old"
    assert await texts(reader) == "new"


async def test_one_of_several_processes_opens_a_turn(make: Make) -> None:
    contenders = [make() for _ in range(8)]
    won = await asyncio.gather(*(store.open(TURN) for store in contenders))
    assert won.count(None) == 7


async def test_a_stream_of_an_earlier_database_is_replaced(make: Make) -> None:
    before = await opened(make(), TURN._replace(fence=700))
    await before.publish(delta("old"))
    await before.close()
    writer = await opened(make())
    reader = await reader_of(make())
    await writer.publish(delta("new"))
    await writer.close()
    assert await texts(reader) == "new"


async def test_many_turns_are_followed_with_one_connection(make: Make, client: Redis) -> None:
    here, elsewhere = make(), make()
    turns = [TurnKey(CHAT._replace(chat=f"chat-{n}"), f"turn-{n}", n + 1) for n in range(50)]
    writers = [await opened(here, turn) for turn in turns]
    readers = [await reader_of(elsewhere, turn) for turn in turns for _ in range(4)]
    for turn, writer in zip(turns, writers, strict=True):
        await writer.publish(delta(turn.turn))
        await writer.close()
    found = await asyncio.gather(*(texts(reader) for reader in readers))
    assert found == [turn.turn for turn in turns for _ in range(4)]
    assert len(await client.client_list()) <= 1 + 2 * 3


async def test_a_stream_expires(make: Make, client: Redis) -> None:
    writer = await opened(make())
    await writer.publish(delta("a"))
    await writer.close()
    assert 100 < await client.ttl(key_of(CHAT)) <= 120


async def test_a_chat_keeps_its_last_two_turns_on_the_server(make: Make, client: Redis) -> None:
    here = make()
    for number in range(1, 6):
        writer = await opened(here, TurnKey(CHAT, f"turn-{number}", number))
        await writer.publish(delta("a"))
        await writer.close()
    assert await client.xlen(key_of(CHAT)) == 2 * 3


@pytest.mark.parametrize(
    "url",
    ["", "memory:", "localhost:6379", "http://h:6379", "valkey://:hunter2@h:port/0", "redis:x"],
)
def test_a_url_that_cannot_be_read_is_refused_in_one_sentence(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be read; write valkey://") as refusal:
        ValkeyStreamStore(url)
    assert "hunter2" not in str(refusal.value)


async def test_a_server_may_be_unavailable_at_the_start() -> None:
    store = ValkeyStreamStore(f"redis://127.0.0.1:{free_port()}")
    await store.connect()
    assert not await store.check()
    await store.aclose()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ResponseError("WRONGPASS hunter2"), "refuses this client"),
        ({"redis_version": "6.0.16"}, r"is like Redis 6\.0\.16; Valkey, or Redis 6\.2"),
    ],
)
async def test_a_server_that_cannot_be_used_is_refused_at_the_start(
    make: Make, monkeypatch: pytest.MonkeyPatch, answer: Any, words: str
) -> None:
    async def info(*_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    store = make()
    await store.connect()
    monkeypatch.setattr(Redis, "info", info)
    with pytest.raises(ConfigurationError, match=words) as refusal:
        await store.connect()
    assert "hunter2" not in str(refusal.value)
