"""The lease of a chat that is open live: kept, lent to a turn of another kind, given back (A2)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from sluicegate.core.plan import ContinueExchange, still_open
from sluicegate.engine.continue_turn import AnswerTurn
from sluicegate.engine.failures import describe
from sluicegate.engine.files.result_files import ResultFiles
from sluicegate.engine.guard.claims import RunningClaims
from sluicegate.engine.start_turn import StartTurn, caps_of, report_to_log, stamp_of
from sluicegate.errors import HeldElsewhere, RequestError, StoreError, Unavailable, new_error_id
from sluicegate.live.approvals import INTERVAL, LiveApprovalGuard, LiveDesk, PendingApprovals
from sluicegate.live.connection import Listening
from sluicegate.live.continuation import LiveContinuation
from sluicegate.live.exchange import LiveExchange, LiveTurn
from sluicegate.live.exchange_queue import PATIENCE, ExchangeQueue
from sluicegate.live.outbox import Ended
from sluicegate.live.router import EventPublisher, EventRouter
from sluicegate.live.run import LiveRun
from sluicegate.live.turn_taking import TurnTaking
from sluicegate.wire.decisions import PostedAssistantMessage
from sluicegate.wire.live_frames import GoAwayFrame, ReadyFrame, TurnFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluicegate.core.plan import ChatLog, NewExchange
    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.engine.turn.runner import RunningTurn
    from sluicegate.live.connection import LiveConnection
    from sluicegate.live.context import LiveContext
    from sluicegate.wire.chunks import BaseChunk

HELD_CLOSE_CODE: Final = 4409
"""Close code of the socket: somebody else has the chat."""


class LiveLease:
    """Renews the lease; says so when it is lost."""

    def __init__(self, hold: LiveContext) -> None:
        """Take a chat whose lease is held."""
        self._hold = hold
        self._is_back = asyncio.Event()
        self._is_back.set()
        self._renewing = asyncio.create_task(self._renew())

    @property
    def is_lent(self) -> bool:
        """Whether somebody else may write to the chat."""
        return not self._is_back.is_set()

    async def lend(self) -> None:
        """Let somebody else write to the chat."""
        self._is_back.clear()
        hold = self._hold
        await hold.parts.turns.release(hold.chat, hold.owner, hold.fence)

    async def take_back(self) -> bool:
        """Have the lease again; False if somebody else has it, which ends the chat here."""
        hold = self._hold
        try:
            hold.fence = await hold.parts.turns.lease(hold.chat, hold.owner)
        except (HeldElsewhere, StoreError):
            self._lost()
            return False
        self._is_back.set()
        return True

    async def give_back(self) -> None:
        """Nobody here holds the chat any more."""
        self._renewing.cancel()
        if not self.is_lent:
            await self.lend()

    async def _renew(self) -> None:
        hold = self._hold
        while True:
            fence = hold.fence
            await hold.parts.turns.leases.keep(hold.chat, hold.owner, fence)
            if self.is_lent:
                await self._is_back.wait()
            elif hold.fence == fence:
                self._lost()
                return

    def _lost(self) -> None:
        self._hold.out.frame(Ended(HeldElsewhere(), HELD_CLOSE_CODE))


logger = logging.getLogger("sluicegate")

FAREWELL: Final = 1.0
"""Seconds in which a run ends by itself when the connection to the model is closed."""

FAILED_CLOSE_CODE: Final = 1011
ENDED_CLOSE_CODE: Final = 1012
"""Close codes of the socket: the run failed; the model has ended it."""


class LiveRunSession:
    """One run: what hears it, sorts it, tells it, asks in it."""

    def __init__(
        self,
        hold: LiveContext,
        *,
        release: Callable[[], ReleasePolicy],
        marked_by_client: bool,
    ) -> None:
        """Prepare it. ``release`` is that of what is spoken."""
        self._hold = hold
        self._stopping = False
        self.asks = PendingApprovals(hold, self._look)
        self.line = ExchangeQueue(hold, release=release, stepped=self.asks.wake)
        self.floor = TurnTaking(self.line.begin, self.line.first)
        self.line.floor = self.floor
        parts = hold.parts
        self._sorter = EventRouter(self.floor, parts.survey, parts.options.page_tools)
        self._teller = EventPublisher(hold, self._sorter, self.floor, self.line)
        self.going_on = LiveContinuation(hold, self.line, self._sorter, self.asks)
        self.line.goes_on = self.going_on.unasked
        self.line.flush = self._teller.flush
        self._desk = LiveDesk(
            self._sorter, self.line, self.asks, Listening(self._ready, self._going_away)
        )
        self.run = LiveRun(
            hold.parts.runner, hold.chat, self._gate(), marked_by_client=marked_by_client
        )
        self._desk.run = hold.run = self.run
        self._driving: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin the run; returns once it can be spoken to, or has failed."""
        self._driving = asyncio.create_task(self._drive())
        self._watching = asyncio.create_task(self.asks.watch())
        begun = asyncio.create_task(self._desk.has_begun.wait())
        await asyncio.wait([begun, self._driving], return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()

    async def end(self) -> None:
        """End the run: what waits goes on waiting in the log, claimed calls come to their end."""
        self.run.gate.stopping = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._hold.parts.options.tool_timeout + PATIENCE):
                await self.run.await_claimed()
        self.line.is_closed = True
        self.run.deafen()
        head = self.line.head
        turn = self.line.running(head) if head is not None else None
        if head is not None and turn is not None:
            await self._wind_up(head, turn)
        elif self.floor.speaking is not None and not self.run.is_over:
            await self._hush(self.floor.speaking)
        self._stopping = True
        self._teller.close()
        self.run.close()
        if self._driving is not None:
            await asyncio.wait([self._driving], timeout=FAREWELL)
        for task in (self._watching, self._driving):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    async def _wind_up(self, exchange: LiveExchange, turn: RunningTurn) -> None:
        """End a turn that is told: as one that waits, if one of its calls does."""
        if "waits" in exchange.calls.values() and not self.run.is_over:
            at_work = [name for name, phase in exchange.calls.items() if phase == "runs"]
            await self.run.drop_calls(at_work)
            for call_id in at_work:
                await self.run.give_up(call_id)
        else:
            turn.abort.set()
        await turn.done.wait()

    async def _hush(self, exchange: LiveExchange) -> None:
        """Keep what was said of an answer that nobody has been told yet."""
        exchange.is_ending = True
        self.run.cut()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await exchange.current.feed.ended.wait()

    async def clear(self) -> None:
        """Tell what is left, and end it; whoever does so has the lock."""
        while (head := self.line.head) is not None:
            await self.line.step()
            turn = self.line.running(head)
            if turn is not None:
                turn.abort.set()
                await turn.done.wait()
            elif head.phase == "waits":
                await self.going_on.close(head)

    def interrupt(self) -> None:
        """End what the model says; calls at work go on."""
        if self.run.is_over or not self.floor.is_taken:
            return
        first = self.line.first()
        if self.floor.speaking is None and first is not None and not first.calls:
            first.is_ending = True
        self._hold.out.cut()
        self.run.cut()

    def _gate(self) -> LiveApprovalGuard:
        hold = self._hold
        parts = hold.parts
        return LiveApprovalGuard(
            chat=hold.chat,
            owner=hold.owner,
            ledger=parts.ledger,
            rows={},
            caps=caps_of(parts.options),
            ttl=hold.approval_ttl,
            files=ResultFiles(parts.files, hold.chat, parts.options.result_limits),
            models=parts.models,
            policy=parts.policy,
            new_error_id=new_error_id,
            report=report_to_log(hold.chat, hold.owner),
            claims=RunningClaims(parts.options.tool_timeout),
            desk=self._desk,
            may_gate=parts.survey.may_gate,
        )

    async def _drive(self) -> None:
        await self.run.drive(self._teller.take)
        error, error_id = self.run.error, new_error_id()
        if error is not None:
            logger.error(
                "live run failed chat=%s error=%s %s",
                self._hold.chat.chat,
                error_id,
                describe(self.run.gate.model_error or error),
            )
        await self._fail(error)
        if self._stopping:
            return
        if error is None:
            told = Unavailable("The model has ended the conversation; connect again.")
            self._hold.out.frame(Ended(told, ENDED_CLOSE_CODE))
        else:
            told = Unavailable(f"The live model failed (error {error_id}); connect again.")
            self._hold.out.frame(Ended(told, FAILED_CLOSE_CODE))

    async def _fail(self, error: Exception | None) -> None:
        """End the turn that is told, and let it tell so itself (T10)."""
        head = self.line.head
        turn = self.line.running(head) if head is not None else None
        if head is None or turn is None:
            return
        turn.turn_gate.model_error = self.run.gate.model_error
        if error is None:
            head.current.feed.end(stopped=True)
        else:
            head.current.feed.fail(error)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await turn.done.wait()

    async def _look(self) -> None:
        """Somebody may have decided elsewhere, or nobody in time."""
        # Whoever decides here goes on by their own request.
        async with self._hold.alone(), self._hold.lock:
            head = self.line.head
            if head is None or head.phase != "waits" or head.is_foreign:
                return
            if self.line.is_closed or not self.asks.are_decided(head):
                return
            head.is_announced = False
            reader = await self.going_on.decided(head)
        if reader is not None:
            await reader.aclose()
            self.line.flush(head)
            self.line.announce(head)

    def _ready(self, connection: LiveConnection, before: LiveConnection | None) -> None:
        self.floor.one_turn = connection.one_turn
        if before is not None and self.floor.anew():
            connection.end_what_was_said(before)
        self._hold.out.frame(ReadyFrame())

    def _going_away(self) -> None:
        self._hold.out.frame(GoAwayFrame())


