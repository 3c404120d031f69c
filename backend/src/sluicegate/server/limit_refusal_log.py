"""Logs that a limit was reached, at most once a minute for each subject."""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING, Final

from sluicegate.engine.rate_limits import RateLimit
from sluicegate.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Callable

_log: Final = logging.getLogger("sluicegate")


class RefusalLog:
    """Logs refusals, those of one subject at most once a minute; ``clock`` returns seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = RateLimit(1, "", clock=clock)

    def note(self, limit: str, subject: str) -> None:
        """Log that a subject, such as a user or a peer, has reached a limit."""
        with contextlib.suppress(TooManyRequests):
            self._rate.take(f"{limit} {subject}")
            _log.warning("refused: a limit is reached limit=%s by=%s", limit, subject)
