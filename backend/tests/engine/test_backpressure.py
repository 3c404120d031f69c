"""A model runs no further ahead than the fastest reader is behind."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from sluicegate.engine.models.reader_backpressure import YIELD_INTERVAL, ReaderBackpressure
from sluicegate.stores.streams.base import StreamReader

WINDOW = 1_000
PATIENCE = 3600.0


class Reader:
    """So far behind."""

    def __init__(self, behind: int) -> None:
        self.backlog = behind


def joined(backpressure: ReaderBackpressure, *behind: int) -> list[Reader]:
    readers = [Reader(each) for each in behind]
    for reader in readers:
        backpressure.add_reader(cast("StreamReader", reader))
    return readers


async def is_blocked(task: asyncio.Task[Any]) -> bool:
    """Whether it still runs once everything that can run has run."""
    for _ in range(2 * YIELD_INTERVAL):
        await asyncio.sleep(0)
    return not task.done()


async def say(backpressure: ReaderBackpressure, pieces: int = YIELD_INTERVAL) -> None:
    for _ in range(pieces):
        if backpressure.is_due():
            await backpressure.wait()


@pytest.mark.parametrize(
    ("behind", "waits"),
    [
        ((), False),
        ((WINDOW,), False),
        ((WINDOW + 1,), True),
        ((9 * WINDOW, WINDOW), False),
        ((9 * WINDOW, WINDOW + 1), True),
    ],
)
async def test_a_model_waits_when_every_reader_has_a_large_backlog(
    behind: tuple[int, ...], waits: bool
) -> None:
    backpressure = ReaderBackpressure(WINDOW, PATIENCE)
    joined(backpressure, *behind)
    saying = asyncio.create_task(say(backpressure))
    assert await is_blocked(saying) is waits
    saying.cancel()
    await asyncio.wait([saying])


async def test_the_model_continues_when_one_reader_has_caught_up() -> None:
    backpressure = ReaderBackpressure(WINDOW, PATIENCE)
    [reader] = joined(backpressure, 2 * WINDOW)
    saying = asyncio.create_task(say(backpressure))
    reader.backlog = WINDOW + 1
    backpressure.reader_advanced()
    assert await is_blocked(saying)
    reader.backlog = WINDOW
    backpressure.reader_advanced()
    await saying


async def test_the_model_continues_when_the_last_reader_has_disconnected() -> None:
    backpressure = ReaderBackpressure(WINDOW, PATIENCE)
    [reader] = joined(backpressure, 2 * WINDOW)
    saying = asyncio.create_task(say(backpressure))
    assert await is_blocked(saying)
    backpressure.remove_reader(cast("StreamReader", reader))
    await saying


async def test_the_model_continues_when_no_reader_advances_for_the_maximum_wait() -> None:
    backpressure = ReaderBackpressure(WINDOW, 0.01)
    joined(backpressure, 2 * WINDOW)
    await say(backpressure)


async def test_readers_run_after_a_fixed_number_of_chunks() -> None:
    backpressure = ReaderBackpressure(WINDOW, PATIENCE)
    ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(ran.set)
    await say(backpressure, YIELD_INTERVAL - 1)
    assert not ran.is_set()
    await say(backpressure, 1)
    assert ran.is_set()
