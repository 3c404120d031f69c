"""A model runs no further ahead than the fastest reader is behind."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from sluicegate.engine.models.fast_lane import PIECES, ReaderBackpressure
from sluicegate.stores.streams.base import StreamReader

WINDOW = 1_000
PATIENCE = 5.0


class Reader:
    """So far behind."""

    def __init__(self, behind: int) -> None:
        self.backlog = behind


def joined(pace: ReaderBackpressure, *behind: int) -> list[Reader]:
    readers = [Reader(each) for each in behind]
    for reader in readers:
        pace.join(cast("StreamReader", reader))
    return readers


async def is_held_up(task: asyncio.Task[Any]) -> bool:
    """Whether it still runs once everything that can run has run."""
    for _ in range(2 * PIECES):
        await asyncio.sleep(0)
    return not task.done()


async def say(pace: ReaderBackpressure, pieces: int = PIECES) -> None:
    for _ in range(pieces):
        if pace.is_due():
            await pace.step()


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
async def test_a_model_waits_where_every_reader_is_far_behind(
    behind: tuple[int, ...], waits: bool
) -> None:
    pace = ReaderBackpressure(WINDOW, PATIENCE)
    joined(pace, *behind)
    saying = asyncio.create_task(say(pace))
    assert await is_held_up(saying) is waits
    saying.cancel()
    await asyncio.wait([saying])


async def test_it_goes_on_when_one_has_caught_up() -> None:
    pace = ReaderBackpressure(WINDOW, PATIENCE)
    [reader] = joined(pace, 2 * WINDOW)
    saying = asyncio.create_task(say(pace))
    reader.backlog = WINDOW + 1
    pace.moved()
    assert await is_held_up(saying)
    reader.backlog = WINDOW
    pace.moved()
    await saying


async def test_it_goes_on_when_the_last_has_left() -> None:
    pace = ReaderBackpressure(WINDOW, PATIENCE)
    [reader] = joined(pace, 2 * WINDOW)
    saying = asyncio.create_task(say(pace))
    assert await is_held_up(saying)
    pace.leave(cast("StreamReader", reader))
    await saying


async def test_it_goes_on_when_nobody_moves_for_long() -> None:
    pace = ReaderBackpressure(WINDOW, 0.01)
    joined(pace, 2 * WINDOW)
    await say(pace)


async def test_whoever_reads_gets_a_chance_to_run() -> None:
    pace = ReaderBackpressure(WINDOW, PATIENCE)
    ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(ran.set)
    await say(pace, PIECES - 1)
    assert not ran.is_set()
    await say(pace, 1)
    assert ran.is_set()
