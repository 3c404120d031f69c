"""The claimed calls of a turn, from the claim to the stored outcome."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.core.call_keys import CallKey


class RunningClaims:
    """The claimed calls of a turn by name, from the claim to the stored outcome.

    A call that runs longer than ``seconds`` invokes ``on_overtime``, which ends the turn.
    ``interrupted`` are calls that were cancelled, so that nothing is known of their effects.
    """

    def __init__(self, seconds: float, on_overtime: Callable[[], None]) -> None:
        self.interrupted: set[str] = set()
        self._seconds = seconds
        self._on_overtime = on_overtime
        self._keys: dict[str, CallKey] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._idle_callbacks: list[Callable[[], None]] = []

    def __contains__(self, name: str) -> bool:
        return name in self._keys

    def __bool__(self) -> bool:
        return bool(self._keys)

    def names(self) -> list[str]:
        """Return the names of the calls that run."""
        return list(self._keys)

    def key(self, name: str) -> CallKey:
        """Return the ledger's key of a call that runs."""
        return self._keys[name]

    def start(self, name: str, key: CallKey) -> None:
        """Record that a call is being claimed or runs."""
        self._keys[name] = key
        self._idle.clear()
        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(self._seconds, self._on_overtime)

    def end(self, name: str, *, interrupted: bool = False) -> None:
        """Record that a call has ended, or was cancelled; no effect if it does not run."""
        if self._keys.pop(name, None) is None:
            return
        self._timers.pop(name).cancel()
        if interrupted:
            self.interrupted.add(name)
        if not self._keys:
            self._idle.set()
            while self._idle_callbacks:
                self._idle_callbacks.pop()()

    def interrupt_all(self) -> None:
        """Record at the end of the run that the calls without an end were cancelled."""
        for name in list(self._keys):
            self.end(name, interrupted=True)

    async def wait_idle(self) -> None:
        """Wait until no claimed call runs."""
        await self._idle.wait()

    def call_when_idle(self, callback: Callable[[], None]) -> None:
        """Invoke a callback as soon as no claimed call runs, at once if none does."""
        if self._keys:
            self._idle_callbacks.append(callback)
        else:
            callback()
