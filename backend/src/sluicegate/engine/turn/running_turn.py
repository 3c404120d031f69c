"""One turn: consumes the events of a run of ADK and publishes chunks to the stream store."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from google.adk.agents.run_config import RunConfig, ToolThreadPoolConfig
from google.adk.telemetry import ContentCapturingMode, TelemetryConfig

from sluicegate.adk_private import StreamingMode
from sluicegate.core.approval_metadata import approvals_in
from sluicegate.core.approvals import is_closed, is_effectful
from sluicegate.core.automatic_approval_requests import open_granted_requests, with_granted_requests
from sluicegate.core.call_chunks import agent_path
from sluicegate.core.event_reading import notes_of
from sluicegate.core.fast_lane_fragments import continued
from sluicegate.core.finish_metadata import metadata
from sluicegate.core.ledger_signals import annotated, closing_decision
from sluicegate.core.new_approval import new_approval
from sluicegate.core.release.deferred import DeferredBuffer
from sluicegate.core.signals import Answered, ApprovalRequested, Failed, Settled, Signal
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.engine.describe_exceptions import describe
from sluicegate.engine.models.text_fast_lane import CURRENT_FAST_LANE, FastLane
from sluicegate.engine.telemetry import TurnTelemetry
from sluicegate.errors import StoreError, new_error_id
from sluicegate.stores.streams.base import StreamFull
from sluicegate.wire.chunks import (
    BaseChunk,
    ErrorChunk,
    FinishChunk,
    FinishReason,
    ReasoningDeltaChunk,
    StartChunk,
    TextDeltaChunk,
    ToolInputDeltaChunk,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence

    from google.adk.events.event import Event
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import Runner
    from google.genai import types

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.chat_and_turn_keys import ChatKey, TurnKey
    from sluicegate.core.grammar import Grammar
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.release.base import ReleaseBuffer
    from sluicegate.core.translator import Translator
    from sluicegate.core.turn_stamp import TurnStamp
    from sluicegate.engine.guard.guard import ApprovalGuard
    from sluicegate.engine.models.reader_backpressure import ReaderBackpressure
    from sluicegate.engine.models.text_fast_lane import FastLaneCall
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.recorder import Recorder
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.stores.streams.base import StreamWriter


def telemetry_config(*, contents: bool) -> TelemetryConfig:
    """Return what spans contain. ADK: by default they contain texts and arguments."""
    kind = ContentCapturingMode
    mode = kind.SPAN_ONLY if contents else kind.NO_CONTENT
    return TelemetryConfig(capture_message_content=mode)


def run_events(
    runner: Runner, turn: RunningTurn, message: types.Content | None, options: EngineOptions
) -> AsyncIterator[Event]:
    """Run ADK and yield its events: with a message, or to run on the turn's invocation."""
    return runner.run_async(
        user_id=turn.chat.user,
        session_id=turn.chat.chat,
        invocation_id=turn.invocation if message is None else None,
        new_message=message,
        run_config=RunConfig(
            streaming_mode=StreamingMode.SSE,
            max_llm_calls=options.max_model_calls,
            custom_metadata=turn.stamp.as_metadata(),
            tool_thread_pool_config=ToolThreadPoolConfig(),
            telemetry=telemetry_config(contents=options.trace_contents),
        ),
        abort_signal=turn.abort,
    )


logger = logging.getLogger("sluicegate")

End = Literal["finished", "stopped", "failed"]
HELD_TOO_MUCH = "The answer held more than this server keeps back; ask for less at once."
STREAM_FULL = "The answer grew longer than this server sends in one turn; ask for less at once."
TOOL_TOOK_TOO_LONG = "A tool ran longer than this server allows; what it did is not known."
_DELTAS: Final = (TextDeltaChunk, ReasoningDeltaChunk, ToolInputDeltaChunk)
TOOK_TOO_LONG = "The answer took too long and was stopped."


