"""The turns that run in this process: launched, read and stopped (section 7)."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from typing import TYPE_CHECKING, Final, Literal

from sluicegate.core.history import for_reader, resumable
from sluicegate.core.turn_stamp import ENDED, FAILED, STOPPED
from sluicegate.engine.describe_exceptions import describe
from sluicegate.engine.rate_limits import TOO_MANY_TURNS, RateLimit
from sluicegate.engine.telemetry import EngineState, refused_by
from sluicegate.engine.turn.chat_leases import IN_USE
from sluicegate.engine.turn.live_chat_registry import ChatOwners
from sluicegate.engine.turn.reader import TurnReader
from sluicegate.engine.turn.remote_turns import TurnDescription
from sluicegate.engine.turn.running_turn import TOOK_TOO_LONG, End, RunningTurn, can_read
from sluicegate.errors import (
    HeldByAnotherOwner,
    StoreError,
    TooManyRequests,
    Unavailable,
    new_error_id,
)
from sluicegate.wire.chunks import ErrorChunk, StartChunk
from sluicegate.wire.user_events import chat_status, message_stored

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from google.adk.events.event import Event

    from sluicegate.core.chat_and_turn_keys import ChatKey, TurnKey
    from sluicegate.core.signals import Signal
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.turn.chat_leases import ChatLeases
    from sluicegate.engine.turn.close_undecided_calls import OpenCallCloser
    from sluicegate.engine.turn.live_chat_registry import TurnCallbacks
    from sluicegate.engine.turn.session_log import SessionLog
    from sluicegate.stores.streams.base import StreamStore
    from sluicegate.stores.streams.user_events import UserEvents
    from sluicegate.wire.chunks import BaseChunk
    from sluicegate.wire.user_events import ChatStatus

logger = logging.getLogger("sluicegate")

RESTARTS: Final = "The server is restarting; load the chat again in a moment and go on from there."
WHY_NOT_RUN: Final[dict[End, str]] = {
    "failed": "the turn failed.",
    "stopped": "the turn was stopped.",
}
"""Why a call that was open did not run."""

_NOTES: Final[dict[End, str]] = {"finished": ENDED, "failed": FAILED, "stopped": STOPPED}


class LocalTurns:
    """Runs turns detached from the requests that asked for them."""

    def __init__(
        self,
        streams: StreamStore,
        leases: ChatLeases,
        log: SessionLog,
        closer: OpenCallCloser,
        options: EngineOptions,
        events: UserEvents,
    ) -> None:
        self._events = events
        self._streams = streams
        self._leases = leases
        self._log = log
        self._closer = closer
        self._options = options
        self._running: dict[ChatKey, RunningTurn] = {}
        self.chat_owners = ChatOwners()
        """The chats that are open live."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.rate = RateLimit(
            options.max_turns_per_minute, TOO_MANY_TURNS, name="max_turns_per_minute"
        )
        is_read_remotely = leases.is_read_remotely if streams.is_shared else None
        self._unread = _UnreadTurnReaper(self.stop, is_read_remotely)
        self._is_draining = False

    def running(self, chat: ChatKey) -> RunningTurn | None:
        """The turn of that chat, if one runs here."""
        return self._running.get(chat)

    def running_turns(self) -> list[RunningTurn]:
        """All turns that run here."""
        return list(self._running.values())

    def chats(self) -> list[ChatKey]:
        """The chats whose leases are held here."""
        return [*self._running, *self.chat_owners.chats()]

    def is_local(self, chat: ChatKey) -> bool:
        """Whether this process holds the chat's lease, for a turn or a live chat."""
        return chat in self._running or self.chat_owners.of(chat) is not None

    def state(self) -> EngineState:
        """What the turns have now, for metrics."""
        turns = self.running_turns()
        return EngineState(
            turns=len(turns),
            backlog=sum(turn.backpressure.backlog for turn in turns),
            held=sum(turn.buffer.held_bytes for turn in turns),
        )

    def claim_owners(self) -> set[str]:
        """Owners of claims that may still come to an end."""
        turns = {turn.guard.owner for turn in self._running.values()}
        return turns | self.chat_owners.claim_owners()

    def admit(self, user: str) -> None:
        """Refuse a turn that would be one too many.

        Raises:
            Unavailable: this process runs as many turns as it may, or drains.
            TooManyRequests: this user does.
        """
        if self._is_draining:
            raise Unavailable(RESTARTS)
        if len(self._running) >= self._options.max_turns:
            refused_by("max_turns")
            raise Unavailable("The server is busy; try again in a moment.", retry_after=2)
        if sum(chat.user == user for chat in self._running) >= self._options.max_turns_per_user:
            refused_by("max_turns_per_user")
            raise TooManyRequests(
                "Too many of your chats are being answered; wait for one to end.", retry_after=2
            )
        self.rate.take(user)

    def publish_status(self, chat: ChatKey, status: ChatStatus) -> None:
        """Publish the status of a chat to the events of its user."""
        self._events.publish(chat.user, chat_status(chat.chat, status))

    async def launch(
        self,
        turn: RunningTurn,
        events: AsyncIterator[Event] | None,
        callbacks: TurnCallbacks | None = None,
        *,
        major: Literal[6, 7],
        head: Sequence[BaseChunk] = (),
    ) -> TurnReader:
        """Start the turn with the events of its run and return its first reader, after ``head``.

        The chat's lease is handed to the turn, which releases it. With ``callbacks`` the lease
        and the session belong to the live chat that gave them.
        """
        description = TurnDescription.of(turn).to_json() if self._streams.is_shared else ""
        turn.writer = await self._streams.open(turn.key, description=description)
        if turn.writer is None:
            raise HeldByAnotherOwner(IN_USE)
        self._running[turn.chat] = turn
        self.publish_status(turn.chat, "running")
        reader = await self.reader(turn, major=major, head=head)
        task = asyncio.create_task(self._run(turn, events, callbacks))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._is_draining and callbacks is None:
            turn.fail(RESTARTS)
        return reader

    async def reader(
        self, turn: RunningTurn, *, major: Literal[6, 7], head: Sequence[BaseChunk] = ()
    ) -> TurnReader:
        """A reader of a running turn from its beginning, after ``head``."""
        found = await self._streams.find(turn.chat)
        stream = None if found is None or found.key != turn.key else found.read()
        turn.readers += 1
        # By its key: a reader that stays open does not keep an ended turn alive.
        on_close = functools.partial(self._reader_closed, turn.key)
        return TurnReader(
            head,
            stream,
            major=major,
            on_close=on_close,
            backpressure=turn.backpressure,
        )

    async def message_reader(self, turn: RunningTurn, major: Literal[6, 7]) -> TurnReader | None:
        """A reader of all turns of the exchange; None for a client that cannot read them."""
        before = turn.before
        if not can_read(turn, major) or (before is not None and not resumable(before, major=major)):
            return None
        start = StartChunk(message_id=turn.stamp.message)
        prefix = for_reader(turn.prefix, major=major)
        return await self.reader(turn, major=major, head=[start, *prefix])

    async def stop(self, turn: RunningTurn) -> None:
        """Stop a turn: at once, or after the claimed call that runs has ended (section 7)."""
        turn.guard.stopping = True
        turn.guard.claims.call_when_idle(turn.abort.set)
        await turn.done.wait()

    def cut(self, chat: ChatKey) -> None:
        """End the running turn of a chat at once: a claimed call runs longer than it may."""
        turn = self._running.get(chat)
        if turn is not None:
            turn.cut()

    def begin_drain(self) -> None:
        """Refuse new turns, and fail those that run, each after the claimed calls it has."""
        self._is_draining = True
        for turn in self.running_turns():
            if self.chat_owners.of(turn.chat) is None:
                turn.fail(RESTARTS)

    async def close(self) -> None:
        """Stop every turn and close every live chat; claimed calls are waited for."""
        await self.chat_owners.close()
        await asyncio.gather(*(self.stop(turn) for turn in self.running_turns()))
        tasks = self._tasks | self._unread.tasks
        if tasks:
            await asyncio.wait(tasks)
        await self._leases.aclose()

    def _reader_closed(self, key: TurnKey, *, aborted: bool) -> None:
        turn = self._running.get(key.chat)
        if turn is None or turn.key != key:
            return
        turn.readers -= 1
        if turn.readers <= 0 and not turn.done.is_set():
            options = self._options
            self._unread.watch(turn, options.abort_grace if aborted else options.linger)

    async def _run(
        self,
        turn: RunningTurn,
        events: AsyncIterator[Event] | None,
        callbacks: TurnCallbacks | None,
    ) -> None:
        with turn.telemetry.span(turn.key, turn.stamp.message):
            await self._run_to_end(turn, events, callbacks)

    async def _run_to_end(
        self,
        turn: RunningTurn,
        events: AsyncIterator[Event] | None,
        callbacks: TurnCallbacks | None,
    ) -> None:
        started = time.monotonic()
        loop = asyncio.get_running_loop()
        watchdog = loop.call_later(self._options.turn_timeout, turn.fail, TOOK_TOO_LONG)
        renewal = asyncio.create_task(self._renew(turn)) if callbacks is None else None
        close_open_calls = (
            self._close_open_calls if callbacks is None else callbacks.close_open_calls
        )
        end: End = "failed"
        try:
            end = await turn.run(events)
            await turn.finish(end, await close_open_calls(turn, end))
        except Exception as error:  # noqa: BLE001 - readers get an end in any case (T10)
            await self._publish_failure(turn, error)
        finally:
            watchdog.cancel()
            await self._release(turn, renewal)
            is_waiting = end == "finished" and turn.buffer.is_waiting
            turn.telemetry.end("waiting" if is_waiting else end, turn.error_id)
            logger.info(
                "turn %s chat=%s turn=%s user=%s error=%s seconds=%.3f",
                end,
                turn.chat.chat,
                turn.stamp.turn,
                turn.chat.user,
                turn.error_id or "-",
                time.monotonic() - started,
            )
            if callbacks is not None:
                callbacks.turn_ended(turn)

    async def _release(self, turn: RunningTurn, renewal: asyncio.Task[None] | None) -> None:
        if turn.idle_timer is not None:
            turn.idle_timer.cancel()
        await turn.flush_recorder()
        if turn.writer is not None:
            await turn.writer.publish_end()
        if renewal is not None:
            renewal.cancel()
            await self._leases.release(turn.chat, turn.guard.owner, turn.key.fence)
        del self._running[turn.chat]
        # A client that has read the response to its end may start the next turn.
        if turn.writer is not None:
            await turn.writer.close()
        turn.done.set()
        # A client that loads the message now finds its end, and the chat free.
        chat = turn.chat
        self._events.publish(chat.user, message_stored(chat.chat, turn.stamp.message))
        self.publish_status(chat, "waiting" if turn.buffer.is_waiting else "ready")

    async def _publish_failure(self, turn: RunningTurn, error: Exception) -> None:
        error_id = new_error_id()
        turn.error_id = error_id
        logger.error(
            "turn broken chat=%s turn=%s error=%s %s",
            turn.chat.chat,
            turn.stamp.turn,
            error_id,
            describe(error, with_text=True),
        )
        sentence = f"The agent could not finish its answer (error {error_id})."
        try:
            await turn.publish_unchecked(ErrorChunk(error_text=sentence))
        except StoreError:
            logger.warning("the end of a turn was not published chat=%s", turn.chat.chat)

    async def _close_open_calls(self, turn: RunningTurn, end: End) -> Sequence[Signal]:
        """Store the end of the turn, unless another process has owned the chat since."""
        turn.guard.claims.interrupt_all()
        if end == "finished" and turn.has_stored_end and not turn.guard.claims.interrupted:
            return ()
        # A process that was paused has perhaps not noticed that its lease has ended.
        if await self._leases.renew(turn.chat, turn.guard.owner, turn.key.fence):
            return await self._store_end(turn, end)
        try:
            async with self._leases.acquired(turn.chat, after=turn.key.fence):
                turn.guard.is_lost = False
                return await self._store_end(turn, end)
        except HeldByAnotherOwner:
            return ()

    async def _store_end(self, turn: RunningTurn, end: End) -> Sequence[Signal]:
        """Store what ADK does not: the text that was shown, the calls that are closed."""
        if turn.guard.claims.interrupted:
            others = self.claim_owners() - {turn.guard.owner}
            await turn.ledger.mark_unknown(turn.chat, owners_alive=others)
        if end == "finished":
            if not turn.has_stored_end:
                await self._log.append_end(turn.chat, turn.stamp, _NOTES[end])
            return ()
        signals: Sequence[Signal] = ()
        if turn.invocation is not None:
            await self._log.append_unfinished(
                turn.chat, turn.translator.unfinished(), turn.invocation, turn.stamp
            )
            signals = await self._closer.close(
                turn.chat, turn.buffer, turn.invocation, turn.stamp, reason=WHY_NOT_RUN[end]
            )
        await self._log.append_end(turn.chat, turn.stamp, _NOTES[end])
        return signals

    async def _renew(self, turn: RunningTurn) -> None:
        await self._leases.keep_renewed(turn.chat, turn.guard.owner, turn.key.fence)
        turn.guard.is_lost = True
        turn.fail("The server lost this chat to another one; load the chat again.")


class _UnreadTurnReaper:
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
