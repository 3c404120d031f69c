"""What every stream store must do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from sluicegate.core.keys import ChatKey
from sluicegate.errors import StoreError
from sluicegate.stores.base import StreamFull
from sluicegate.wire.chunks import (
    ErrorChunk,
    TextDeltaChunk,
    ToolOutputAvailableChunk,
    encode,
)
from tests.stores.builders import CHAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.stores.base import StreamReader, StreamStore

TURN = "turn-1"


def delta(text: str = "x") -> TextDeltaChunk:
    return TextDeltaChunk(id="t", delta=text)


async def reader_of(store: StreamStore, turn: str = TURN) -> StreamReader:
    reader = await store.read(CHAT, turn)
    assert reader is not None
    return reader


async def texts(reader: StreamReader) -> list[tuple[int, str]]:
    return [(n, chunk.delta) async for n, chunk in reader if isinstance(chunk, TextDeltaChunk)]


async def test_a_chat_has_one_writer(streams: StreamStore) -> None:
    assert await streams.open(CHAT, TURN)
    assert not await streams.open(CHAT, "turn-2")
    assert not await streams.open(CHAT, TURN)
    assert await streams.running(CHAT) == TURN


async def test_only_one_of_twenty_contenders_opens(streams: StreamStore) -> None:
    won = await asyncio.gather(*(streams.open(CHAT, f"turn-{n}") for n in range(20)))
    assert won.count(True) == 1


async def test_the_seat_is_free_after_the_close(streams: StreamStore) -> None:
    await streams.open(CHAT, TURN)
    await streams.close(CHAT)
    assert await streams.running(CHAT) is None
    assert await streams.open(CHAT, "turn-2")


async def test_chats_do_not_share_anything(streams: StreamStore) -> None:
    others = [ChatKey("app", "bob", "chat-1"), ChatKey("other", "ann", "chat-1")]
    await streams.open(CHAT, TURN)
    for other in others:
        assert await streams.running(other) is None
        assert await streams.read(other, TURN) is None
        assert await streams.open(other, TURN)


async def test_a_reader_gets_every_chunk_in_order_from_zero(streams: StreamStore) -> None:
    await streams.open(CHAT, TURN)
    await streams.append(CHAT, delta("a"))
    reader = await reader_of(streams)
    await streams.append(CHAT, delta("b"))
    await streams.close(CHAT)
    assert await texts(reader) == [(0, "a"), (1, "b")]


async def test_waiting_readers_get_what_comes_and_then_the_end(streams: StreamStore) -> None:
    await streams.open(CHAT, TURN)
    early = [asyncio.create_task(texts(await reader_of(streams))) for _ in range(3)]
    for text in "abc":
        await streams.append(CHAT, delta(text))
        early.append(asyncio.create_task(texts(await reader_of(streams))))
        await asyncio.sleep(0)
    await streams.close(CHAT)
    assert await asyncio.gather(*early) == [[(0, "a"), (1, "b"), (2, "c")]] * 6


async def test_a_reader_that_came_before_the_close_gets_everything(streams: StreamStore) -> None:
    await streams.open(CHAT, TURN)
    reader = await reader_of(streams)
    await streams.append(CHAT, delta("old"))
    await streams.close(CHAT)
    await streams.open(CHAT, "turn-2")
    await streams.append(CHAT, delta("new"))
    assert await texts(reader) == [(0, "old")]


@pytest.mark.parametrize("turn", [TURN, "turn-2"])
async def test_a_turn_that_is_not_open_cannot_be_read(streams: StreamStore, turn: str) -> None:
    assert await streams.read(CHAT, turn) is None
    await streams.open(CHAT, "turn-3")
    assert await streams.read(CHAT, turn) is None
    await streams.close(CHAT)
    assert await streams.read(CHAT, "turn-3") is None


async def test_a_reader_that_leaves_disturbs_nobody(streams: StreamStore) -> None:
    await streams.open(CHAT, TURN)
    left = await reader_of(streams)
    await streams.append(CHAT, delta("a"))
    assert (await anext(left))[0] == 0
    await left.aclose()
    cancelled = asyncio.create_task(texts(await reader_of(streams)))
    stays = asyncio.create_task(texts(await reader_of(streams)))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    await streams.append(CHAT, delta("b"))
    await streams.close(CHAT)
    assert await stays == [(0, "a"), (1, "b")]


async def test_nothing_can_be_appended_to_a_turn_that_is_not_open(streams: StreamStore) -> None:
    with pytest.raises(StoreError):
        await streams.append(CHAT, delta())
    await streams.open(CHAT, TURN)
    await streams.close(CHAT)
    with pytest.raises(StoreError):
        await streams.append(CHAT, delta())


async def test_closing_what_is_not_open_does_nothing(streams: StreamStore) -> None:
    await streams.close(CHAT)
    assert await streams.open(CHAT, TURN)


async def test_a_chunk_that_cannot_be_encoded_is_refused(streams: StreamStore) -> None:
    await streams.open(CHAT, TURN)
    reader = await reader_of(streams)
    with pytest.raises(StoreError):
        await streams.append(
            CHAT, ToolOutputAvailableChunk(tool_call_id="c", output={"n": float("nan")})
        )
    await streams.close(CHAT)
    assert [entry async for entry in reader] == []


async def test_a_turn_holds_as_many_chunks_as_its_bound(
    make_stream_store: Callable[..., StreamStore],
) -> None:
    store = make_stream_store(max_chunks=3)
    await store.open(CHAT, TURN)
    reader = await reader_of(store)
    for text in "abc":
        await store.append(CHAT, delta(text))
    with pytest.raises(StreamFull):
        await store.append(CHAT, delta("too much"))
    await store.append(CHAT, ErrorChunk(error_text="too long"))
    await store.close(CHAT)
    chunks = [chunk async for _, chunk in reader]
    assert chunks == [delta("a"), delta("b"), delta("c"), ErrorChunk(error_text="too long")]


@pytest.mark.parametrize("text", ["abcd", "äöü", "😀"])
async def test_a_turn_holds_as_many_bytes_as_its_bound(
    make_stream_store: Callable[..., StreamStore], text: str
) -> None:
    size = len(encode(delta(text)).encode())
    fits, too_small = (
        make_stream_store(max_bytes=2 * size),
        make_stream_store(max_bytes=2 * size - 1),
    )
    for store in (fits, too_small):
        await store.open(CHAT, TURN)
        await store.append(CHAT, delta(text))
    await fits.append(CHAT, delta(text))
    with pytest.raises(StreamFull):
        await too_small.append(CHAT, delta(text))


async def test_after_its_bound_a_turn_has_as_much_room_again_and_no_more(
    make_stream_store: Callable[..., StreamStore],
) -> None:
    store = make_stream_store(max_chunks=2)
    await store.open(CHAT, TURN)
    accepted = 0
    for _ in range(10):
        try:
            await store.append(CHAT, delta())
        except StreamFull:
            continue
        accepted += 1
    assert accepted == 4


async def test_the_bounds_are_those_of_the_limits_page(streams: StreamStore) -> None:
    await streams.open(CHAT, TURN)
    for _ in range(5_000):
        await streams.append(CHAT, delta())
    with pytest.raises(StreamFull):
        await streams.append(CHAT, delta())
    await streams.close(CHAT)
    await streams.open(CHAT, TURN)
    with pytest.raises(StreamFull):
        await streams.append(CHAT, delta("x" * 8 * 1024 * 1024))
