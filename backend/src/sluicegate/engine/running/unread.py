"""What happens to a turn that nobody reads any more (section 7)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sluicegate.core.keys import ChatKey
    from sluicegate.engine.running.running_turn import RunningTurn


class Unread:
    """Stops an ungated turn that has had no reader for a while; a claimed call never."""

    def __init__(
        self,
        stop: Callable[[RunningTurn], Awaitable[None]],
        is_read_elsewhere: Callable[[ChatKey], Awaitable[bool]] | None,
    ) -> None:
        """Take how a turn is stopped, and who knows whether another process has readers of it."""
        self._stop = stop
        self._is_read_elsewhere = is_read_elsewhere
        self.tasks: set[asyncio.Task[None]] = set()
        """What is being stopped."""

    def linger(self, turn: RunningTurn, seconds: float) -> None:
        """Stop the turn after so many seconds, unless a reader comes back."""
        if turn.lingering is not None:
            turn.lingering.cancel()
        loop = asyncio.get_running_loop()
        turn.lingering = loop.call_later(seconds, self._end, turn, seconds)

    def _end(self, turn: RunningTurn, seconds: float) -> None:
        if turn.readers > 0 or turn.done.is_set():
            return
        if turn.turn_gate.claims:
            self.linger(turn, seconds)
            return
        task = asyncio.create_task(self._end_unless_read(turn, seconds))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _end_unless_read(self, turn: RunningTurn, seconds: float) -> None:
        if self._is_read_elsewhere is not None and await self._is_read_elsewhere(turn.chat):
            self.linger(turn, seconds)
            return
        await self._stop(turn)