@dataclass(slots=True)
class RunningTurn:
    """A running turn; it is independent of requests and readers.

    ``prefix`` are the chunks of earlier turns and of this turn's answers, for readers that resume.
    ``before`` is the exchange as it was when the turn started, for a turn that continues one.
    ``opening`` are chunks that follow ``start``: closed approvals, an approved client-side call.
    ``last_speaker`` is the agent whose final response ends the run, if the tree has one.
    """

    key: TurnKey
    stamp: TurnStamp
    invocation: str | None
    translator: Translator
    buffer: ReleaseBuffer
    grammar: Grammar
    guard: ApprovalGuard
    ledger: Ledger
    backpressure: ReaderBackpressure
    approval_ttl: Callable[[str, str], float]
    held_limit: int
    last_speaker: str | None
    warn_unforeseen: Callable[[str], None]
    before: RebuiltExchange | None = None
    prefix: Sequence[BaseChunk] = ()
    opening: Sequence[BaseChunk] = ()
    recorder: Recorder | None = None
    writer: StreamWriter | None = None
    """The turn's stream, once it is launched."""
    abort: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    failure: str | None = None
    """The sentence of the error chunk, once the turn has failed."""
    error_id: str | None = None
    readers: int = 0
    idle_timer: asyncio.TimerHandle | None = None
    """Stops the turn unless a reader comes back."""
    telemetry: TurnTelemetry = field(default_factory=TurnTelemetry)
    _model_failed: bool = False
    _last_event: Event | None = None
    _publishing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while chunks are published: events and the fast lane come from different tasks."""

    @property
    def chat(self) -> ChatKey:
        """The chat of the turn."""
        return self.key.chat

    async def run(self, events: AsyncIterator[Event] | None) -> End:
        """Consume the run to its end; `finish` publishes the held output and the last chunk.

        Returns how it ended; `finish` publishes that end. Errors of ADK and of tools fail the turn.
        """
        CURRENT_GUARD.set(self.guard)
        await self.publish([StartChunk(message_id=self.stamp.message), *self.opening])
        if events is None:
            return "finished"
        fast_lane = FastLane(self.backpressure, self._publish_partial)
        CURRENT_FAST_LANE.set(fast_lane)
        try:
            async with aclosing(events) as drained:  # type: ignore[type-var]
                async for event in drained:
                    if self.recorder is not None and event.partial:
                        self.recorder.event(self.chat, event)
                    if self.invocation is None:
                        self.invocation = event.invocation_id
                    await self._feed_event(event)
                    if event.partial:
                        fast_lane.left_runner(event)
                    else:
                        self._last_event = event
        except Exception as error:  # noqa: BLE001 - the one place that catches what ADK raises
            self._failed_with(error)
        fast_lane.close()
        try:
            await self._feed(self.translator.end(), {})
            # A call that was cancelled has no outcome, but the ledger has its approval.
            await self._feed(open_granted_requests(self.buffer, self.guard.granted), {})
        except StreamFull:
            self.fail(STREAM_FULL)
        if self._model_failed:
            self._failed_with(None)
        if self.failure is not None:
            return "failed"
        return "stopped" if self.abort.is_set() else "finished"

    async def _feed_event(self, event: Event) -> None:
        async with self._publishing:
            await self._feed(self.translator.feed(event), notes_of(event))
            if self._ends_with(event):
                await self.publish(self.buffer.release_text())

    def _ends_with(self, event: Event) -> bool:
        """Whether ADK calls no model and no tool after this event; callbacks may still run."""
        # ADK: an event of the agent's own state is a final response too, but has no content.
        has_content = event.content is not None and bool(event.content.parts)
        is_last = event.author == self.last_speaker and event.is_final_response()
        return has_content and is_last and not event.error_code and not event.long_running_tool_ids

    @property
    def has_stored_end(self) -> bool:
        """Whether the session shows that the turn has ended: it waits, or ADK has ended it."""
        last = self._last_event
        return self.buffer.is_waiting or (last is not None and bool(last.actions.end_of_agent))

    def fail(self, sentence: str, error_id: str | None = None) -> None:
        """End the turn with this sentence, once no claimed call runs; the first failure counts."""
        if self.failure is None:
            self.failure = sentence
            self.error_id = error_id
            self.guard.stopping = True
            self.guard.claims.call_when_idle(self.abort.set)

    def cut(self) -> None:
        """End the turn at once, even while a claimed call runs: its effect is then unknown."""
        self.fail(TOOL_TOOK_TOO_LONG)
        self.abort.set()

    async def _publish_partial(self, call: FastLaneCall, response: LlmResponse) -> None:
        """Publish a partial response that bypassed the Runner; errors do not reach the model."""
        async with self._publishing:
            if self.abort.is_set():
                return
            try:
                await self._append_text(call, response)
            except Exception as error:  # noqa: BLE001 - as where events are consumed
                self._failed_with(error)
                self.abort.set()

    async def _append_text(self, call: FastLaneCall, response: LlmResponse) -> None:
        first, content = call.first, response.content
        if first is None or content is None:
            return
        for part in content.parts or ():
            text, thought = part.text or "", bool(part.thought)
            if not self.guard.order.append_text(first.id, text, thought=thought):
                self.guard.order.note(continued(first, part))
            signals = self.translator.append_text(call.speaker, text, thought=thought)
            if signals is None:
                signals = self.translator.feed(continued(first, part))
            for signal in signals:
                await self.publish(self.buffer.feed(signal))
        if self.buffer.held_bytes > self.held_limit:
            self.fail(HELD_TOO_MUCH)

    async def _feed(self, signals: Sequence[Signal], note: Mapping[str, Any]) -> None:
        for each in with_granted_requests(signals, self.buffer, self.guard.granted):
            signal = each
            if isinstance(signal, ApprovalRequested) and not signal.request.automatic:
                signal = await self._record_request(signal)
            elif isinstance(signal, Settled):
                signal = annotated(signal, {}, note)
                closed = closing_decision(signal, self.buffer, self.guard.requests.superseded)
                await self.publish(self.buffer.feed_all(closed))
            elif isinstance(signal, Failed):
                self._model_failed = True
                continue
            elif isinstance(signal, Answered):
                continue
            await self.publish(self.buffer.feed(signal))
        if self.buffer.held_bytes > self.held_limit:
            self.fail(HELD_TOO_MUCH)

    async def _record_request(self, signal: ApprovalRequested) -> Signal:
        """Record the request in the ledger before it is published, and read its deadline."""
        state = self.buffer.calls.get(signal.request.call_id)
        if state is None:
            return signal
        earlier, state.request = state.request, signal.request
        if earlier is not None:
            state.earlier.append(earlier)
        ttl = self.approval_ttl(agent_path(state.call), state.call.name)
        approval = new_approval(self.chat, state, ttl=ttl)
        call_id = state.call.id_in_adk
        requested = self.guard.requested.get(call_id) or self.guard.requested_nodes.get(call_id)
        if requested is not None:
            approval = requested.added_to(approval)
        state.request = earlier
        if earlier is not None:
            state.earlier.pop()
        if state.call.facts.kind == "free":
            self.warn_unforeseen(state.call.name)
        try:
            await self.ledger.request([approval])
            rows = await self.ledger.rows(self.chat)
            if self.recorder is not None:
                self.recorder.approvals(self.chat, rows)
        except StoreError as error:
            # The session has the request, so the end of the turn must close it.
            self._failed_with(error)
            self.abort.set()
            return signal
        finally:
            self.guard.requests.mark_stored(state.call.id_in_adk, approval.key)
        return annotated(signal, {row.approval_id: row for row in rows}, {})

    def _failed_with(self, error: BaseException | None) -> None:
        if self.failure is not None:
            return
        error_id = new_error_id()
        logger.error(
            "turn failed chat=%s turn=%s error=%s %s",
            self.chat.chat,
            self.stamp.turn,
            error_id,
            describe(self.guard.model_error or error, with_text=True),
        )
        self.failure = f"The agent could not finish its answer (error {error_id})."
        self.error_id = error_id

    async def publish(self, chunks: Sequence[BaseChunk]) -> None:
        """Check chunks against the grammar and publish them."""
        writer = self._writer
        for chunk in chunks:
            self.grammar.feed(chunk)
            if isinstance(chunk, _DELTAS):
                self.telemetry.delta()
            try:
                await writer.publish(chunk)
            except StreamFull:
                self.fail(STREAM_FULL)
                # The stream reserves as much room again for the end of the turn.
                await writer.publish(chunk)

    async def publish_unchecked(self, chunk: BaseChunk) -> None:
        """Publish a chunk that the grammar may not allow.

        Raises:
            StoreError: the stream does not take it, or the turn was never launched.
        """
        await self._writer.publish(chunk)

    @property
    def _writer(self) -> StreamWriter:
        if self.writer is None:
            raise StoreError("a turn that was not launched has a chunk to write")
        return self.writer

    async def finish(self, end: End, closing: Sequence[Signal] = ()) -> None:
        """Publish the end of the turn: the held output, then ``finish`` or ``error``, once."""
        chunks = [chunk for signal in closing for chunk in self.buffer.feed(signal)]
        chunks.extend(self.buffer.feed_all(self.translator.end()))
        waiting = self.buffer.is_waiting
        chunks.extend(self.buffer.pause() if waiting else self.buffer.finish())
        await self.publish(chunks)
        if end == "failed":
            sentence = self.failure or "The agent could not finish its answer."
            await self.publish([ErrorChunk(error_text=sentence)])
            return
        reason: FinishReason = "other" if end == "stopped" else self.translator.facts.finish_reason
        if waiting:
            reason = "tool-calls"
        rows = await self._rows()
        is_live = self.stamp.live or (self.before is not None and self.before.exchange.is_live)
        facts = metadata(
            self.translator.facts,
            created_at=self.stamp.created_at,
            version=self.stamp.version,
            stopped=end == "stopped",
            rewindable=not (is_live or any(is_effectful(r, (self.invocation,)) for r in rows)),
            approvals=approvals_in(self.buffer, rows, settled=True),
        )
        await self.publish([FinishChunk(finish_reason=reason, message_metadata=facts)])

    async def _rows(self) -> Collection[ApprovalRow]:
        """The rows of the ledger, read again unless every approval of the turn is final."""
        known = {**self.guard.rows, **self.guard.approved.stored}.values()
        closed = {row.approval_id for row in known if is_closed(row)}
        for state in self.buffer.calls.values():
            asked = state.earlier if state.is_waiting else state.requests
            if any(request.approval_id not in closed for request in asked):
                with contextlib.suppress(StoreError):
                    return await self.ledger.rows(self.chat)
                break
        return known

    async def flush_recorder(self) -> None:
        """Record the states of the approvals and that the turn has ended."""
        if self.recorder is None:
            return
        with contextlib.suppress(StoreError):
            self.recorder.approvals(self.chat, await self.ledger.rows(self.chat))
        self.recorder.flush(self.chat)

    @property
    def is_previewed(self) -> bool:
        """Whether this turn may show text and retract it."""
        return isinstance(self.buffer, DeferredBuffer) and self.buffer.preview

    def preview(self, *, shown: bool) -> None:
        """Show text while it may still be retracted (D4)."""
        if isinstance(self.buffer, DeferredBuffer):
            self.buffer.preview = shown


def can_read(turn: RunningTurn, major: Literal[6, 7]) -> bool:
    """Whether a client can read a running turn: a 6 client cannot retract text (D4)."""
    return major == 7 or not turn.is_previewed
