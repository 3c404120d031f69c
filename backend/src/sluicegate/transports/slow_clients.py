"""Backpressure: a client that blocks a write for too long, with too much unread, is dropped."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope

ABORT: Final = "sluicegate.abort"
"""The ASGI extension by which the server offers to reset a connection: ``{"call": …}``."""


def abort_connection(scope: Scope) -> None:
    """Reset the connection of a request, if the server offers it."""
    call = ((scope.get("extensions") or {}).get(ABORT) or {}).get("call")
    if call is not None:
        call()


@dataclass(frozen=True, slots=True)
class WriteLimits:
    """The backlog in bytes, and the seconds of one write, beyond which a client is dropped."""

    backlog: int
    timeout: float


class Timers(Protocol):
    """The clock and the timers of an event loop."""

    def time(self) -> float:
        """Return the time of the clock in seconds."""

    def call_later(self, delay: float, callback: Callable[[], None], /) -> Timer:
        """Call back after a delay in seconds."""


class Timer(Protocol):
    """A callback that is scheduled."""

    def cancel(self) -> None:
        """Cancel the callback."""


class WriteMonitor:
    """Watches the writes to one client; at most one timer is armed, however many writes follow.

    ``abort`` is called once, when a write has blocked for ``limits.timeout`` seconds while more
    than ``limits.backlog`` bytes are ready. A slow client with a small backlog is not dropped.

    Args:
        limits: The bounds of the client.
        backlog: Returns the bytes that are ready and not yet written.
        abort: Drops the client.
        loop: The clock; the running event loop unless given.
    """

    def __init__(
        self,
        limits: WriteLimits,
        *,
        backlog: Callable[[], int],
        abort: Callable[[], None],
        loop: Timers | None = None,
    ) -> None:
        self._limits = limits
        self._backlog = backlog
        self._abort = abort
        self._loop: Timers = asyncio.get_running_loop() if loop is None else loop
        self._blocked_since: float | None = None
        self.last_write_at = self._loop.time()
        """When the last write began, by the loop's clock."""
        self._timer: Timer | None = None

    def started(self) -> None:
        """Record that a write begins."""
        self.last_write_at = self._blocked_since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._limits.timeout, self._check)

    def finished(self) -> None:
        """Record that the write has ended."""
        self._blocked_since = None

    def close(self) -> None:
        """Stop watching."""
        self._blocked_since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        since = self._blocked_since
        if since is None:
            return
        left = since + self._limits.timeout - self._loop.time()
        if left <= 0 and self._backlog() > self._limits.backlog:
            self._abort()
            return
        self._timer = self._loop.call_later(left if left > 0 else self._limits.timeout, self._check)
