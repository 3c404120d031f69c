"""The live runs of one chat, one after the other.

What has been waiting since before a run is answered by a turn of another kind, which needs the
session for itself: the run ends, the lease is released to the turn, and the next run continues with
the history.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from sluicegate.core.plan import ContinueExchange, still_open
from sluicegate.core.signals import NOT_FINISHED
from sluicegate.engine.describe_exceptions import describe
from sluicegate.engine.models.model_errors import CalledModel, error_of_exception
from sluicegate.engine.start_turn import closing_stamp
from sluicegate.engine.telemetry import model_failed
from sluicegate.engine.turn.builder import approval_limits, log_tool_failures, running_claims
from sluicegate.errors import RequestError, StoreError, Unavailable, new_error_id
from sluicegate.live.audio_fast_lane import AudioLane
from sluicegate.live.calls_without_result import UnfinishedCalls
from sluicegate.live.context import LiveLease
from sluicegate.live.continue_exchange import LiveContinuation
from sluicegate.live.event_router import EventPublisher, EventRouter
from sluicegate.live.exchange import LiveExchange, LiveTurn
from sluicegate.live.exchange_publisher import ExchangePublisher
from sluicegate.live.outbox import MODEL_ENDED, RUN_FAILED, ChatEnded
from sluicegate.live.pending_approvals import LiveApprovalGuard, PendingApprovals
from sluicegate.live.run import CallRecords, ConnectionCallbacks, LiveRun
from sluicegate.live.spoken_approvals import SpokenApprovals
from sluicegate.media.result_files import ResultFiles
from sluicegate.wire.live_frames import GoAwayFrame, ReadyFrame, TurnFrame
from sluicegate.wire.posted_assistant_message import PostedAssistantMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluicegate.core.plan import ChatLog, NewExchange
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.engine.turn.runner import RunningTurn
    from sluicegate.live.context import LiveContext
    from sluicegate.live.model_connection import LiveConnection
    from sluicegate.wire.chunks import BaseChunk

logger = logging.getLogger("sluicegate")

UNKNOWN_MODEL: Final = 1008
"""Google: a setup that names a model which is unknown or not live ends with this code."""


class LiveRunSession:
    """One live run with its exchanges, event router, publisher and approval guard."""

    def __init__(self, context: LiveContext, *, release: Callable[[], ReleasePolicy]) -> None:
        """``release`` returns the policy of a spoken exchange."""
        resources = context.resources
        self._context = context
        self._is_ending = False
        self._driving: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        lane = AudioLane(context.outbox)
        is_observed = resources.observes_events or context.options.run_config.save_live_blob
        self.run = LiveRun(
            resources.runner,
            context.chat,
            CallRecords(running_claims(resources.options, resources.turns, context.chat)),
            ConnectionCallbacks(
                self._connected,
                self._going_away,
                self._calls_cancelled,
                lambda: self.publisher.utterances.has_waiting_words,
                lambda: self.publisher.utterances.answer_results_first(),
            ),
            options=context.options,
            audio_lane=None if is_observed else lane,
        )
        self.pending = PendingApprovals(context)
        self.publisher = ExchangePublisher(
            context, self.run, release=release, turn_ended=self.pending.wake
        )
        router = EventRouter(
            self.publisher.utterances,
            resources.survey.of_chat(context.chat),
            resources.options.page_tools,
        )
        self._spoken = SpokenApprovals(context, self.pending)
        self._events = EventPublisher(context, router, self.publisher, self._spoken.heard, lane)
        self.continuation = LiveContinuation(
            context, self.run, self.publisher, router, self.pending
        )
        self._guard = self._approval_guard(router)

    async def start(self) -> None:
        """Start the run; returns once it takes input, or has failed."""
        self._driving = asyncio.create_task(self._drive())
        self._watching = asyncio.create_task(self.pending.watch(self._continue_decided))
        started = asyncio.create_task(self.run.wait_started())
        await asyncio.wait([started, self._driving], return_when=asyncio.FIRST_COMPLETED)
        started.cancel()

    async def end(self) -> None:
        """End the run after its claimed calls; calls that wait keep waiting in the session."""
        timings = self._context.timings
        self._guard.stopping = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(
                self._context.resources.options.tool_timeout + timings.stop_grace
            ):
                await self.run.wait_claimed()
        self.publisher.is_closed = True
        self.run.mute_model()
        head = self.publisher.head
        turn = self.publisher.running(head) if head is not None else None
        speaking = self.publisher.utterances.speaking
        if head is not None and turn is not None:
            await self._end_turn(head, turn)
        elif speaking is not None and not self.run.is_over:
            await self._end_answer(speaking)
        self._is_ending = True
        self._events.close()
        self._spoken.close()
        self.run.close()
        if self._driving is not None:
            await asyncio.wait([self._driving], timeout=timings.close_grace)
        for task in (self._watching, self._driving):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    async def close_exchanges(self) -> None:
        """Publish and end what is left of the exchanges; the caller holds the lock."""
        while (head := self.publisher.head) is not None:
            await self.publisher.advance_locked()
            turn = self.publisher.running(head)
            if turn is not None:
                turn.abort.set()
                await turn.done.wait()
            elif head.phase == "waiting":
                await self.continuation.close(head)

    def interrupt(self) -> None:
        """End the model's output; running calls continue."""
        if self.run.is_over or not self.publisher.utterances.is_busy:
            return
        first = self.publisher.first()
        speaking = self.publisher.utterances.speaking
        if speaking is None and first is not None and not first.open_calls:
            first.is_stopping = True
        self._context.outbox.discard_audio()
        self.run.interrupt_model()

    def _approval_guard(self, router: EventRouter) -> LiveApprovalGuard:
        context, resources = self._context, self._context.resources
        return LiveApprovalGuard(
            chat=context.chat,
            owner=context.owner,
            ledger=resources.ledger,
            rows={},
            limits=approval_limits(resources.options),
            ttl=context.approval_ttl,
            files=ResultFiles(resources.files, context.chat, resources.options.result_limits),
            models=resources.models,
            policy=resources.policy,
            entitlement=resources.entitlement,
            previews=resources.previews,
            new_error_id=new_error_id,
            report=log_tool_failures(context.chat, context.owner),
            claims=self.run.records.claims,
            outcomes=self.run.records.outcomes,
            granted=self.run.records.granted,
            requested=self.run.records.requested,
            tools=resources.survey.of_chat(context.chat),
            client_outputs=self.run.records.client_outputs,
            run=self.run,
            router=router,
            publisher=self.publisher,
            pending=self.pending,
            unfinished=UnfinishedCalls(context, self.run, router),
            spoken=self._spoken,
            may_gate=resources.survey.may_gate,
            announces=resources.options.live_announce_approvals,
        )

    async def _end_turn(self, exchange: LiveExchange, turn: RunningTurn) -> None:
        """End the running turn; it waits if one of its calls does, and else it is stopped."""
        if "waiting" in exchange.open_calls.values() and not self.run.is_over:
            running = [name for name, phase in exchange.open_calls.items() if phase == "running"]
            await self.run.cancel_calls(running)
            for call_id in running:
                result = self.run.records.outcomes.not_run(call_id, NOT_FINISHED.text)
                await self.run.store_result(call_id, result)
        else:
            turn.abort.set()
        await turn.done.wait()

    async def _end_answer(self, exchange: LiveExchange) -> None:
        """Complete an answer that no turn publishes yet."""
        exchange.is_stopping = True
        self.run.interrupt_model()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._context.timings.stop_grace):
                await exchange.current.feed.ended.wait()

    async def _drive(self) -> None:
        await self.run.drive(self._guard, self._events.publish)
        error, error_id = self.run.error, new_error_id()
        failed = self.run.connection_error
        if failed is not None:
            called = CalledModel("live model", self._context.resources.live_model)
            self._guard.model_error = error_of_exception(failed, called)
            model_failed(self._guard.model_error)
        if error is not None:
            logger.error(
                "live run failed chat=%s error=%s %s",
                self._context.chat.chat,
                error_id,
                describe(self._guard.model_error or error, with_text=True),
            )
        await self._end_feed(error)
        if self._is_ending:
            return
        if error is None:
            refusal = Unavailable("The model has ended the conversation; connect again.")
            self._context.outbox.send(ChatEnded(refusal, MODEL_ENDED))
        else:
            self._context.outbox.send(ChatEnded(self._failure(error_id), RUN_FAILED))

    def _failure(self, error_id: str) -> Unavailable:
        code = getattr(self.run.connection_error, "code", None)
        if self.run.is_first_connection and code == UNKNOWN_MODEL:
            name = self._context.resources.live_model
            return Unavailable(
                f"The model {name} is not available for live chats here; choose another one with "
                f"the setting live_model (error {error_id})."
            )
        return Unavailable(f"The live model failed (error {error_id}); connect again.")

    async def _end_feed(self, error: Exception | None) -> None:
        """End the feed of the running turn, which publishes its own error (T10)."""
        head = self.publisher.head
        turn = self.publisher.running(head) if head is not None else None
        if head is None or turn is None:
            return
        turn.guard.model_error = self._guard.model_error
        if error is None:
            head.current.feed.end(stopped=True)
        else:
            head.current.feed.fail(error)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._context.timings.stop_grace):
                await turn.done.wait()

    async def _continue_decided(self) -> None:
        """Continue the waiting exchange once its calls are decided or their deadline has passed."""
        # A decision on this replica is followed by a request, which continues the exchange.
        async with self._context.request_lock(), self._context.lock:
            head = self.publisher.head
            if head is None or head.phase != "waiting" or head.is_earlier:
                return
            if self.publisher.is_closed or not self.pending.are_decided(head):
                return
            head.is_announced = False
            reader = await self.continuation.continue_decided(head)
        if reader is not None:
            await reader.aclose()
            self.publisher.show(head)

    def _connected(self, connection: LiveConnection, previous: LiveConnection | None) -> None:
        utterances = self.publisher.utterances
        utterances.continues_turn = connection.continues_turn
        was_cut = previous is not None and utterances.reconnected()
        if previous is not None and connection.again is not None:
            is_unanswered = utterances.has_unanswered
            connection.go_on(previous, was_cut=was_cut, is_unanswered=is_unanswered)
        elif previous is not None and was_cut:
            connection.end_output(previous)
        self._context.outbox.send(ReadyFrame())

    def _going_away(self) -> None:
        self._context.outbox.send(GoAwayFrame())

    def _calls_cancelled(self, call_ids: Sequence[str]) -> None:
        self._context.spawn(self.pending.withdraw(call_ids))


