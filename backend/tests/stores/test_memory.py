from __future__ import annotations

import gc
import weakref

from sluicegate.core.keys import TurnKey
from sluicegate.stores.memory import MemoryStreamStore
from sluicegate.wire.chunks import TextDeltaChunk
from tests.stores.builders import CHAT


async def test_a_closed_turn_is_forgotten_with_its_last_reader() -> None:
    store = MemoryStreamStore()
    turn = TurnKey(CHAT, "turn-1", 1)
    writer = await store.open(turn)
    assert writer is not None
    chunk = TextDeltaChunk(id="1", delta="kept")
    seen = weakref.ref(chunk)
    await writer.append(chunk)
    found = await store.find(turn)
    assert found is not None
    reader = found.read()
    await writer.close()
    del chunk, found, writer
    gc.collect()
    assert seen() is not None
    assert [sequence async for sequence, _ in reader] == [0]
    del reader
    gc.collect()
    assert seen() is None
