"""The exchanges of a live run in order, and the turns that publish them.

One exchange is published at a time; those that begin while it runs or waits are queued behind it.
Each turn is an ordinary `RunningTurn`, with the same translator, release buffer, grammar and stream
store, whose events come from the exchange.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from sluicegate.core.chat_and_turn_keys import TurnKey
from sluicegate.core.event_reading import notes_of
from sluicegate.core.history import rebuild
from sluicegate.core.signals import NOT_FINISHED, Settled
from sluicegate.core.turn_stamp import STOPPED
from sluicegate.engine.describe_exceptions import describe
from sluicegate.engine.turn.builder import SharedRun, TurnSetup
from sluicegate.engine.turn.close_undecided_calls import OpenCallCloser
from sluicegate.engine.turn.local_turns import WHY_NOT_RUN
from sluicegate.engine.turn.session_log import Closed
from sluicegate.live.assign_speech_to_exchanges import TurnTaking
from sluicegate.live.exchange import LiveExchange, LiveTurn
from sluicegate.wire.live_frames import TranscriptFrame, TurnFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.plan import ChatLog
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.core.signals import Signal
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.engine.turn.running_turn import End, RunningTurn
    from sluicegate.live.context import LiveContext
    from sluicegate.live.run import LiveRun

logger = logging.getLogger("sluicegate")


class ExchangeQueue:
    """Publishes exchanges in order; implements `TurnCallbacks` for their turns."""

    def __init__(
        self,
        context: LiveContext,
        run: LiveRun,
        *,
        release: Callable[[], ReleasePolicy],
        turn_ended: Callable[[], None],
    ) -> None:
        """``release`` returns the policy of a spoken exchange; ``turn_ended`` follows each turn."""
        self._context = context
        self._run = run
        self._release = release
        self._turn_ended = turn_ended
        self._published: tuple[LiveExchange, RunningTurn] | None = None
        self._stop_watch: asyncio.Task[None] | None = None
        self.utterances = TurnTaking(self._begin_spoken, self.first)
        self.exchanges: list[LiveExchange] = []
        self.is_closed = False
        """Whether no further turn begins by itself."""

    @property
    def head(self) -> LiveExchange | None:
        """The exchange that is published, or waits."""
        return self.exchanges[0] if self.exchanges else None

    def first(self) -> LiveExchange | None:
        """Return the first exchange that the model is not done with."""
        return next((e for e in self.exchanges if not (e.is_earlier or e.is_done)), None)

    def first_busy(self) -> LiveExchange | None:
        """Return the first exchange that the model works on."""
        open_exchanges = (e for e in self.exchanges if not (e.is_earlier or e.is_done))
        return next((each for each in open_exchanges if not each.is_paused), None)

    def create(self, user_message: str, release: ReleasePolicy, *, spoken: bool) -> LiveExchange:
        """Append an exchange."""
        after = self.exchanges[-1].message if self.exchanges else None
        resources = self._context.resources
        stamp = resources.builder.new_stamp(user_message, release)
        turn = LiveTurn(replace(stamp, live=True, after=after, model=resources.live_model))
        exchange = LiveExchange(turn, release, spoken)
        self.exchanges.append(exchange)
        return exchange

    async def advance(self) -> None:
        """Publish the next turn that needs no request, if there is one."""
        async with self._context.lock:
            await self.advance_locked()

    async def advance_locked(self) -> None:
        """As `advance`; the caller holds the lock."""
        head = self.head
        if head is None or self._published is not None or head.is_earlier or self.is_closed:
            return
        if head.phase == "waiting" and not head.unpublished[0].feed.ended.is_set():
            return
        try:
            setup = self.next_setup(head)
            if head.phase == "waiting":
                log = await self._context.resources.logs.load(self._context.chat)
                setup = replace(setup, continues=self.rebuild(head, log))
            head.is_announced = False
            reader = await self.publish(head, setup, major=7)
        except Exception as error:  # noqa: BLE001 - no request waits for the error
            logger.error("a live turn did not begin: %s", describe(error))
            self.drop(head)
            return
        await reader.aclose()
        self.show(head)

    async def publish(
        self, exchange: LiveExchange, setup: TurnSetup, *, major: Literal[6, 7]
    ) -> TurnReader:
        """Publish the next turn of an exchange; returns its first reader.

        Raises:
            RequestError, StoreError: the turn is not published.
        """
        context, published = self._context, exchange.unpublished[0]
        turn = await context.resources.builder.build(replace(setup, run=self._shared_run()))
        if exchange.spoken or context.outbox.with_audio:
            # A user who listens counts as a reader.
            turn.readers += 1
        exchange.unpublished.popleft()
        exchange.phase = "running"
        self._published = (exchange, turn)
        try:
            events = published.feed.events(turn)
            reader = await context.resources.turns.launch(turn, events, self, major=major)
        except BaseException:
            self._published = None
            raise
        self._stop_watch = context.spawn(self._finish_stopped(exchange, published, turn))
        return reader

    def key(self, exchange: LiveExchange) -> TurnKey:
        """Return the key of the next turn of an exchange."""
        stamp = exchange.unpublished[0].stamp
        return TurnKey(self._context.chat, stamp.turn, self._context.fence)

    def next_setup(self, exchange: LiveExchange) -> TurnSetup:
        """Return the setup of the next turn of an exchange, as its first one."""
        return TurnSetup(self.key(exchange), exchange.unpublished[0].stamp, exchange.release)

    def running(self, exchange: LiveExchange) -> RunningTurn | None:
        """Return the running turn of an exchange."""
        return self._published[1] if self._published and self._published[0] is exchange else None

    def is_stopping(self, exchange: LiveExchange) -> bool:
        """Whether no call of an exchange may begin any more."""
        turn = self.running(exchange)
        return turn is not None and turn.guard.stopping

    def has_open_calls(self, call_id: str) -> bool:
        """Whether another call than this one runs or waits."""
        return any(name != call_id for each in self.exchanges for name in each.open_calls)

    def rebuild(self, exchange: LiveExchange, log: ChatLog) -> RebuiltExchange:
        """Rebuild an exchange from its published turns."""
        stored = next(e for e in log.exchanges if e.message_id == exchange.message)
        unpublished = {turn.stamp.turn for turn in exchange.unpublished}
        events = [
            event for event in stored.events if notes_of(event).get("turn") not in unpublished
        ]
        resources = self._context.resources
        files_url = resources.options.files_url_of(self._context.chat.chat)
        return rebuild(
            replace(stored, events=events),
            log.rows,
            resources.survey.of_chat(self._context.chat),
            files_url=files_url,
        )

    def show(self, exchange: LiveExchange) -> None:
        """Send the client the transcripts that may be shown, and the announcement of the turn."""
        self.release_transcripts(exchange)
        self.announce(exchange)

    def release_transcripts(self, exchange: LiveExchange) -> None:
        """Send the transcripts that may be shown."""
        held: list[TranscriptFrame] = []
        for frame in exchange.held_transcripts:
            if self._may_show(exchange, frame.role):
                self._context.outbox.send(frame)
            else:
                held.append(frame)
        exchange.held_transcripts = held

    def announce(self, exchange: LiveExchange) -> None:
        """Announce a turn once there is something to read."""
        has_content = exchange.is_transcribed or exchange.is_paused or exchange.is_done
        if exchange.phase != "queued" and has_content and not exchange.is_announced:
            exchange.is_announced = True
            stamp = exchange.current.stamp
            self._context.outbox.send(TurnFrame(stamp.message, stamp.user_message))

    def touch(self, exchange: LiveExchange, *, title: str | None) -> None:
        """Note in the list of chats that something was said, before its turn ends."""
        exchange.current.feed.end_after(self._context.spawn(self._touch(exchange, title)))

    async def _touch(self, exchange: LiveExchange, title: str | None) -> None:
        await self._wait_begun(exchange)
        await self._context.resources.chats.touch(self._context.chat, title=title)

    def drop(self, exchange: LiveExchange) -> None:
        """Remove an exchange of which nothing more is published."""
        exchange.phase, exchange.is_done = "done", True
        self.utterances.forget(exchange)
        if exchange in self.exchanges:
            self.exchanges.remove(exchange)

    async def close_open_calls(self, turn: RunningTurn, end: End) -> Sequence[Signal]:
        """Store what a stopped or failed turn leaves open, and close its calls."""
        if self._published is None or end == "finished":
            return ()
        exchange, run = self._published[0], self._run
        await run.cancel_calls(list(exchange.open_calls))
        resources, chat = self._context.resources, self._context.chat
        if run.records.claims.interrupted:
            others = resources.turns.claim_owners() - {self._context.owner}
            await resources.ledger.mark_unknown(chat, owners_alive=others)
            run.records.claims.interrupted.clear()
        log = resources.session_log if run.is_over else run.log
        stamp, invocation = turn.stamp, run.invocation
        await log.append_unfinished(chat, turn.translator.unfinished(), invocation, stamp)
        # Cancelled calls end first: their step is emitted with what was requested in it (D2).
        cancelled = _cancelled_calls(turn)
        await log.append_closings(chat, cancelled, invocation, stamp)
        ended = [Settled(call.state.call.id, NOT_FINISHED) for call in cancelled]
        await turn.publish(turn.buffer.feed_all(ended))
        closer = OpenCallCloser(resources.ledger, log, resources.survey)
        signals = await closer.close(chat, turn.buffer, invocation, stamp, reason=WHY_NOT_RUN[end])
        if end == "stopped":
            await log.append_end(chat, stamp, STOPPED)
        exchange.open_calls.clear()
        exchange.is_done = True
        self.utterances.forget(exchange)
        return signals

    def turn_ended(self, turn: RunningTurn) -> None:
        """Start the next turn after the last one has ended."""
        if self._stop_watch is not None:
            self._stop_watch.cancel()
        if self._published is None:
            return
        exchange, self._published = self._published[0], None
        exchange.phase = "waiting"
        if exchange.is_done:
            self.drop(exchange)
        self.show(exchange)
        self._turn_ended()
        self._context.spawn(self.advance())

    def _begin_spoken(self) -> LiveExchange:
        context = self._context
        exchange = self.create(f"user-{secrets.token_hex(12)}", self._release(), spoken=True)
        self.touch(exchange, title=None)
        context.spawn(self._publish_spoken(exchange))
        return exchange

    async def _publish_spoken(self, exchange: LiveExchange) -> None:
        await self._wait_begun(exchange)
        await self.advance()

    async def _wait_begun(self, exchange: LiveExchange) -> None:
        """Wait for the first audio of an answer, which nothing is to delay, or for its turn."""
        context = self._context
        if context.outbox.with_audio:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(context.timings.first_audio):
                    await exchange.has_begun.wait()

    def _may_show(self, exchange: LiveExchange, role: str) -> bool:
        """Whether transcripts may be shown: those of the model are text under release (D1)."""
        if exchange.phase == "done":
            return True
        if self.head is not exchange:
            return False
        if role == "user":
            return True
        return exchange.current.stamp.release == "progressive" and not exchange.is_paused

    def _shared_run(self) -> SharedRun:
        run, context = self._run, self._context
        return SharedRun(
            owner=context.owner,
            invocation=run.invocation,
            claims=run.records.claims,
            granted=run.records.granted,
            requested=run.records.requested,
            approval_ttl=context.approval_ttl,
        )

    async def _finish_stopped(
        self, exchange: LiveExchange, published: LiveTurn, turn: RunningTurn
    ) -> None:
        """End the feed of a turn that was stopped."""
        await turn.abort.wait()
        if published.feed.ended.is_set():
            return
        exchange.is_stopping = True
        if not self._run.is_over:
            self._context.outbox.discard_audio()
            self._run.interrupt_model()
        try:
            async with asyncio.timeout(self._context.timings.stop_grace):
                await published.feed.ended.wait()
        except TimeoutError:
            # A tool keeps the run from receiving, or there is no connection.
            exchange.is_done = True
            self.utterances.forget(exchange)
            published.feed.end(stopped=True)


def _cancelled_calls(turn: RunningTurn) -> list[Closed]:
    """The calls that ran without an approval and will have no result."""
    note = {"kind": "error", "text": NOT_FINISHED.text}
    return [
        Closed(state, {"error": NOT_FINISHED.text}, note, was_unanswered=False)
        for state in turn.buffer.calls.values()
        if state.outcome is None and state.request is None and not state.is_client_side
    ]
