"""Rate limits, counted by each process for itself.

`RateLimit` bounds what a user does in any minute exactly; `TokenBucket` lets a connection burst and
then holds it to a rate, for the price of two numbers.
"""

from __future__ import annotations

import time
from collections import deque
from math import ceil
from typing import TYPE_CHECKING, Final

from sluicegate.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Callable

TOO_MANY_TURNS: Final = (
    "You have asked for too many answers in a minute; wait a moment and ask again."
)
TOO_MANY_MESSAGES: Final = "You have sent too much in a minute; wait a moment and send it again."

_WINDOW: Final = 60.0
_PRUNE_AT: Final = 1_000
"""Users from which on those are pruned who have done nothing for a minute."""


class RateLimit:
    """A sliding window per user: at most ``per_minute`` in any minute.

    ``sentence`` is the public sentence of a refusal, ``clock`` returns seconds.
    """

    def __init__(
        self, per_minute: int, sentence: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bound = per_minute
        self._sentence = sentence
        self._clock = clock
        self._times: dict[str, deque[float]] = {}
        self._prune_at = _PRUNE_AT

    def __len__(self) -> int:
        """The number of users that are counted."""
        return len(self._times)

    def take(self, user: str) -> None:
        """Count one more of a user.

        Raises:
            TooManyRequests: it would be one too many; it is not counted.
        """
        now = self._clock()
        times = self._times.get(user)
        if times is None:
            self._prune(now)
            times = self._times[user] = deque()
        while times and times[0] <= now - _WINDOW:
            times.popleft()
        if len(times) >= self._bound:
            wait = times[0] + _WINDOW - now
            raise TooManyRequests(self._sentence, retry_after=max(1, ceil(wait)))
        times.append(now)

    def _prune(self, now: float) -> None:
        if len(self._times) < self._prune_at:
            return
        idle = [user for user, times in self._times.items() if times[-1] <= now - _WINDOW]
        for user in idle:
            del self._times[user]
        self._prune_at = max(_PRUNE_AT, 2 * len(self._times))


class TokenBucket:
    """``burst`` tokens at once, then ``per_second``; times are seconds of any one clock."""

    def __init__(self, burst: float, per_second: float, *, now: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._tokens = float(burst)
        self._filled_at = now

    def take(self, now: float, tokens: float = 1) -> bool:
        """Consume tokens; False, and none is consumed, if fewer are left."""
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        if self._tokens < tokens:
            return False
        self._tokens -= tokens
        return True
