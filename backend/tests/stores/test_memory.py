from __future__ import annotations

import tracemalloc
import weakref

from sluicegate.core.chat_and_turn_keys import TurnKey
from sluicegate.stores.streams.memory import MemoryStreamStore
from sluicegate.wire.chunks import TextDeltaChunk
from sluicegate.wire.encoding import to_json
from tests.stores.builders import CHAT

TURN = TurnKey(CHAT, "turn-1", 1)


async def test_a_reader_of_a_closed_turn_keeps_only_unread_chunks() -> None:
    store = MemoryStreamStore()
    writer, found = await store.open(TURN), await store.find(TURN.chat)
    assert writer is not None
    assert found is not None
    reader = found.read()
    await writer.publish(TextDeltaChunk(id="1", delta="taken"))
    [taken] = await anext(reader)
    assert "taken" in taken.text
    await writer.publish(TextDeltaChunk(id="1", delta="kept"))
    seen = weakref.ref(writer)
    await writer.close()
    del writer, found
    assert seen() is None
    [[kept]] = [batch async for batch in reader]
    assert "kept" in kept.text
    assert reader.backlog == 0


async def test_a_chunk_takes_no_more_than_200_bytes_beside_its_text() -> None:
    writer = await MemoryStreamStore().open(TURN)
    assert writer is not None
    written, count = 0, 5_000
    tracemalloc.start()
    for number in range(count):
        chunk = TextDeltaChunk(id="1", delta=f"word {number} ")
        await writer.publish(chunk)
        written += len(to_json(chunk))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken - written < 200 * count
