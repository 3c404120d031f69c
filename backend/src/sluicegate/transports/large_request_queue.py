"""Large bodies and frames: how many are in memory at once, and how they are parsed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

from sluicegate.errors import TooManyRequests
from sluicegate.wire import large_json_parser, strict_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pydantic import JsonValue

LARGE: Final = 64 * 1024
"""Bytes from which a body or a frame is large; to parse fewer takes at most a few milliseconds."""

_PAUSE: Final = 0.001
"""Seconds for which a thread that parses pauses after each step, which takes as long.

Without it the event loop, which gives up the interpreter at each system call, waits for its return
until CPython switches threads, 5 ms: a short answer beside a large request takes seconds.
"""

Result = TypeVar("Result")


class LargeRequests:
    """Admits large bodies and frames, one of each user at a time, and parses one at a time.

    The others wait unread, so that their bytes are not in memory. Each process counts for itself.

    Args:
        at_once: How many are admitted at a time, of all users.
        max_values: How many JSON values a body or a frame may have.
    """

    def __init__(self, *, at_once: int, max_values: int) -> None:
        self._free = at_once
        self._max_values = max_values
        self._admitted: set[str] = set()
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._parsing = asyncio.Lock()

    def request(self, user: str) -> asyncio.Future[None]:
        """Return a future that is done when the user may send a large request; see `release`."""
        admission = asyncio.get_running_loop().create_future()
        self._waiting.append((user, admission))
        self._admit()
        return admission

    def release(self, user: str, admission: asyncio.Future[None]) -> None:
        """End an admission, or the wait for it."""
        if admission.cancel():
            self._waiting = deque(entry for entry in self._waiting if entry[1] is not admission)
        elif not admission.cancelled():
            self._admitted.discard(user)
            self._free += 1
            self._admit()

    @contextlib.asynccontextmanager
    async def admission(self, user: str, *, within: float) -> AsyncIterator[None]:
        """Wait for an admission, at most so many seconds, and hold it.

        Raises:
            TooManyRequests: There was none in time.
        """
        admission = self.request(user)
        try:
            done, _ = await asyncio.wait([admission], timeout=within)
            if not done:
                raise TooManyRequests(
                    "Other large requests are being read; wait for them and send it again."
                )
            yield
        finally:
            self.release(user, admission)

    def loads(self, data: bytes) -> JsonValue:
        """Parse JSON with the parser for its size; call it in `run`, as parsing may take long.

        Raises:
            Malformed: As `strict_json.loads`.
            TooLarge: There are too many values.
        """
        if len(data) >= LARGE:
            most = self._max_values
            return large_json_parser.loads(data, max_values=most, between_steps=_let_event_loop_run)
        if len(data) > self._max_values:
            return large_json_parser.loads(data, max_values=self._max_values)
        return strict_json.loads(data)

    async def run(self, size: int, function: Callable[[], Result]) -> Result:
        """Call a function that processes so many bytes in small steps, in a thread if it is large.

        Several such threads at once would take turns at the interpreter with the event loop.
        """
        if size < LARGE:
            return function()
        results: list[Result | Exception] = []

        def call() -> None:
            try:
                results.append(function())
            except Exception as error:  # noqa: BLE001 - it is raised by the caller
                # Its frames hold the data.
                results.append(error.with_traceback(None))

        async with self._parsing:
            # A future of a thread is part of a cycle, which would hold the result until the next
            # full garbage collection.
            await asyncio.to_thread(call)
        if isinstance(results[0], Exception):
            raise results.pop()  # type: ignore[misc]  # as it has just been found
        return results.pop()  # type: ignore[return-value]  # the same

    def _admit(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for user, admission in waiting:
            if self._free and user not in self._admitted:
                self._free -= 1
                self._admitted.add(user)
                admission.set_result(None)
            else:
                self._waiting.append((user, admission))


def _let_event_loop_run() -> None:
    time.sleep(_PAUSE)
