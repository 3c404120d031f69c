"""One live run with its event router, publisher and approval guard."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Final

from sluicegate.core.signals import NOT_FINISHED
from sluicegate.engine.describe_exceptions import describe
from sluicegate.engine.models.explain_model_errors import CalledModel, error_of_exception
from sluicegate.engine.telemetry import model_failed
from sluicegate.engine.turn.builder import log_tool_failures, running_claims
from sluicegate.errors import Unavailable, new_error_id
from sluicegate.live.answer_failed_calls import FailedCalls
from sluicegate.live.approval_guard import LiveApprovalGuard
from sluicegate.live.call_records import CallRecords
from sluicegate.live.continue_exchange import LiveContinuation
from sluicegate.live.event_publisher import EventPublisher
from sluicegate.live.event_router import EventRouter
from sluicegate.live.exchange_queue import ExchangeQueue
from sluicegate.live.outgoing_frame_queue import ChatEnded
from sluicegate.live.output_audio_fast_lane import AudioLane
from sluicegate.live.pending_approvals import PendingApprovals
from sluicegate.live.run import ConnectionCallbacks, LiveRun
from sluicegate.live.spoken_approvals import SpokenApprovals
from sluicegate.media.replace_files_by_references import ResultFiles
from sluicegate.wire.live_frames import GoAwayFrame, ReadyFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.turn.running_turn import RunningTurn
    from sluicegate.live.context import LiveContext
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.model_connection import LiveConnection

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
                lambda: self.exchange_queue.utterances.has_waiting_words,
                lambda: self.exchange_queue.utterances.answer_results_first(),
            ),
            options=context.options,
            audio_lane=None if is_observed else lane,
        )
        self.pending = PendingApprovals(context)
        self.exchange_queue = ExchangeQueue(
            context, self.run, release=release, turn_ended=self.pending.wake
        )
        router = EventRouter(
            self.exchange_queue.utterances,
            resources.survey.of_chat(context.chat),
            resources.options.page_tools,
        )
        self._spoken = SpokenApprovals(context, self.pending)
        self._events = EventPublisher(
            context, router, self.exchange_queue, self._spoken.heard, lane
        )
        self.continuation = LiveContinuation(
            context, self.run, self.exchange_queue, router, self.pending
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
        self.exchange_queue.is_closed = True
        self.run.mute_model()
        head = self.exchange_queue.head
        turn = self.exchange_queue.running(head) if head is not None else None
        speaking = self.exchange_queue.utterances.speaking
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
        while (head := self.exchange_queue.head) is not None:
            await self.exchange_queue.advance_locked()
            turn = self.exchange_queue.running(head)
            if turn is not None:
                turn.abort.set()
                await turn.done.wait()
            elif head.phase == "waiting":
                await self.continuation.close(head)

    def interrupt(self) -> None:
        """End the model's output; running calls continue."""
        if self.run.is_over or not self.exchange_queue.utterances.is_busy:
            return
        first = self.exchange_queue.first()
        speaking = self.exchange_queue.utterances.speaking
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
            limits=resources.options.approval_limits,
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
            exchange_queue=self.exchange_queue,
            pending=self.pending,
            unfinished=FailedCalls(context, self.run, router),
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
            self._context.outbox.send(ChatEnded(refusal, "model_ended"))
        else:
            self._context.outbox.send(ChatEnded(self._failure(error_id), "run_failed"))

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
        head = self.exchange_queue.head
        turn = self.exchange_queue.running(head) if head is not None else None
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
            head = self.exchange_queue.head
            if head is None or head.phase != "waiting" or head.is_earlier:
                return
            if self.exchange_queue.is_closed or not self.pending.are_decided(head):
                return
            head.is_announced = False
            reader = await self.continuation.continue_decided(head)
        if reader is not None:
            await reader.aclose()
            self.exchange_queue.show(head)

    def _connected(self, connection: LiveConnection, previous: LiveConnection | None) -> None:
        utterances = self.exchange_queue.utterances
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
