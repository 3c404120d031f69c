"""The time limits of a stream server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ValkeyTimings:
    """Time limits in seconds."""

    command: float = 1.0
    """How long a connection or a command may take."""

    block: float = 5.0
    """How long one request for new entries waits for them."""

    unavailable: float = 10.0
    """How long readers wait for an unavailable server; then their clients load the history."""

    close: float = 1.0
    """How long the end of a turn waits until the server has it."""

    delivery: float = 10.0
    """How long the entries of a finished turn are retried on an unavailable server."""

    retry_pause: float = 0.25
    """The pause between two attempts."""


DEFAULT_TIMINGS: Final = ValkeyTimings()
