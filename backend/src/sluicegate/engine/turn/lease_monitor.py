"""Once a second: who elsewhere wants a turn stopped, who reads along, and who is gone (A2)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from sluicegate.engine.turn.replicas import READ_TTL
from sluicegate.errors import StoreError, new_error_id
from sluicegate.wire.chunks import ErrorChunk

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from sluicegate.core.keys import ChatKey, TurnKey
    from sluicegate.engine.turn.registry import TurnRegistry
    from sluicegate.engine.turn.replicas import Replicas
    from sluicegate.stores.leases.base import Leases, LeaseState
    from sluicegate.stores.streams.base import StreamStore

SECONDS: Final = 1.0
_NOTE_EVERY: Final = 5
"""So many looks pass between two notes that somebody reads."""

logger = logging.getLogger("sluicegate")


class LeaseMonitor:
    """Looks at the leases of the chats that run here or are read here, all in one question."""

    def __init__(
        self, turns: TurnRegistry, elsewhere: Replicas, leases: Leases, streams: StreamStore
    ) -> None:
        """Take what is looked at."""
        self._turns = turns
        self._elsewhere = elsewhere
        self._leases = leases
        self._streams = streams
        self._missing: set[TurnKey] = set()
        self._looks = 0
        self._task: asyncio.Task[None] | None = None
        self._stopping: dict[ChatKey, asyncio.Task[None]] = {}

    def begin(self) -> None:
        """Look once a second from now on."""
        self._task = asyncio.create_task(self._run())

    async def aclose(self) -> None:
        """Look no more."""
        for task in [self._task, *self._stopping.values()]:
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    async def look(self) -> None:
        """Look once.

        Raises:
            StoreError: the database does not answer.
        """
        here, followed = self._turns.chats(), list(self._streams.followed())
        chats = {*here, *(turn.chat for turn in followed)}
        if not chats:
            self._missing.clear()
            return
        states = await self._leases.states(chats)
        for chat in here:
            if states[chat].stop_requested and chat not in self._stopping:
                self._begin_to_stop(chat, states[chat].fence)
        await self._look_after(followed, states)
        self._looks += 1
        if self._looks % _NOTE_EVERY == 0:
            for turn in self._elsewhere.read_here():
                await self._leases.record_reader(turn.chat, fence=turn.fence, ttl=READ_TTL)

    async def _look_after(self, followed: list[TurnKey], states: dict[ChatKey, LeaseState]) -> None:
        """End what nobody writes any more; one that ended well has said so by the next look."""
        gone = {turn for turn in followed if not _is_held(turn, states[turn.chat])}
        for turn in gone & self._missing:
            error_id = new_error_id()
            logger.error("turn lost chat=%s turn=%s error=%s", turn.chat.chat, turn.turn, error_id)
            sentence = f"The server that answered was lost (error {error_id}); load the chat again."
            await self._streams.end_followed(turn, ErrorChunk(error_text=sentence))
        self._missing = gone

    def _begin_to_stop(self, chat: ChatKey, fence: int) -> None:
        task = asyncio.create_task(self._stop(chat, fence))
        self._stopping[chat] = task
        task.add_done_callback(lambda _: self._stopping.pop(chat, None))

    async def _stop(self, chat: ChatKey, fence: int) -> None:
        held = self._turns.holders.of(chat)
        running = self._turns.running(chat)
        stopping: Coroutine[Any, Any, None] | None = None
        if held is not None:
            stopping = held.stop()
        elif running is not None and running.key.fence == fence:
            stopping = self._turns.stop(running)
        if stopping is not None:
            await stopping
        try:
            await self._leases.clear_stop_request(chat, fence=fence)
        except StoreError:
            logger.warning("nobody was told that a turn was stopped chat=%s", chat.chat)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(SECONDS)
            try:
                await self.look()
            except StoreError:
                # Requests tell that the database is away; the next look is soon.
                continue


def _is_held(turn: TurnKey, state: LeaseState) -> bool:
    return state.owner is not None and state.fence == turn.fence
