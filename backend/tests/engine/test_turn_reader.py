"""Delivery of the chunks of a response to a transport."""

from __future__ import annotations

import asyncio

import pytest

from sluicegate.core.chat_and_turn_keys import ChatKey, TurnKey
from sluicegate.engine.turn.reader import TurnReader
from sluicegate.errors import StoreError
from sluicegate.stores.streams.base import StreamWriter
from sluicegate.stores.streams.memory import MemoryStreamStore
from sluicegate.wire.chunks import FinishChunk, ResetStepChunk, StartChunk, TextDeltaChunk
from sluicegate.wire.encoding import to_json
from tests.engine.loop_time import LoopTime

KEY = TurnKey(ChatKey("app", "ann", "chat"), "turn", 1)
START, FINISH = StartChunk(message_id="m"), FinishChunk(finish_reason="stop")


def delta(text: str) -> TextDeltaChunk:
    return TextDeltaChunk(id="t", delta=text)


async def opened(head: list[StartChunk] | None = None) -> tuple[StreamWriter, TurnReader]:
    store = MemoryStreamStore()
    writer, found = await store.open(KEY), await store.find(KEY.chat)
    assert writer is not None
    assert found is not None
    return writer, TurnReader(head or [], found.read(), major=7)


async def test_the_first_chunk_after_a_pause_is_delivered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, silence = asyncio.get_running_loop(), 0.0
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + silence)
    writer, reader = await opened()
    texts = reader.texts()
    await writer.publish(START)
    assert await anext(texts) == [to_json(START)]
    silence = 0.002
    coming = asyncio.ensure_future(anext(texts))
    await writer.publish(delta("a"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert coming.done()


async def test_chunks_within_a_millisecond_are_delivered_together() -> None:
    with LoopTime.of_running_loop() as time:
        time.hold()
        writer, reader = await opened()
        texts = reader.texts()
        await writer.publish(START)
        await anext(texts)
        coming = asyncio.ensure_future(anext(texts))
        for text in "abc":
            await writer.publish(delta(text))
            await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)
        time.advance(1.0)
        assert await coming == [to_json(delta(text)) for text in "abc"]


async def test_a_6_client_receives_only_chunks_of_its_version() -> None:
    store = MemoryStreamStore()
    writer, found = await store.open(KEY), await store.find(KEY.chat)
    assert writer is not None
    assert found is not None
    reader = TurnReader([], found.read(), major=6)
    for chunk in (START, ResetStepChunk(), FINISH):
        await writer.publish(chunk)
    await writer.close()
    assert [chunk async for chunk in reader] == [START, FINISH]


async def test_the_start_chunk_is_sent_once() -> None:
    writer, reader = await opened([START])
    for chunk in (START, delta("a"), FINISH):
        await writer.publish(chunk)
    await writer.close()
    assert [chunk async for chunk in reader] == [START, delta("a"), FINISH]


async def test_a_turn_without_its_last_chunk_is_not_successful() -> None:
    writer, reader = await opened()
    await writer.publish(START)
    await writer.close()
    texts = reader.texts()
    await anext(texts)
    with pytest.raises(StoreError, match="last chunk"):
        await anext(texts)
