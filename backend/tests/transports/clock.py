"""The clock and the timers of an event loop, advanced by a test."""

from __future__ import annotations

from collections.abc import Callable


class ClockedLoop:
    """A stopped clock; see `advance`."""

    def __init__(self) -> None:
        self._now = 0.0
        self._timers: list[Timer] = []

    @property
    def timers(self) -> int:
        """The number of armed timers."""
        return len(self._timers)

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        timer = Timer(self._now + delay, callback, self._timers)
        self._timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Advance the clock and fire the timers that are due."""
        end = self._now + seconds
        while self._timers:
            first = min(self._timers, key=lambda timer: timer.at)
            if first.at > end + 1e-9:
                break
            self._now = max(self._now, first.at)
            first.cancel()
            first.callback()
        self._now = end


class Timer:
    """A scheduled callback."""

    def __init__(self, at: float, callback: Callable[[], None], armed: list[Timer]) -> None:
        self.at = at
        self.callback = callback
        self._armed = armed

    def cancel(self) -> None:
        if self in self._armed:
            self._armed.remove(self)
