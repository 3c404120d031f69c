"""How often a user may do something, counted by each process for itself."""

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

_SPAN: Final = 60.0
_MANY: Final = 1_000
"""Users from which those are forgotten who have done nothing for a minute."""


class RateLimit:
    """At most so many in any minute; ``clock`` is seconds of any one clock."""

    def __init__(
        self, per_minute: int, sentence: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the bound, and what is said to whoever is over it."""
        self._bound = per_minute
        self._sentence = sentence
        self._clock = clock
        self._moments: dict[str, deque[float]] = {}
        self._prune_at = _MANY

    def take(self, user: str) -> None:
        """Count one more of a user.

        Raises:
            TooManyRequests: it would be one too many; it is not counted.
        """
        now = self._clock()
        moments = self._moments.get(user)
        if moments is None:
            self._prune(now)
            moments = self._moments[user] = deque()
        while moments and moments[0] <= now - _SPAN:
            moments.popleft()
        if len(moments) >= self._bound:
            wait = moments[0] + _SPAN - now
            raise TooManyRequests(self._sentence, retry_after=max(1, ceil(wait)))
        moments.append(now)

    def _prune(self, now: float) -> None:
        if len(self._moments) < self._prune_at:
            return
        old = [user for user, moments in self._moments.items() if moments[-1] <= now - _SPAN]
        for user in old:
            del self._moments[user]
        self._prune_at = max(_MANY, 2 * len(self._moments))
