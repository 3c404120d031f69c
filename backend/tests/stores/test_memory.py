from __future__ import annotations

import gc
import weakref

from sluicegate.stores.memory import MemoryStreamStore
from sluicegate.wire.chunks import TextDeltaChunk
from tests.stores.builders import CHAT


async def test_a_closed_turn_is_forgotten_with_its_last_reader() -> None:
    store = MemoryStreamStore()
    await store.open(CHAT, "turn-1")
    chunk = TextDeltaChunk(id="1", delta="kept")
    seen = weakref.ref(chunk)
    await store.append(CHAT, chunk)
    reader = await store.read(CHAT, "turn-1")
    assert reader is not None
    await store.close(CHAT)
    del chunk
    gc.collect()
    assert seen() is not None
    assert [sequence async for sequence, _ in reader] == [0]
    del reader
    gc.collect()
    assert seen() is None
