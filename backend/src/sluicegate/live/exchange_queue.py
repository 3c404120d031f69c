"""The exchanges of a live chat, one behind the other, and their turns on the wire.

One exchange is told at a time: those that begin while it waits or runs are kept behind it. A turn
here is a turn like any other (`RunningTurn`): the same translator, gate, grammar and store.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sluicegate.core.keys import TurnKey
from sluicegate.core.release.base import NOT_FINISHED
from sluicegate.core.signals import Settled
from sluicegate.engine.failures import describe
from sluicegate.engine.start_turn import TurnSetup, prepare_turn
from sluicegate.engine.turn.close_open_calls import OpenCallCloser
from sluicegate.engine.turn.registry import ENDED
from sluicegate.engine.turn.session_log import Closed
from sluicegate.live.exchange import LiveExchange, LiveTurn
from sluicegate.wire.live_frames import TurnFrame

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Literal

    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.core.signals import Signal
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.engine.turn.runner import End, RunningTurn
    from sluicegate.live.context import LiveContext
    from sluicegate.live.turn_taking import TurnTaking

logger = logging.getLogger("sluicegate")

PATIENCE: Final = 2.0
"""Seconds in which the end of a turn that was stopped has to come out of the run."""


class ExchangeQueue:
    """Tells exchanges in order; the course of their turns.

    ``goes_on`` prepares the next turn of one that was told already.
    """

    def __init__(
        self,
        hold: LiveContext,
        *,
        release: Callable[[], ReleasePolicy],
        stepped: Callable[[], None],
    ) -> None:
        """``release`` is that of a spoken exchange; ``stepped`` is called after each turn."""
        self._hold = hold
        self._release = release
        self._stepped = stepped
        self._playing: tuple[LiveExchange, RunningTurn] | None = None
        self._watch: asyncio.Task[None] | None = None
        self.goes_on: Callable[[LiveExchange], Awaitable[TurnSetup]]
        self.flush: Callable[[LiveExchange], None]
        self.floor: TurnTaking
        self.exchanges: list[LiveExchange] = []
        self.is_closed = False

    @property
    def head(self) -> LiveExchange | None:
        """The exchange that is told, or waits."""
        return self.exchanges[0] if self.exchanges else None

    def first(self) -> LiveExchange | None:
        """The first exchange that is not over for the model."""
        mine = (each for each in self.exchanges if not each.is_foreign)
        return next((each for each in mine if not each.is_done), None)

    def busy(self) -> LiveExchange | None:
        """The first exchange that the model answers, or does something for."""
        mine = (each for each in self.exchanges if not each.is_foreign)
        return next((each for each in mine if not (each.is_done or each.is_paused)), None)

    def begin(self) -> LiveExchange:
        """Begin an exchange with what is spoken."""
        release = self._release()
        exchange = self.made(f"user-{secrets.token_hex(12)}", release, spoken=True)
        self.exchanges.append(exchange)
        self._hold.soon(self._hold.parts.chats.touch(self._hold.chat, title=None))
        self._hold.soon(self.advance())
        return exchange

    def made(self, user_message: str, release: ReleasePolicy, *, spoken: bool) -> LiveExchange:
        """Make an exchange behind the last one."""
        after = self.exchanges[-1].message if self.exchanges else None
        stamp = self._hold.parts.stamp(user_message, release)
        turn = LiveTurn(replace(stamp, live=True, after=after))
        return LiveExchange(turn, release, spoken)

    async def advance(self) -> None:
        """Tell the next turn that can be told without a request."""
        async with self._hold.lock:
            await self.step()

    async def step(self) -> None:
        """The same for whoever has the lock."""
        head = self.head
        if head is None or self._playing is not None or head.is_foreign or self.is_closed:
            return
        if head.phase == "waits" and not head.to_play[0].feed.ended.is_set():
            return
        try:
            setup = None if head.phase == "queued" else await self.goes_on(head)
            head.is_announced = False
            reader = await self.play(head, setup, major=7)
        except Exception as error:  # noqa: BLE001 - nobody asked, so nobody can be told
            logger.error("a live turn did not begin: %s", describe(error))
            self.drop(head)
            return
        await reader.aclose()
        self.flush(head)
        self.announce(head)

    async def play(
        self, exchange: LiveExchange, setup: TurnSetup | None, *, major: Literal[6, 7]
    ) -> TurnReader:
        """Tell the next turn of an exchange; returns its first reader.

        Raises:
            RequestError, StoreError: it is not told.
        """
        hold, told = self._hold, exchange.to_play[0]
        key = TurnKey(hold.chat, told.stamp.turn, hold.fence)
        turn = await prepare_turn(hold.parts, setup or TurnSetup(key, told.stamp, exchange.release))
        self._bind(turn)
        if exchange.spoken or hold.out.with_audio:
            # Whoever listens reads along.
            turn.readers += 1
        exchange.to_play.popleft()
        exchange.phase = "runs"
        self._playing = (exchange, turn)
        try:
            reader = await hold.parts.turns.lead(turn, told.feed.events(turn), self, major=major)
        except BaseException:
            self._playing = None
            raise
        self._watch = hold.soon(self._stop_when_told(exchange, told, turn))
        return reader

    def key(self, exchange: LiveExchange) -> TurnKey:
        """What names the next turn of an exchange."""
        stamp = exchange.to_play[0].stamp
        return TurnKey(self._hold.chat, stamp.turn, self._hold.fence)

    def running(self, exchange: LiveExchange) -> RunningTurn | None:
        """The turn of an exchange that is told now."""
        return self._playing[1] if self._playing and self._playing[0] is exchange else None

    def announce(self, exchange: LiveExchange) -> None:
        """Say that a turn can be read, once there is something to read it for."""
        ready = exchange.phase != "queued" and (
            exchange.is_heard or exchange.is_paused or exchange.is_done
        )
        if ready and not exchange.is_announced:
            exchange.is_announced = True
            stamp = exchange.current.stamp
            self._hold.out.frame(TurnFrame(stamp.message, stamp.user_message))

    async def ended(self, exchange: LiveExchange) -> None:
        """Wait until nothing of an exchange is told any more."""
        turn = self.running(exchange)
        if turn is not None:
            await turn.done.wait()

    async def seal(self, turn: RunningTurn, end: End) -> Sequence[Signal]:
        """Write down what a turn leaves that was stopped or has failed, and close its calls."""
        exchange = self._playing[0] if self._playing else None
        run = self._hold.run
        if exchange is None or run is None:
            return ()
        claims = turn.turn_gate.claims
        if end == "finished":
            return ()
        await run.drop_calls(list(exchange.calls))
        parts, chat = self._hold.parts, self._hold.chat
        if claims.cut:
            others = parts.turns.owners() - {self._hold.owner}
            await parts.ledger.mark_unknown(chat, owners_alive=others)
            claims.cut.clear()
        log = parts.log if run.is_over else run.log
        stamp, invocation = turn.stamp, run.invocation
        await log.append_unfinished(chat, turn.translator.unfinished(), invocation, stamp)
        # What is cut ends first: its step is told together with what was asked in it (D2).
        cut = _cut_calls(turn)
        await log.append_closings(chat, cut, invocation, stamp)
        ended = turn.gate.feed_all([Settled(call.state.call.id, NOT_FINISHED) for call in cut])
        await turn.emit(ended)
        closing = OpenCallCloser(parts.ledger, log, parts.survey.terms)
        told = await closing.close(chat, turn.gate, invocation, stamp, reason=ENDED[end])
        exchange.calls.clear()
        exchange.is_done = True
        self.floor.leave(exchange)
        return told

    def left(self, turn: RunningTurn) -> None:
        """A turn has ended; the next one may be told."""
        if self._watch is not None:
            self._watch.cancel()
        if self._playing is None:
            return
        exchange, self._playing = self._playing[0], None
        exchange.phase = "waits"
        if exchange.is_done:
            self.drop(exchange)
        self.flush(exchange)
        self.announce(exchange)
        self._stepped()
        self._hold.soon(self.advance())

    def drop(self, exchange: LiveExchange) -> None:
        """Nothing more is told of an exchange here."""
        exchange.phase, exchange.is_done = "over", True
        self.floor.leave(exchange)
        if exchange in self.exchanges:
            self.exchanges.remove(exchange)

    def _bind(self, turn: RunningTurn) -> None:
        """Let the turn and the run know each other."""
        hold = self._hold
        turn.approval_ttl = hold.approval_ttl
        turn.turn_gate.owner = hold.owner
        if hold.run is not None:
            turn.invocation = hold.run.invocation
            turn.turn_gate.claims = hold.run.gate.claims
            turn.turn_gate.remembered = hold.run.gate.remembered
            turn.turn_gate.claims.overtime = turn.cut

    async def _stop_when_told(
        self, exchange: LiveExchange, told: LiveTurn, turn: RunningTurn
    ) -> None:
        await turn.abort.wait()
        if told.feed.ended.is_set():
            return
        exchange.is_ending = True
        run = self._hold.run
        if run is not None and not run.is_over:
            self._hold.out.cut()
            run.cut()
        try:
            async with asyncio.timeout(PATIENCE):
                await told.feed.ended.wait()
        except TimeoutError:
            # A tool keeps the run from receiving anything, or there is no connection.
            exchange.is_done = True
            self.floor.leave(exchange)
            told.feed.end(stopped=True)


def _cut_calls(turn: RunningTurn) -> list[Closed]:
    """Calls at work that nobody asks about and that will have no result."""
    note = {"kind": "error", "text": NOT_FINISHED.text}
    return [
        Closed(state, {"error": NOT_FINISHED.text}, note, was_unanswered=False)
        for state in turn.gate.calls.values()
        if state.outcome is None and state.ask is None and not state.is_client_side
    ]
