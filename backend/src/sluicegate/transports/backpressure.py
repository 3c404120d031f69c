"""A client that does not take what is ready: how long that is borne."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Scope

ABORT: Final = "sluicegate.abort"
"""The ASGI extension by which the server offers to reset a connection: ``{"call": …}``."""


def reset(scope: Scope) -> None:
    """Reset the connection of a request, where the server can."""
    call = ((scope.get("extensions") or {}).get(ABORT) or {}).get("call")
    if call is not None:
        call()


@dataclass(frozen=True, slots=True)
class Patience:
    """How far a client may be behind, in bytes, and for how many seconds one write may wait."""

    backlog: int
    seconds: float


class Backlog:
    """Watches the writes to one client; a write that does not wait costs next to nothing.

    ``give_up`` is called once, when a write has waited for so long while more than so much else
    is ready. A client that takes little but is not far behind is left alone: it costs no more
    than that.
    """

    def __init__(
        self, patience: Patience, *, behind: Callable[[], int], give_up: Callable[[], None]
    ) -> None:
        """Take the bounds, what is ready and not taken in bytes, and what ends the client."""
        self._patience = patience
        self._behind = behind
        self._give_up = give_up
        self._loop = asyncio.get_running_loop()
        self._waits_since: float | None = None
        self.wrote_at = self._loop.time()
        """When the last write began, by the loop's clock."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """A write begins."""
        self.wrote_at = self._waits_since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._patience.seconds, self._look)

    def end(self) -> None:
        """The write was taken."""
        self._waits_since = None

    def close(self) -> None:
        """There are no more writes."""
        self._waits_since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        since = self._waits_since
        if since is None:
            return
        left = since + self._patience.seconds - self._loop.time()
        if left <= 0 and self._behind() > self._patience.backlog:
            self._give_up()
            return
        wait = left if left > 0 else self._patience.seconds
        self._timer = self._loop.call_later(wait, self._look)
