"""The claimed calls that run now: how long they may, and what waits for their end (A1)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.core.keys import CallKey


class Claims:
    """Claimed calls by name, from the claim to the stored outcome.

    A call that runs longer than ``seconds`` calls ``overtime``, which ends the turn.
    """

    def __init__(self, seconds: float) -> None:
        """No call runs yet."""
        self.overtime: Callable[[], None] = lambda: None
        self.cut: set[str] = set()
        """Calls that were cancelled in the middle: nobody knows what they did."""
        self._seconds = seconds
        self._keys: dict[str, CallKey] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._afterwards: list[Callable[[], None]] = []

    def __contains__(self, name: str) -> bool:
        return name in self._keys

    def __bool__(self) -> bool:
        return bool(self._keys)

    def names(self) -> list[str]:
        """The calls that run."""
        return list(self._keys)

    def key(self, name: str) -> CallKey:
        """The ledger's key of a call that runs."""
        return self._keys[name]

    def take(self, name: str, key: CallKey) -> None:
        """A call was claimed and runs from now on."""
        self._keys[name] = key
        self._idle.clear()
        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(self._seconds, self.overtime)

    def let_go(self, name: str, *, cut: bool = False) -> None:
        """A call has ended; ``cut``: it was cancelled."""
        if self._keys.pop(name, None) is None:
            return
        self._timers.pop(name).cancel()
        if cut:
            self.cut.add(name)
        if not self._keys:
            self._idle.set()
            while self._afterwards:
                self._afterwards.pop()()

    def give_up(self) -> None:
        """The run is over: what has not ended will not be heard of."""
        for name in list(self._keys):
            self.let_go(name, cut=True)

    async def done(self) -> None:
        """Wait until no claimed call runs."""
        await self._idle.wait()

    def when_done(self, then: Callable[[], None]) -> None:
        """Call ``then`` as soon as no claimed call runs, perhaps now."""
        if self._keys:
            self._afterwards.append(then)
        else:
            then()
