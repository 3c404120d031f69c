"""The clock of the running event loop, advanced by a test: timers fire without waiting."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENT_TIMEOUT = 30.0
"""Seconds that a test waits for an event; only a defect reaches them."""


class LoopTime:
    """Seconds by which the clock of a loop is ahead."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._held: float | None = None

    @classmethod
    @contextmanager
    def of_running_loop(cls) -> Iterator[LoopTime]:
        """Advance the running loop's clock within a block."""
        loop, advanced = asyncio.get_running_loop(), cls()
        time = loop.time
        loop.time = lambda: (advanced._held or time()) + advanced._ahead  # type: ignore[method-assign]
        try:
            yield advanced
        finally:
            loop.time = time  # type: ignore[method-assign]

    def hold(self) -> None:
        """Let no time pass from now on, however busy the machine is, but what is advanced."""
        self._held = asyncio.get_running_loop().time()

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass at once; every timer that is due fires."""
        self._ahead += seconds


async def within_limit(event: asyncio.Event) -> None:
    """Wait for an event."""
    async with asyncio.timeout(EVENT_TIMEOUT):
        await event.wait()
