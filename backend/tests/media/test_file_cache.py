"""Files kept for the next call of a model."""

from __future__ import annotations

import asyncio

import pytest

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.media.file_cache import FileCache
from sluicegate.media.model_request_shaping import FileForm
from tests.media import samples
from tests.transports.clock import ClockedLoop

TTL = 60
CHAT, OTHER = ChatKey("app", "ann", "c1"), ChatKey("app", "bob", "c1")


class Store:
    """Counts its reads; each read waits until it is released."""

    def __init__(self, data: bytes = samples.PNG) -> None:
        self.reads = 0
        self.data = data
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def __call__(self) -> tuple[bytes, str]:
        self.reads += 1
        await self.may_go_on.wait()
        return self.data, "image/png"


async def test_a_file_is_read_once_for_each_representation() -> None:
    cache, store = FileCache(10_000, TTL), Store()
    forms: tuple[FileForm, ...] = ("bytes", "url", "bytes", "url")
    found = [await cache.get((CHAT, "a", form), store) for form in forms]
    assert store.reads == 2
    assert found[0] is found[2]
    assert (found[0].data, found[0].url) == (samples.PNG, "")
    assert found[1].data == b""
    assert found[1].url.startswith("data:image/png;base64,")
    assert found[0].side == found[1].side == 320


async def test_cached_files_are_not_shared_between_chats() -> None:
    cache, store = FileCache(10_000, TTL), Store()
    await cache.get((CHAT, "a", "bytes"), store)
    await cache.get((OTHER, "a", "bytes"), store)
    assert store.reads == 2


async def test_concurrent_requests_wait_for_one_read() -> None:
    cache, store = FileCache(10_000, TTL), Store()
    store.may_go_on.clear()
    asking = [asyncio.create_task(cache.get((CHAT, "a", "bytes"), store)) for _ in range(3)]
    await asyncio.sleep(0)
    asking[0].cancel()
    await asyncio.sleep(0)
    store.may_go_on.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert store.reads == 1
    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1] is found[2]


@pytest.mark.parametrize(("bound", "kept"), [(0, 0), (9, 0), (10, 1), (25, 2), (30, 3)])
async def test_the_cache_is_bounded(bound: int, kept: int) -> None:
    cache = FileCache(bound, TTL)
    stores = [Store(bytes(10)) for _ in range(3)]
    for number, store in enumerate(stores):
        await cache.get((CHAT, str(number), "bytes"), store)
    assert cache.size == kept * 10
    for number, store in reversed(list(enumerate(stores))[3 - kept :]):
        await cache.get((CHAT, str(number), "bytes"), store)
    assert sum(store.reads for store in stores) == 3


async def test_the_least_recently_used_file_is_evicted_first() -> None:
    cache, stores = FileCache(20, TTL), [Store(bytes(10)) for _ in range(3)]
    for number in (0, 1, 0, 2, 0, 1):
        await cache.get((CHAT, str(number), "bytes"), stores[number])
    assert [store.reads for store in stores] == [1, 2, 1]


async def test_a_file_leaves_the_cache_a_minute_after_its_last_use() -> None:
    clock = ClockedLoop()
    cache, store = FileCache(100, TTL, clock), Store(bytes(10))
    await cache.get((CHAT, "a", "bytes"), store)
    clock.advance(TTL / 2)
    await cache.get((CHAT, "b", "bytes"), store)
    await cache.get((CHAT, "a", "bytes"), store)
    clock.advance(TTL / 2)
    assert cache.size == 20
    await cache.get((CHAT, "a", "bytes"), store)
    clock.advance(TTL / 2)
    assert cache.size == 10
    clock.advance(TTL / 2)
    assert (cache.size, clock.timers) == (0, 0)
    await cache.get((CHAT, "a", "bytes"), store)
    assert (store.reads, clock.timers) == (3, 1)


async def test_a_failed_read_is_retried() -> None:
    cache = FileCache(100, TTL)

    async def fails() -> tuple[bytes, str]:
        raise OSError("gone")

    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            await cache.get((CHAT, "a", "bytes"), fails)
    assert (await cache.get((CHAT, "a", "bytes"), Store(b"x"))).data == b"x"