SPEAKING: Final = 10.0
"""Seconds for which an answer to what waits since before lets the model end what it says."""


class LiveRunSupervisor:
    """Begins and ends them; whoever calls a method that says so has the lock of the chat."""

    def __init__(
        self, hold: LiveContext, *, release: Callable[[], ReleasePolicy], marked_by_client: bool
    ) -> None:
        """Take a chat whose lease is held; ``release`` is that of what is spoken."""
        self._hold = hold
        self._release = release
        self._marked_by_client = marked_by_client
        self._lease = LiveLease(hold)
        self._is_closing = False
        self._untold: list[LiveExchange] = []
        self._following: asyncio.Task[None] | None = None
        self.now = self._new()

    async def begin(self) -> None:
        """Begin a run; what waits since before goes on waiting, and speech comes after it."""
        log = await self._hold.parts.chat_log(self._hold.chat)
        self._tell_untold(log)
        last = log.last()
        if last is not None and last.is_unfinished:
            turn = LiveTurn(stamp_of(last.exchange))
            foreign = LiveExchange(
                turn, last.exchange.release, spoken=False, phase="waits", is_foreign=True
            )
            self.now.line.exchanges.append(foreign)
            asked = [state.ask for state in last.open_calls if state.ask is not None]
            self._follow({ask.approval_id for ask in asked})
        await self.now.start()

    async def close_before(self, plan: NewExchange | None) -> Sequence[BaseChunk]:
        """Close what waits since before; returns what becomes of its cards. Needs the lock."""
        parts, chat = self._hold.parts, self._hold.chat
        closes = plan.closes if plan is not None else None
        if closes is None:
            closes = (await parts.chat_log(chat)).last()
        if closes is None or not closes.is_unfinished:
            return ()
        await self._end()
        cards = await StartTurn(parts).close(chat, closes)
        self.now = self._new()
        await self.begin()
        return cards

    async def answer_before(
        self,
        log: ChatLog,
        plan: ContinueExchange,
        release: ReleasePolicy,
        client: Client,
        *,
        own: bool,
    ) -> TurnReader | None:
        """Let an exchange go on that waits since before, on the lent session. Needs the lock.

        Returns None when nothing waits for that. ``own``: who reads the turn is at the socket.

        Raises:
            RequestError: the decisions stay in the ledger.
        """
        if not plan.exchange.is_unfinished:
            return None
        parts, hold = self._hold.parts, self._hold
        await self._until_said()
        await self._end()
        reader: TurnReader | None = None
        try:
            await self._lease.lend()
            reader = await AnswerTurn(parts).start(log, plan, release, client)
        finally:
            running = parts.turns.running(hold.chat)
            if reader is None or running is None:
                await self._take_back()
            else:
                hold.soon(self._take_back_after(running))
        if reader is not None and not own:
            exchange = plan.exchange.exchange
            hold.out.frame(TurnFrame(exchange.message_id, exchange.user_message_id))
        return reader

    async def close(self) -> None:
        """End the run and give the lease back."""
        hold = self._hold
        self._is_closing = True
        async with hold.lock:
            if not self._lease.is_lent:
                await self._end()
        await hold.idle()
        if hold.parts.tape is not None:
            hold.parts.tape.rest(hold.chat)
        hold.parts.turns.holders.remove(hold.chat)
        await self._lease.give_back()

    def _new(self) -> LiveRunSession:
        return LiveRunSession(
            self._hold, release=self._release, marked_by_client=self._marked_by_client
        )

    async def _end(self) -> None:
        self._follow(())
        line = self.now.line
        self._untold += [e for e in line.exchanges if not (e.is_foreign or e.is_announced)]
        await self.now.end()

    async def _until_said(self) -> None:
        """Let the model end what it says and does; what it asks is asked again afterwards."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SPEAKING):
                while (busy := self.now.line.busy()) is not None and not self.now.run.is_over:
                    await busy.current.feed.ended.wait()

    def _tell_untold(self, log: ChatLog) -> None:
        """Tell what was said while an exchange of before waited, once it is part of the chat."""
        shown = {exchange.message_id for exchange in log.exchanges}
        last = log.last()
        for exchange in [each for each in self._untold if each.message in shown]:
            self._untold.remove(exchange)
            is_open = (
                last is not None
                and last.is_unfinished
                and last.exchange.message_id == exchange.message
            )
            for frame in exchange.frames:
                if frame.role == "user" or not is_open:
                    self._hold.out.frame(frame)
            self._hold.out.frame(TurnFrame(exchange.message, exchange.current.stamp.user_message))

    def _follow(self, approvals: set[str] | tuple[()]) -> None:
        """Look after these approvals from now on, and after no others."""
        if self._following is not None and self._following is not asyncio.current_task():
            self._following.cancel()
        self._following = None
        if approvals:
            self._following = self._hold.soon(self._watch(frozenset(approvals)))

    async def _watch(self, approvals: frozenset[str]) -> None:
        """Go on by itself when other processes have decided, or nobody has in time (A2, A5)."""
        ledger, chat = self._hold.parts.ledger, self._hold.chat
        while True:
            await asyncio.sleep(INTERVAL)
            # A database that does not answer now is asked again.
            with contextlib.suppress(StoreError):
                await ledger.expire(chat)
                rows = [row for row in await ledger.rows(chat) if row.approval_id in approvals]
                if len(rows) < len(approvals) or any(row.state == "requested" for row in rows):
                    continue
                await self._go_on_unasked()
                return

    async def _go_on_unasked(self) -> None:
        hold, parts = self._hold, self._hold.parts
        # Whoever decides here goes on by their own request.
        async with hold.alone(), hold.lock:
            if self._is_closing or self._following is not asyncio.current_task():
                return
            place = await parts.elsewhere.place(hold.chat)
            log = await parts.chat_log(hold.chat, place)
            last = log.last()
            if last is None or not last.is_unfinished:
                return
            name = last.exchange.message_id
            plan = ContinueExchange(last, PostedAssistantMessage(name, (), (), ()))
            if still_open(plan):
                return
            try:
                release = last.exchange.release
                reader = await self.answer_before(log, plan, release, hold.client, own=False)
            except RequestError as error:
                # The same answer again makes it go on.
                logger.warning("a decided call waits on chat=%s %s", hold.chat.chat, error.code)
                return
        if reader is not None:
            await reader.detach()

    async def _take_back_after(self, running: RunningTurn) -> None:
        await running.done.wait()
        async with self._hold.lock:
            await self._take_back()

    async def _take_back(self) -> None:
        """Go on with the chat that was lent."""
        if not self._is_closing and await self._lease.take_back():
            self.now = self._new()
            await self.begin()