class LiveRunSupervisor:
    """Starts and ends the runs of one chat, whose lease is held."""

    def __init__(self, context: LiveContext, *, release: Callable[[], ReleasePolicy]) -> None:
        """``release`` returns the policy of a spoken exchange."""
        self._context = context
        self._release = release
        self._lease = LiveLease(context)
        self._is_closing = False
        self._unannounced: list[LiveExchange] = []
        """Exchanges of ended runs that the client has not been sent."""
        self._watching: asyncio.Task[None] | None = None
        self.current = self._new_session()

    async def start(self) -> None:
        """Start a run; an exchange that waits since before keeps waiting ahead of what is said."""
        log = await self._context.resources.logs.load(self._context.chat)
        self._announce_stored(log)
        last = log.last()
        if last is not None and last.is_unfinished:
            turn = LiveTurn(closing_stamp(last.exchange))
            earlier = LiveExchange(
                turn, last.exchange.release, spoken=False, phase="waiting", is_earlier=True
            )
            self.current.publisher.exchanges.append(earlier)
            requests = [state.request for state in last.open_calls if state.request is not None]
            self._watch_approvals({request.approval_id for request in requests})
        await self.current.start()

    async def close_earlier(self, plan: NewExchange | None) -> Sequence[BaseChunk]:
        """Close the exchange that waits since before the run; return the chunks for its cards.

        The caller holds the lock.
        """
        resources, chat = self._context.resources, self._context.chat
        closes = plan.closes if plan is not None else None
        if closes is None:
            closes = (await resources.logs.load(chat)).last()
        if closes is None or not closes.is_unfinished:
            return ()
        await self._end_run()
        cards = await resources.start_turn.close(chat, closes, stopped=plan is None)
        self.current = self._new_session()
        await self.start()
        return cards

    async def continue_earlier(
        self,
        log: ChatLog,
        plan: ContinueExchange,
        release: ReleasePolicy,
        client: Client,
        *,
        own: bool,
    ) -> TurnReader | None:
        """Continue the exchange that waits since before the run, with the lease released.

        Returns None when it does not wait. ``own``: the socket reads the turn. The caller holds the
        lock.

        Raises:
            RequestError: the decisions stay in the ledger.
        """
        if not plan.exchange.is_unfinished:
            return None
        context, resources = self._context, self._context.resources
        await self._wait_for_answer()
        await self._end_run()
        reader: TurnReader | None = None
        try:
            await self._lease.release()
            reader = await resources.continue_turn.run(log, plan, release, client)
        finally:
            running = resources.turns.running(context.chat)
            if reader is None or running is None:
                await self._restart()
            else:
                context.spawn(self._restart_after(running))
        if reader is not None and not own:
            exchange = plan.exchange.exchange
            context.outbox.send(TurnFrame(exchange.message_id, exchange.user_message_id))
        return reader

    async def close(self) -> None:
        """End the run and release the lease."""
        context = self._context
        self._is_closing = True
        async with context.lock:
            if self._lease.is_held:
                await self._end_run()
        await context.wait_for_tasks()
        if context.resources.recorder is not None:
            context.resources.recorder.flush(context.chat)
        context.resources.turns.chat_owners.remove(context.chat, context.owner)
        await self._lease.close()

    def _new_session(self) -> LiveRunSession:
        return LiveRunSession(self._context, release=self._release)

    async def _end_run(self) -> None:
        self._watch_approvals(set())
        exchanges = self.current.publisher.exchanges
        self._unannounced += [e for e in exchanges if not (e.is_earlier or e.is_announced)]
        await self.current.end()

    async def _wait_for_answer(self) -> None:
        """Let the model finish; approvals that it requests are requested again in the next run."""
        session = self.current
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._context.timings.speech_grace):
                while (
                    busy := session.publisher.first_busy()
                ) is not None and not session.run.is_over:
                    await busy.current.feed.ended.wait()

    def _announce_stored(self, log: ChatLog) -> None:
        """Send the client the exchanges of ended runs that the chat has by now."""
        stored = {exchange.message_id for exchange in log.exchanges}
        last = log.last()
        for exchange in [each for each in self._unannounced if each.message in stored]:
            self._unannounced.remove(exchange)
            is_open = (
                last is not None
                and last.is_unfinished
                and last.exchange.message_id == exchange.message
            )
            for frame in exchange.held_transcripts:
                if frame.role == "user" or not is_open:
                    self._context.outbox.send(frame)
            stamp = exchange.current.stamp
            self._context.outbox.send(TurnFrame(exchange.message, stamp.user_message))

    def _watch_approvals(self, approvals: set[str]) -> None:
        """Watch these approvals in place of all others."""
        if self._watching is not None and self._watching is not asyncio.current_task():
            self._watching.cancel()
        self._watching = None
        if approvals:
            self._watching = self._context.spawn(self._watch(frozenset(approvals)))

    async def _watch(self, approvals: frozenset[str]) -> None:
        """Continue when other replicas have decided, or the deadline has passed (A2, A5)."""
        ledger, chat = self._context.resources.ledger, self._context.chat
        while True:
            await asyncio.sleep(self._context.timings.approval_poll)
            # A ledger that is not available is read again later.
            with contextlib.suppress(StoreError):
                await ledger.expire(chat)
                rows = [row for row in await ledger.rows(chat) if row.approval_id in approvals]
                if len(rows) < len(approvals) or any(row.state == "requested" for row in rows):
                    continue
                await self._continue_decided()
                return

    async def _continue_decided(self) -> None:
        context, resources = self._context, self._context.resources
        # A decision on this replica is followed by a request, which continues the exchange.
        async with context.request_lock(), context.lock:
            if self._is_closing or self._watching is not asyncio.current_task():
                return
            location = await resources.replicas.locate(context.chat)
            log = await resources.logs.load(context.chat, location)
            last = log.last()
            if last is None or not last.is_unfinished:
                return
            posted = PostedAssistantMessage(last.exchange.message_id, (), (), ())
            plan = ContinueExchange(last, posted)
            if still_open(plan):
                return
            try:
                release = last.exchange.release
                reader = await self.continue_earlier(log, plan, release, context.client, own=False)
            except RequestError as error:
                # Posting the same decision again continues the exchange.
                logger.warning("a decided call waits on chat=%s %s", context.chat.chat, error.code)
                return
        if reader is not None:
            await reader.detach()

    async def _restart_after(self, running: RunningTurn) -> None:
        await running.done.wait()
        async with self._context.lock:
            await self._restart()

    async def _restart(self) -> None:
        """Reacquire the lease and start the next run."""
        if not self._is_closing and await self._lease.take_again():
            self.current = self._new_session()
            await self.start()
