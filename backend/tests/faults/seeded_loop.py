"""An event loop without a clock and without threads, driven by a seed.

Which of the ready callbacks runs next, and how long a database takes, is drawn at random; the same
seed draws the same. Time passes only when nothing is ready. A loop can be killed between any two
callbacks, as a process can.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import heapq
import logging
import random
import sqlite3
import sys
import warnings
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import pytest

_T = TypeVar("_T")

LOCKED = sqlite3.SQLITE_BUSY
RETRY = 0.001
PATIENCE = 5000
"""How often a locked database is retried: five seconds of the loop's time."""


class Killed(BaseException):
    """The loop was killed."""


class Stuck(Exception):
    """Nothing is left to run, and the awaited coroutine has not finished."""


class SeededLoop(asyncio.BaseEventLoop):
    """Runs callbacks in an order drawn from a seed, and records it in ``trace``."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.trace: list[int] = []
        self.steps = 0
        self.dies_at: int | None = None
        """The number of the callback before which the loop is killed."""
        self._now = 0.0
        # Coroutines of a killed loop are destroyed while pending, which would be reported.
        self.set_exception_handler(lambda _loop, _context: None)

    def time(self) -> float:
        return self._now

    def run(self, main: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine to its end.

        Raises:
            Killed: the loop was killed before.
        """
        asyncio.set_event_loop(self)
        try:
            return self.run_until_complete(main)
        finally:
            asyncio.set_event_loop(None)

    def bury(self) -> None:
        """Discard the tasks of a killed loop, with their warnings and log lines."""
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore")
            patch.setattr(sys, "unraisablehook", lambda _: None)
            patch.setattr(logging.root.manager, "disable", logging.CRITICAL)
            for task in asyncio.all_tasks(self):
                with contextlib.suppress(BaseException):
                    task.get_coro().close()  # type: ignore[union-attr, unused-ignore]
            self._ready.clear()  # type: ignore[attr-defined]
            self._scheduled.clear()  # type: ignore[attr-defined]
            self.close()
            gc.collect()

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., _T], *args: Any
    ) -> asyncio.Future[_T]:
        """Run ``func`` after a random delay, and again while a database is locked."""
        done: asyncio.Future[_T] = self.create_future()
        self.call_later(self.delay(), self._attempt, done, partial(func, *args), PATIENCE)
        return done

    def delay(self) -> float:
        """Draw the seconds of an external operation: mostly none, sometimes many."""
        return self.random.choice((0.0, 0.0, 0.001, 0.01, 0.1))

    def _attempt(self, done: asyncio.Future[Any], work: Callable[[], Any], left: int) -> None:
        if done.cancelled():
            return
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
            if left and _is_locked(error):
                self.call_later(RETRY, self._attempt, done, work, left - 1)
            else:
                done.set_exception(error)
        else:
            done.set_result(result)

    def _run_once(self) -> None:
        ready: Any = self._ready  # type: ignore[attr-defined]
        scheduled: Any = self._scheduled  # type: ignore[attr-defined]
        while scheduled and (not ready or scheduled[0]._when <= self._now):
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            if not handle._cancelled:
                self._now = max(self._now, handle._when)
                ready.append(handle)
        if not ready:
            raise Stuck
        chosen = self.random.randrange(len(ready))
        self.trace.append(chosen)
        self.steps += 1
        if self.steps == self.dies_at:
            raise Killed
        ready.rotate(-chosen)
        handle = ready.popleft()
        ready.rotate(chosen)
        if not handle._cancelled:
            handle._run()

    def _process_events(self, event_list: Any) -> None:
        """There are no files and sockets."""

    def _write_to_self(self) -> None:
        """The loop never blocks."""


def _is_locked(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, sqlite3.OperationalError):
            return error.sqlite_errorcode & 0xFF == LOCKED
        error = error.__cause__ or getattr(error, "orig", None)
    return False
