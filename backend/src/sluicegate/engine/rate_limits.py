"""Rate limits.

`RateLimit` bounds what a user does in any minute or hour exactly, in one process or, by what other
processes report, in all of them; `TokenBucket` lets a connection
burst and then holds it to a rate, for the price of two numbers.
"""

from __future__ import annotations

import time
from collections import deque
from math import ceil
from typing import TYPE_CHECKING, Final

from sluicegate.engine.telemetry import refused_by
from sluicegate.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Callable

TOO_MANY_TURNS: Final = (
    "You have asked for too many answers in a minute; wait a moment and ask again."
)
TOO_MANY_MESSAGES: Final = "You have sent too much in a minute; wait a moment and send it again."

_MINUTE: Final = 60.0
_PRUNE_AT: Final = 1_000
"""Users from which on those are pruned who have done nothing for the window."""


class _Taken:
    """What one user has taken in the window: times with amounts, and their sum."""

    __slots__ = ("entries", "total")

    def __init__(self) -> None:
        self.entries: deque[tuple[float, int]] = deque()
        self.total = 0

    def add(self, now: float, amount: int) -> None:
        self.entries.append((now, amount))
        self.total += amount


class RateLimit:
    """A sliding window per user: at most ``bound`` in any ``window`` of seconds.

    ``sentence`` is the public sentence of a refusal, ``clock`` returns seconds, ``name`` is the
    setting under which refusals are counted.
    """

    on_count: Callable[[str, int], None] | None = None
    """Is called with a user and an amount that was counted."""

    def __init__(
        self,
        bound: int,
        sentence: str,
        *,
        window: float = _MINUTE,
        name: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bound = bound
        self._sentence = sentence
        self._window = window
        self.name = name
        self._clock = clock
        self._users: dict[str, _Taken] = {}
        self._prune_at = _PRUNE_AT

    def __len__(self) -> int:
        """The number of users that are counted."""
        return len(self._users)

    def take(self, user: str, amount: int = 1) -> None:
        """Count so much more of a user.

        Raises:
            TooManyRequests: it would be too much; it is not counted.
        """
        now = self._clock()
        taken = self._taken(user, now)
        excess = taken.total + amount - self._bound
        if excess > 0:
            wait = self._window
            for at, part in taken.entries:
                excess -= part
                if excess <= 0:
                    wait = at + self._window - now
                    break
            if self.name:
                refused_by(self.name)
            raise TooManyRequests(self._sentence, retry_after=max(1, ceil(wait)))
        taken.add(now, amount)
        if self.on_count is not None:
            self.on_count(user, amount)

    def add(self, user: str, amount: int) -> None:
        """Count what a user has taken in another process, even if it is too much."""
        now = self._clock()
        self._taken(user, now).add(now, amount)

    def _taken(self, user: str, now: float) -> _Taken:
        """Return what a user has taken within the window."""
        taken = self._users.get(user)
        if taken is None:
            self._prune(now)
            taken = self._users[user] = _Taken()
        while taken.entries and taken.entries[0][0] <= now - self._window:
            taken.total -= taken.entries.popleft()[1]
        return taken

    def _prune(self, now: float) -> None:
        if len(self._users) < self._prune_at:
            return
        oldest = now - self._window
        idle = [
            user
            for user, taken in self._users.items()
            if not taken.entries or taken.entries[-1][0] <= oldest
        ]
        for user in idle:
            del self._users[user]
        self._prune_at = max(_PRUNE_AT, 2 * len(self._users))


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

    def put_back(self) -> None:
        """Return a token that was consumed."""
        self._tokens = min(self._burst, self._tokens + 1)

    def seconds_until(self, now: float) -> int:
        """Return the seconds, at least one, after which there is a token."""
        missing = 1 - self._tokens - (now - self._filled_at) * self._per_second
        return max(1, ceil(missing / self._per_second))
