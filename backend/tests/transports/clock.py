"""A loop that is nothing but a clock with timers, moved by hand."""

from __future__ import annotations

from collections.abc import Callable


class ClockedLoop:
    """Has the time and the timers of an event loop."""

    def __init__(self) -> None:
        self._now = 0.0
        self._timers: list[Timer] = []

    @property
    def timers(self) -> int:
        """How many are armed."""
        return len(self._timers)

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, call: Callable[[], None]) -> Timer:
        timer = Timer(self._now + delay, call, self._timers)
        self._timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass, and every timer fire that is due meanwhile."""
        end = self._now + seconds
        while self._timers:
            first = min(self._timers, key=lambda timer: timer.at)
            if first.at > end + 1e-9:
                break
            self._now = max(self._now, first.at)
            first.cancel()
            first.call()
        self._now = end


class Timer:
    """One call that is to come."""

    def __init__(self, at: float, call: Callable[[], None], armed: list[Timer]) -> None:
        self.at = at
        self.call = call
        self._armed = armed

    def cancel(self) -> None:
        if self in self._armed:
            self._armed.remove(self)
