"""The behaviour of every stream store, for local and remote readers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.core.chat_and_turn_keys import ChatKey, TurnKey
from sluicegate.errors import StoreError
from sluicegate.stores.streams.base import BATCH_BYTES, StreamFull
from sluicegate.wire.chunks import (
    ErrorChunk,
    ResetStepChunk,
    TextDeltaChunk,
    TextEndChunk,
    ToolOutputAvailableChunk,
    decode_chunk,
)
from sluicegate.wire.encoding import encode_chunk, to_json
from tests.stores.builders import CHAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.stores.streams.base import StreamReader, StreamStore, StreamWriter

TURN = TurnKey(CHAT, "turn-1", 1)
LATER = TurnKey(CHAT, "turn-2", 2)


def delta(text: str = "x") -> TextDeltaChunk:
    return TextDeltaChunk(id="t", delta=text)


async def opened(store: StreamStore, turn: TurnKey = TURN) -> StreamWriter:
    writer = await store.open(turn)
    assert writer is not None
    return writer


async def reader_of(store: StreamStore, turn: TurnKey = TURN) -> StreamReader:
    found = await store.find(turn.chat)
    assert found is not None
    assert found.key == turn
    return found.read()


async def texts(reader: StreamReader) -> str:
    return "".join(chunk.delta for chunk in await chunks(reader))


async def chunks(reader: StreamReader) -> list[Any]:
    return [decode_chunk(entry.text) async for batch in reader for entry in batch]


async def test_a_chat_has_one_writer(streams: StreamStore) -> None:
    await opened(streams, LATER)
    for turn in (LATER, TurnKey(CHAT, "turn-3", 2), TURN):
        assert await streams.open(turn) is None


async def test_only_one_of_twenty_contenders_opens(streams: StreamStore) -> None:
    contenders = [TurnKey(CHAT, f"turn-{number}", 1) for number in range(20)]
    won = await asyncio.gather(*(streams.open(turn) for turn in contenders))
    assert won.count(None) == 19


async def test_a_turn_can_be_opened_after_the_close_of_another(
    streams: StreamStore, reading: StreamStore
) -> None:
    writer = await opened(streams)
    await writer.close()
    assert await reading.find(CHAT) is None
    await opened(streams, LATER)


async def test_a_higher_fence_replaces_the_open_turn(
    streams: StreamStore, reading: StreamStore
) -> None:
    stale = await opened(streams)
    await stale.publish(delta("old"))
    reader = await reader_of(reading)
    assert await anext(reader) == [encode_chunk(delta("old"))]
    writer = await opened(streams, LATER)
    with pytest.raises(StoreError):
        await stale.publish(delta("too late"))
    await stale.close()
    assert await chunks(reader) == []
    reader = await reader_of(reading, LATER)
    await writer.publish(delta("new"))
    await writer.close()
    assert await texts(reader) == "new"


async def test_chats_do_not_share_anything(streams: StreamStore, reading: StreamStore) -> None:
    others = [
        TurnKey(ChatKey("app", "bob", "chat-1"), "turn-1", 1),
        TurnKey(ChatKey("other", "ann", "chat-1"), "turn-1", 1),
    ]
    await opened(streams)
    for other in others:
        assert await reading.find(other.chat) is None
        await opened(streams, other)


async def test_a_reader_gets_every_chunk_in_order_from_zero(
    streams: StreamStore, reading: StreamStore
) -> None:
    writer = await opened(streams)
    await writer.publish(delta("a"))
    reader = await reader_of(reading)
    await writer.publish(delta("b"))
    await writer.close()
    assert await texts(reader) == "ab"


async def test_waiting_readers_get_new_chunks_and_then_the_end(
    streams: StreamStore, reading: StreamStore
) -> None:
    writer = await opened(streams)
    early = [asyncio.create_task(texts(await reader_of(reading))) for _ in range(3)]
    for text in "abc":
        await writer.publish(delta(text))
        early.append(asyncio.create_task(texts(await reader_of(reading))))
        await asyncio.sleep(0)
    await writer.close()
    assert await asyncio.gather(*early) == ["abc"] * 6


async def test_a_reader_opened_before_the_close_gets_everything(
    streams: StreamStore, reading: StreamStore
) -> None:
    writer = await opened(streams)
    reader = await reader_of(reading)
    await writer.publish(delta("old"))
    await writer.close()
    writer = await opened(streams, LATER)
    await writer.publish(delta("new"))
    assert await texts(reader) == "old"


async def test_only_a_turn_that_is_open_is_found(
    streams: StreamStore, reading: StreamStore
) -> None:
    assert await reading.find(CHAT) is None
    writer = await opened(streams)
    await reader_of(reading)
    await writer.close()
    assert await reading.find(CHAT) is None


async def test_several_turns_may_run_under_one_fence(
    streams: StreamStore, reading: StreamStore
) -> None:
    second = TURN._replace(turn="turn-2")
    writer = await opened(streams)
    await writer.publish(delta("a"))
    early = await reader_of(reading)
    await writer.close()
    writer = await opened(streams, second)
    late = await reader_of(reading, second)
    await writer.publish(delta("b"))
    await writer.close()
    assert (await texts(early), await texts(late)) == ("a", "b")


async def test_a_turn_has_its_description(streams: StreamStore, reading: StreamStore) -> None:
    about = 'half a "sentence" \u2028 with 😀'
    assert await streams.open(TURN, description=about) is not None
    found = await reading.find(CHAT)
    assert found is not None
    assert found.description == about


async def test_a_reader_gets_the_texts_for_every_client(
    streams: StreamStore, reading: StreamStore
) -> None:
    said = [delta("äöü"), TextEndChunk(id="t", citations=[]), ResetStepChunk()]
    writer = await opened(streams)
    reader = await reader_of(reading)
    for chunk in said:
        await writer.publish(chunk)
    await writer.close()
    read = [entry async for batch in reader for entry in batch]
    assert read == [encode_chunk(chunk) for chunk in said]


async def test_available_chunks_are_read_in_one_batch_up_to_a_limit(
    streams: StreamStore, reading: StreamStore
) -> None:
    writer = await opened(streams)
    reader = await reader_of(reading)
    small, large = delta("x"), delta("y" * (BATCH_BYTES // 3))
    for chunk in (small, small, large, large, large, small):
        await writer.publish(chunk)
    await writer.close()
    sizes = [[entry.size for entry in batch] async for batch in reader]
    one, third = encode_chunk(small).size, encode_chunk(large).size
    assert [size for batch in sizes for size in batch] == [one, one, third, third, third, one]
    assert all(sum(batch) <= BATCH_BYTES for batch in sizes)
    assert len(sizes) < 4


async def test_a_chunk_over_the_limit_of_a_batch_is_a_batch_of_its_own(
    streams: StreamStore, reading: StreamStore
) -> None:
    writer = await opened(streams)
    reader = await reader_of(reading)
    for text in ("a", "b" * 2 * BATCH_BYTES, "c"):
        await writer.publish(delta(text))
    await writer.close()
    assert await texts(reader) == "a" + "b" * 2 * BATCH_BYTES + "c"


async def test_a_reader_that_disconnects_does_not_affect_others(
    streams: StreamStore, reading: StreamStore
) -> None:
    writer = await opened(streams)
    left = await reader_of(reading)
    await writer.publish(delta("a"))
    assert len(await anext(left)) == 1
    await left.aclose()
    cancelled = asyncio.create_task(texts(await reader_of(reading)))
    stays = asyncio.create_task(texts(await reader_of(reading)))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    await writer.publish(delta("b"))
    await writer.close()
    assert await stays == "ab"


async def test_nothing_can_be_published_after_the_close(streams: StreamStore) -> None:
    writer = await opened(streams)
    await writer.close()
    with pytest.raises(StoreError):
        await writer.publish(delta())


async def test_a_second_close_ends_no_later_turn(
    streams: StreamStore, reading: StreamStore
) -> None:
    writer = await opened(streams)
    await writer.close()
    await opened(streams, LATER)
    await writer.close()
    assert await reading.find(CHAT) is not None


async def test_a_chunk_that_cannot_be_encoded_is_refused(
    streams: StreamStore, reading: StreamStore
) -> None:
    writer = await opened(streams)
    reader = await reader_of(reading)
    with pytest.raises(StoreError):
        await writer.publish(ToolOutputAvailableChunk(tool_call_id="c", output={"n": float("nan")}))
    await writer.close()
    assert await chunks(reader) == []


async def test_a_turn_is_limited_in_chunks(
    make_stream_store: Callable[..., StreamStore],
) -> None:
    store = make_stream_store(max_chunks=3)
    writer = await opened(store)
    reader = await reader_of(store)
    for text in "abc":
        await writer.publish(delta(text))
    with pytest.raises(StreamFull):
        await writer.publish(delta("too much"))
    await writer.publish(ErrorChunk(error_text="too long"))
    await writer.close()
    assert await chunks(reader) == [
        delta("a"),
        delta("b"),
        delta("c"),
        ErrorChunk(error_text="too long"),
    ]


@pytest.mark.parametrize("text", ["abcd", "äöü", "😀"])
async def test_a_turn_is_limited_in_bytes(
    make_stream_store: Callable[..., StreamStore], text: str
) -> None:
    size = len(to_json(delta(text)).encode())
    fits = await opened(make_stream_store(max_bytes=2 * size))
    await fits.publish(delta(text))
    await fits.publish(delta(text))
    await fits.close()
    too_small = await opened(make_stream_store(max_bytes=2 * size - 1), LATER)
    await too_small.publish(delta(text))
    with pytest.raises(StreamFull):
        await too_small.publish(delta(text))


async def test_after_the_first_refusal_the_limits_start_again_once(
    make_stream_store: Callable[..., StreamStore],
) -> None:
    writer = await opened(make_stream_store(max_chunks=2))
    accepted = 0
    for _ in range(10):
        try:
            await writer.publish(delta())
        except StreamFull:
            continue
        accepted += 1
    assert accepted == 4
