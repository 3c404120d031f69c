"""Turns that no reader has read for a while."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.turn.runner import RunningTurn


class UnreadTurnReaper:
    """Stops turns without readers; a turn that runs a claimed call is checked again later.

    ``is_read_remotely`` says whether another process has readers of a turn.
    """

    def __init__(
        self,
        stop: Callable[[RunningTurn], Awaitable[None]],
        is_read_remotely: Callable[[ChatKey], Awaitable[bool]] | None,
    ) -> None:
        self._stop = stop
        self._is_read_remotely = is_read_remotely
        self.tasks: set[asyncio.Task[None]] = set()

    def watch(self, turn: RunningTurn, seconds: float) -> None:
        """Stop the turn after so many seconds, unless a reader comes back."""
        if turn.idle_timer is not None:
            turn.idle_timer.cancel()
        loop = asyncio.get_running_loop()
        turn.idle_timer = loop.call_later(seconds, self._expired, turn, seconds)

    def _expired(self, turn: RunningTurn, seconds: float) -> None:
        if turn.readers > 0 or turn.done.is_set():
            return
        if turn.guard.claims:
            self.watch(turn, seconds)
            return
        task = asyncio.create_task(self._stop_unless_read(turn, seconds))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _stop_unless_read(self, turn: RunningTurn, seconds: float) -> None:
        if self._is_read_remotely is not None and await self._is_read_remotely(turn.chat):
            self.watch(turn, seconds)
            return
        await self._stop(turn)
