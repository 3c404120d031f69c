"""Backpressure of a turn's readers on its model."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sluicegate.stores.streams.base import StreamReader

YIELD_INTERVAL: Final = 16
"""Partial responses between two points at which readers get a chance to run."""


class ReaderBackpressure:
    """Holds a model back while every reader of the turn lags behind; without readers, never.

    ``window`` are the bytes that the fastest reader may lag behind, ``patience`` the seconds that a
    model waits for a reader to advance.
    """

    def __init__(self, window: float = math.inf, patience: float = 5.0) -> None:
        self.patience = patience
        self._window = window
        self._readers: set[StreamReader] = set()
        self._advanced = asyncio.Event()
        self._responses = 0

    @property
    def backlog(self) -> int:
        """Bytes that the readers lag behind, all together."""
        return sum(reader.backlog for reader in self._readers)

    def add_reader(self, reader: StreamReader) -> None:
        """Add the backlog of a reader."""
        self._readers.add(reader)

    def remove_reader(self, reader: StreamReader) -> None:
        """Forget a reader that has left."""
        self._readers.discard(reader)
        self._advanced.set()

    def reader_advanced(self) -> None:
        """Let waiting models look at the backlogs again."""
        self._advanced.set()

    def is_due(self) -> bool:
        """Count a partial response; whether it is time to call `wait`."""
        self._responses += 1
        return self._responses % YIELD_INTERVAL == 0

    async def wait(self) -> None:
        """Let other tasks run, and wait while every reader lags behind."""
        await asyncio.sleep(0)
        if not self._is_ahead():
            return
        try:
            async with asyncio.timeout(self.patience):
                while self._is_ahead():
                    self._advanced.clear()
                    await self._advanced.wait()
        except TimeoutError:
            # Stuck readers are dropped by their transport, and the stream store has bounds.
            return

    def _is_ahead(self) -> bool:
        return bool(self._readers) and all(
            reader.backlog > self._window for reader in self._readers
        )
