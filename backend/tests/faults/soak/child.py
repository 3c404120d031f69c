"""Processes that are forked off this one, which has imported everything and runs no threads."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

_FORK: Final = multiprocessing.get_context("fork")

Work = Callable[..., Any]


class ChildError(Exception):
    """A child process did not end as expected."""


class Child:
    """A forked process that calls or awaits a function and sends its result."""

    def __init__(self, work: Work, *args: Any) -> None:
        """Fork."""
        self._result, theirs = _FORK.Pipe(duplex=False)
        self._process = _FORK.Process(target=_live, args=(theirs, work, args), daemon=True)
        self._process.start()
        theirs.close()

    def result(self, patience: float) -> Any:
        """Return the result of the function.

        Raises:
            ChildError: it failed, the process died, or it took too long.
        """
        try:
            if not self._result.poll(patience):
                raise ChildError("it took too long")
            has_failed, value = self._result.recv()
        except EOFError:
            raise ChildError("its process died") from None
        finally:
            self._end()
        if has_failed:
            raise ChildError(value)
        return value

    def wait_for_death(self, patience: float) -> None:
        """Wait until the process was killed.

        Raises:
            ChildError: it lives, or ended otherwise.
        """
        self._process.join(patience)
        code = self._process.exitcode
        said = self._result.recv()[1] if self._result.poll() and code == 0 else ""
        self._end()
        if code != -signal.SIGKILL:
            raise ChildError(f"it was to be killed and ended with {code} {said}")

    def kill(self) -> None:
        """End the process at once, if it lives."""
        self._process.kill()
        self._end()

    def _end(self) -> None:
        self._process.join(1)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._result.close()


def _live(result: Connection, work: Work, args: tuple[Any, ...]) -> None:
    logging.disable(logging.CRITICAL)
    try:
        value = work(*args)
        result.send((False, asyncio.run(value) if asyncio.iscoroutine(value) else value))
    except Exception:  # noqa: BLE001 - the parent reports it
        result.send((True, traceback.format_exc()))
