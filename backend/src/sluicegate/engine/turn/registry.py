"""What happens to a turn that nobody reads any more (section 7)."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from typing import TYPE_CHECKING, Final, Literal

from sluicegate.core.history import for_reader, resumable
from sluicegate.engine.failures import describe
from sluicegate.engine.limits import TOO_MANY_TURNS, RateLimit
from sluicegate.engine.turn.leases import IN_USE, ChatLeases
from sluicegate.engine.turn.owner import ChatOwners
from sluicegate.engine.turn.reader import TurnReader
from sluicegate.engine.turn.replicas import TurnDescription
from sluicegate.engine.turn.runner import TOOK_TOO_LONG, End, RunningTurn, events_of
from sluicegate.errors import HeldElsewhere, StoreError, TooManyRequests, Unavailable
from sluicegate.wire.chunks import ErrorChunk, StartChunk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from google.adk.events.event import Event
    from google.adk.runners import Runner
    from google.genai import types

    from sluicegate.core.keys import ChatKey, TurnKey
    from sluicegate.core.signals import Signal
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.turn.close_open_calls import OpenCallCloser
    from sluicegate.engine.turn.owner import TurnCallbacks
    from sluicegate.engine.turn.session_log import SessionLog
    from sluicegate.stores.leases.base import Leases
    from sluicegate.stores.streams.base import StreamStore
    from sluicegate.wire.chunks import BaseChunk


class IdleTurnReaper:
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


logger = logging.getLogger("sluicegate")
RESTARTS = "The server is restarting; load the chat again in a moment and go on from there."
ENDED: dict[End, str] = {"failed": "the turn failed.", "stopped": "the turn was stopped."}
"""Why a call that was open did not run."""


class TurnRegistry:
    """Runs turns detached from the requests that asked for them."""

    def __init__(
        self,
        runner: Runner,
        streams: StreamStore,
        leases: Leases,
        log: SessionLog,
        closing: OpenCallCloser,
        options: EngineOptions,
    ) -> None:
        self._runner = runner
        self._streams = streams
        self.leases = ChatLeases(leases, options.lease_ttl)
        self._log = log
        self._closing = closing
        self._options = options
        self._running: dict[ChatKey, RunningTurn] = {}
        self.holders = ChatOwners()
        """Who holds chats for longer than a turn."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._rate = RateLimit(options.max_turns_per_minute, TOO_MANY_TURNS)
        elsewhere = self.leases.is_read_elsewhere if streams.is_shared else None
        self._unread = IdleTurnReaper(self.stop, elsewhere)
        self._is_ending = False

    def all(self) -> list[RunningTurn]:
        """The turns that run here."""
        return list(self._running.values())

    def begin_to_end(self) -> None:
        """Take no more turns, and fail those that run, each after the claimed calls it has."""
        self._is_ending = True
        for turn in self.all():
            if self.holders.of(turn.chat) is None:
                turn.fail(RESTARTS)

    def running(self, chat: ChatKey) -> RunningTurn | None:
        """The turn of that chat, if one runs here."""
        return self._running.get(chat)

    def chats(self) -> list[ChatKey]:
        """The chats whose leases are held here."""
        return [*self._running, *self.holders.chats()]

    def is_here(self, chat: ChatKey) -> bool:
        """Whether this process runs a turn of that chat, or holds it otherwise."""
        return chat in self._running or self.holders.of(chat) is not None

    def owners(self) -> set[str]:
        """Owners of claims that may still come to an end."""
        turns = {turn.turn_gate.owner for turn in self._running.values()}
        return turns | self.holders.owners()

    def admit(self, user: str) -> None:
        """Refuse a turn that would be one too many.

        Raises:
            Unavailable: this process runs as many turns as it may, or ends.
            TooManyRequests: this user does.
        """
        if self._is_ending:
            raise Unavailable(RESTARTS)
        if len(self._running) >= self._options.max_turns:
            raise Unavailable("The server is busy; try again in a moment.", retry_after=2)
        if sum(chat.user == user for chat in self._running) >= self._options.max_turns_per_user:
            raise TooManyRequests(
                "Too many of your chats are being answered; wait for one to end.", retry_after=2
            )
        self._rate.take(user)

    async def lease(self, chat: ChatKey, owner: str, *, after: int | None = None) -> int:
        """Take the chat's lease (A2).

        Raises:
            HeldElsewhere: somebody else writes to this chat, or has written since ``after``.
        """
        return await self.leases.take(chat, owner, after=after)

    async def release(self, chat: ChatKey, owner: str, fence: int) -> None:
        """Give the lease back."""
        await self.leases.give_back(chat, owner, fence)

    async def launch(
        self, turn: RunningTurn, message: types.Content | None, *, major: Literal[6, 7]
    ) -> TurnReader:
        """Start the turn and return its first reader; the lease goes over to the turn."""
        events = events_of(self._runner, turn, message, self._options.max_model_calls)
        return await self.lead(turn, events, None, major=major)

    async def lead(
        self,
        turn: RunningTurn,
        events: AsyncIterator[Event] | None,
        course: TurnCallbacks | None,
        *,
        major: Literal[6, 7],
    ) -> TurnReader:
        """Start the turn with its events and return its first reader.

        Without a course the turn has the chat's lease, and nothing else writes to its session.
        """
        description = TurnDescription.of(turn).text() if self._streams.is_shared else ""
        turn.writer = await self._streams.open(turn.key, description=description)
        if turn.writer is None:
            raise HeldElsewhere(IN_USE)
        self._running[turn.chat] = turn
        reader = await self.reader(turn, major=major)
        task = asyncio.create_task(self._lead(turn, events, course))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._is_ending and course is None:
            turn.fail(RESTARTS)
        return reader

    async def reader(
        self, turn: RunningTurn, *, major: Literal[6, 7], head: Sequence[BaseChunk] = ()
    ) -> TurnReader:
        """A reader of a running turn from its beginning, after ``head``."""
        found = await self._streams.find(turn.chat)
        live = None if found is None or found.key != turn.key else found.read()
        turn.readers += 1
        # By its name: a reader that stays does not keep the whole of an ended turn.
        left = functools.partial(self._left, turn.key)
        return TurnReader(
            head, live, major=major, left=left, pace=turn.turn_gate.fast_lane.backpressure
        )

    async def whole(self, turn: RunningTurn, major: Literal[6, 7]) -> TurnReader | None:
        """A reader of all turns of the exchange; None for a client that cannot take them."""
        before = turn.before
        if not takes(turn, major) or (before is not None and not resumable(before, major=major)):
            return None
        start = StartChunk(message_id=turn.stamp.message)
        prefix = for_reader(turn.prefix, major=major)
        return await self.reader(turn, major=major, head=[start, *prefix])

    async def stop(self, turn: RunningTurn) -> None:
        """Stop a turn: at once, or after the claimed call that runs has ended (section 7)."""
        turn.turn_gate.stopping = True
        turn.turn_gate.claims.call_when_idle(turn.abort.set)
        await turn.done.wait()

    async def close(self) -> None:
        """Stop every turn and let go of every chat; claimed calls are waited for."""
        await self.holders.close()
        await asyncio.gather(*(self.stop(turn) for turn in self.all()))
        tasks = self._tasks | self._unread.tasks
        if tasks:
            await asyncio.wait(tasks)
        await self.leases.aclose()

    def _left(self, key: TurnKey, *, aborted: bool) -> None:
        turn = self._running.get(key.chat)
        if turn is None or turn.key != key:
            return
        turn.readers -= 1
        if turn.readers <= 0 and not turn.done.is_set():
            options = self._options
            self._unread.linger(turn, options.abort_grace if aborted else options.linger)

    async def _lead(
        self, turn: RunningTurn, events: AsyncIterator[Event] | None, course: TurnCallbacks | None
    ) -> None:
        started = time.monotonic()
        loop = asyncio.get_running_loop()
        watchdog = loop.call_later(self._options.turn_timeout, turn.fail, TOOK_TOO_LONG)
        renewal = asyncio.create_task(self._renew(turn)) if course is None else None
        seal = self._seal if course is None else course.seal
        end: End = "failed"
        try:
            end = await turn.run(events)
            await turn.finish(end, await seal(turn, end))
        except Exception as error:  # noqa: BLE001 - whatever happens, readers get an end (T10)
            await self._end_broken(turn, error)
        finally:
            watchdog.cancel()
            await self._let_go(turn, renewal)
            logger.info(
                "turn %s chat=%s turn=%s user=%s error=%s seconds=%.3f",
                end,
                turn.chat.chat,
                turn.stamp.turn,
                turn.chat.user,
                turn.error_id or "-",
                time.monotonic() - started,
            )
            if course is not None:
                course.left(turn)

    async def _let_go(self, turn: RunningTurn, renewal: asyncio.Task[None] | None) -> None:
        if turn.lingering is not None:
            turn.lingering.cancel()
        await turn.rest()
        if turn.writer is not None:
            await turn.writer.publish_end()
        if renewal is not None:
            renewal.cancel()
            await self.leases.give_back(turn.chat, turn.turn_gate.owner, turn.key.fence)
        del self._running[turn.chat]
        # Who has read the response to its end may ask for the next turn.
        if turn.writer is not None:
            await turn.writer.close()
        turn.done.set()

    async def _end_broken(self, turn: RunningTurn, error: Exception) -> None:
        error_id = turn.new_error_id()
        turn.error_id = error_id
        logger.error(
            "turn broken chat=%s turn=%s error=%s %s",
            turn.chat.chat,
            turn.stamp.turn,
            error_id,
            describe(error),
        )
        sentence = f"The agent could not finish its answer (error {error_id})."
        try:
            await turn.write(ErrorChunk(error_text=sentence))
        except StoreError:
            logger.warning("the end of a turn was not written chat=%s", turn.chat.chat)

    async def _seal(self, turn: RunningTurn, end: End) -> Sequence[Signal]:
        """Write down how the turn ended, unless another process has had the chat since."""
        turn.turn_gate.claims.interrupt_all()
        if not turn.is_lost:
            return await self._write_down(turn, end)
        try:
            async with self.leases.holding(turn.chat, after=turn.key.fence):
                return await self._write_down(turn, end)
        except HeldElsewhere:
            return ()

    async def _write_down(self, turn: RunningTurn, end: End) -> Sequence[Signal]:
        """Store what ADK does not: the text that was shown, the cards that are closed."""
        if turn.turn_gate.claims.interrupted:
            others = self.owners() - {turn.turn_gate.owner}
            await turn.ledger.mark_unknown(turn.chat, owners_alive=others)
        if end == "finished" or turn.invocation is None:
            return ()
        await self._log.append_unfinished(
            turn.chat, turn.translator.unfinished(), turn.invocation, turn.stamp
        )
        return await self._closing.close(
            turn.chat, turn.gate, turn.invocation, turn.stamp, reason=ENDED[end]
        )

    async def _renew(self, turn: RunningTurn) -> None:
        await self.leases.keep(turn.chat, turn.turn_gate.owner, turn.key.fence)
        turn.is_lost = True
        turn.fail("The server lost this chat to another one; load the chat again.")


