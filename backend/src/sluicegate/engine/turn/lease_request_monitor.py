"""Polls leases for what other processes want of turns here, and for turns that were lost (A2)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from sluicegate.engine.turn.remote_turns import READ_TTL
from sluicegate.errors import StoreError, new_error_id
from sluicegate.wire.chunks import ErrorChunk

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from sluicegate.core.chat_and_turn_keys import ChatKey, TurnKey
    from sluicegate.engine.turn.local_turns import LocalTurns
    from sluicegate.engine.turn.remote_turns import Replicas
    from sluicegate.stores.leases.base import Leases, LeaseState
    from sluicegate.stores.streams.base import StreamStore

_POLLS_PER_READER_NOTE: Final = 5

logger = logging.getLogger("sluicegate")


class LeaseMonitor:
    """Watches the leases of the chats that run here or are read here, with one statement.

    A stop that another process asked for is carried out, and a live chat is released to a newer
    socket there; a turn of another process whose lease has ended is ended for its readers here.
    """

    def __init__(
        self, turns: LocalTurns, replicas: Replicas, leases: Leases, streams: StreamStore
    ) -> None:
        self._turns = turns
        self._replicas = replicas
        self._leases = leases
        self._streams = streams
        self._missing: set[TurnKey] = set()
        self._polls = 0
        self._task: asyncio.Task[None] | None = None
        self._stopping: dict[ChatKey, asyncio.Task[None]] = {}
        self._releasing: dict[str, asyncio.Task[None]] = {}
        """By owner."""

    def start(self, interval: float) -> None:
        """Poll from now on, every ``interval`` seconds."""
        self._task = asyncio.create_task(self._run(interval))

    async def aclose(self) -> None:
        """Stop polling."""
        for task in [self._task, *self._stopping.values(), *self._releasing.values()]:
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    async def poll(self) -> None:
        """Poll once.

        Raises:
            StoreError: the database does not answer.
        """
        local, followed = self._turns.chats(), list(self._streams.followed())
        chats = {*local, *(turn.chat for turn in followed)}
        if not chats:
            self._missing.clear()
            return
        # A stop that ends while the leases are read may be read as requested still.
        stopping = set(self._stopping)
        states = await self._leases.states(chats)
        for chat in local:
            if states[chat].stop_requested and chat not in stopping:
                self._start_stop(chat, states[chat].fence)
            if states[chat].release_requested:
                self._start_release(chat, states[chat])
        await self._end_lost(followed, states)
        self._polls += 1
        if self._polls % _POLLS_PER_READER_NOTE == 0:
            for turn in self._replicas.read_here():
                await self._leases.record_reader(turn.chat, fence=turn.fence, ttl=READ_TTL)

    async def _end_lost(self, followed: list[TurnKey], states: dict[ChatKey, LeaseState]) -> None:
        """End streams without a writer; one that ended well has published so by the next poll."""
        gone = {turn for turn in followed if not _is_held(turn, states[turn.chat])}
        for turn in gone & self._missing:
            error_id = new_error_id()
            logger.error("turn lost chat=%s turn=%s error=%s", turn.chat.chat, turn.turn, error_id)
            sentence = f"The server that answered was lost (error {error_id}); load the chat again."
            await self._streams.end_followed(turn, ErrorChunk(error_text=sentence))
        self._missing = gone

    def _start_stop(self, chat: ChatKey, fence: int) -> None:
        task = asyncio.create_task(self._stop(chat, fence))
        self._stopping[chat] = task
        task.add_done_callback(lambda _: self._stopping.pop(chat, None))

    def _start_release(self, chat: ChatKey, state: LeaseState) -> None:
        owner = self._turns.chat_owners.of(chat)
        if owner is None or owner.owner != state.owner or owner.owner in self._releasing:
            return
        task = asyncio.create_task(owner.take_over())
        self._releasing[owner.owner] = task
        task.add_done_callback(lambda _: self._releasing.pop(state.owner or "", None))

    async def _stop(self, chat: ChatKey, fence: int) -> None:
        owner = self._turns.chat_owners.of(chat)
        running = self._turns.running(chat)
        stopping: Coroutine[Any, Any, None] | None = None
        if owner is not None:
            stopping = owner.stop()
        elif running is not None and running.key.fence == fence:
            stopping = self._turns.stop(running)
        if stopping is not None:
            await stopping
        try:
            await self._leases.clear_stop_request(chat, fence=fence)
        except StoreError:
            logger.warning("the stop of a turn was not acknowledged chat=%s", chat.chat)

    async def _run(self, interval: float) -> None:
        while True:
            await asyncio.sleep(interval)
            try:
                await self.poll()
            except StoreError:
                # Requests report that the database is away; the next poll is soon.
                continue


def _is_held(turn: TurnKey, state: LeaseState) -> bool:
    return state.owner is not None and state.fence == turn.fence
