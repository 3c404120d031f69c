"""How far a model may run ahead: no further than the fastest reader is behind by so many bytes.

ADK: it puts partial events on a queue without a bound, so a model that is never waited for fills
the memory with what nobody has read yet.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sluicegate.stores.base import StreamReader

PIECES: Final = 16
"""Partial responses after which whoever reads gets a chance to run."""


class Pace:
    """The readers of a turn as its models see them; without any, a model is not held up."""

    def __init__(self, window: float = math.inf, patience: float = 5.0) -> None:
        """Take the bytes that a model may be ahead, and the seconds it waits for one that moves."""
        self.patience = patience
        self._window = window
        self._readers: set[StreamReader] = set()
        self._moved = asyncio.Event()
        self._pieces = 0

    def join(self, reader: StreamReader) -> None:
        """Somebody begins to read."""
        self._readers.add(reader)

    def leave(self, reader: StreamReader) -> None:
        """Somebody reads no more."""
        self._readers.discard(reader)
        self._moved.set()

    def moved(self) -> None:
        """A reader has taken something."""
        self._moved.set()

    def is_due(self) -> bool:
        """A piece was said: whether it is time for a `step`."""
        self._pieces += 1
        return self._pieces % PIECES == 0

    async def step(self) -> None:
        """Let others run; wait where everybody is far behind."""
        await asyncio.sleep(0)
        if not self._is_ahead():
            return
        try:
            async with asyncio.timeout(self.patience):
                while self._is_ahead():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            # Nobody moves: whoever is stuck is dropped elsewhere, and the store has bounds.
            return

    def _is_ahead(self) -> bool:
        return bool(self._readers) and all(reader.behind > self._window for reader in self._readers)