def takes(turn: RunningTurn, major: Literal[6, 7]) -> bool:
    """Whether chunks of a running turn fit a client: a 6 client cannot take text back (D4)."""
    return major == 7 or not turn.is_previewed


CUT_SECONDS: Final = 3.0
"""How long turns may take to end whose claimed calls are cut."""


async def drain(turns: TurnRegistry, *, within: float, hurried: asyncio.Event) -> None:
    """Take no more turns and end those that run; what waits for a person goes on waiting.

    A turn in which a claimed call runs ends after that call, whose outcome is stored. After
    ``within`` seconds, or once ``hurried`` is set, such calls are cut, and nobody knows what they
    did.
    """
    turns.begin_to_end()
    ended = asyncio.create_task(_ended(turns))
    hurry = asyncio.create_task(hurried.wait())
    await asyncio.wait([ended, hurry], timeout=within, return_when=asyncio.FIRST_COMPLETED)
    hurry.cancel()
    if ended.done():
        return
    for turn in turns.all():
        logger.warning("turn cut chat=%s turn=%s", turn.chat.chat, turn.stamp.turn)
        turn.cut()
    await asyncio.wait([ended], timeout=CUT_SECONDS)
    ended.cancel()


async def _ended(turns: TurnRegistry) -> None:
    await turns.holders.close()
    while running := turns.all():
        await asyncio.gather(*(turn.done.wait() for turn in running))
