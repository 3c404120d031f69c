"""One run of ADK for one turn."""

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
from sluicegate.core.events import continued, notes_of
from sluicegate.core.finish_metadata import edits_in, metadata
from sluicegate.core.ledger_overlay import (
    annotated,
    closing_decision,
    open_granted_requests,
    with_granted_requests,
)
from sluicegate.core.plan import new_approval
from sluicegate.core.release.deferred import DeferredBuffer
from sluicegate.core.signals import Answered, ApprovalRequested, Failed, Settled, Signal
from sluicegate.engine.failures import describe
from sluicegate.engine.turn_context import CURRENT_TURN
from sluicegate.errors import StoreError
from sluicegate.stores.streams.base import StreamFull
from sluicegate.wire.chunks import BaseChunk, ErrorChunk, FinishChunk, FinishReason, StartChunk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from google.adk.events.event import Event
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import Runner
    from google.genai import types

    from sluicegate.core.exchanges import TurnStamp
    from sluicegate.core.grammar import Grammar
    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.keys import ChatKey, TurnKey
    from sluicegate.core.release.base import ReleaseBuffer
    from sluicegate.core.translator import Translator
    from sluicegate.engine.guard.guard import ApprovalGuard
    from sluicegate.engine.models.fast_lane import FastLaneCall
    from sluicegate.engine.recorder import Recorder
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.stores.streams.base import StreamWriter

TELEMETRY: Final = TelemetryConfig(capture_message_content=ContentCapturingMode.NO_CONTENT)
"""ADK writes texts and arguments into its spans unless it is told not to."""


def events_of(
    runner: Runner, turn: RunningTurn, message: types.Content | None, max_model_calls: int
) -> AsyncIterator[Event] | None:
    """The events of a run with a message; None where there is nothing to run."""
    if message is None:
        return None
    return runner.run_async(
        user_id=turn.chat.user,
        session_id=turn.chat.chat,
        new_message=message,
        run_config=RunConfig(
            streaming_mode=StreamingMode.SSE,
            max_llm_calls=max_model_calls,
            custom_metadata=turn.stamp.as_metadata(),
            tool_thread_pool_config=ToolThreadPoolConfig(),
            telemetry=TELEMETRY,
        ),
        abort_signal=turn.abort,
    )


logger = logging.getLogger("sluicegate")

End = Literal["finished", "stopped", "failed"]
HELD_TOO_MUCH = "The answer held more than this server keeps back; ask for less at once."
STREAM_FULL = "The answer grew longer than this server sends in one turn; ask for less at once."
TOOL_TOOK_TOO_LONG = "A tool ran longer than this server allows; what it did is not known."
TOOK_TOO_LONG = "The answer took too long and was stopped."


@dataclass(slots=True)
class RunningTurn:
    """A turn and all that it needs; it belongs to no request and no reader.

    ``prefix`` are the chunks of earlier turns and of this turn's answers, for those who resume.
    ``before`` is the exchange as it was when the turn began, for a turn that continues one.
    ``opening`` are chunks that follow ``start``: closed cards, a call the browser may run now.
    """

    key: TurnKey
    stamp: TurnStamp
    invocation: str | None
    translator: Translator
    gate: ReleaseBuffer
    grammar: Grammar
    turn_gate: ApprovalGuard
    ledger: Ledger
    approval_ttl: Callable[[str], float]
    held_limit: int
    new_error_id: Callable[[], str]
    unforeseen: Callable[[str], None]
    before: RebuiltExchange | None = None
    prefix: Sequence[BaseChunk] = ()
    opening: Sequence[BaseChunk] = ()
    tape: Recorder | None = None
    writer: StreamWriter | None = None
    """Where chunks go, once the turn is launched."""
    abort: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    failure: str | None = None
    """The sentence of the error chunk, once the turn has failed."""
    error_id: str | None = None
    is_lost: bool = False
    """Whether the chat's lease has ended, so that another process may write to it."""
    readers: int = 0
    lingering: asyncio.TimerHandle | None = None
    """Stops the turn unless a reader comes back."""
    _model_failed: bool = False
    _telling: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while something is told: events and the fast lane come from different tasks."""

    @property
    def chat(self) -> ChatKey:
        """The chat that is answered."""
        return self.key.chat

    async def run(self, events: AsyncIterator[Event] | None) -> End:
        """Drain the run to its end; write everything but the last chunk.

        Returns how it ended; `finish` writes that end. Never raises what ADK or a tool raised.
        """
        CURRENT_TURN.set(self.turn_gate)
        await self.emit([StartChunk(message_id=self.stamp.message), *self.opening])
        if events is None:
            return "finished"
        fast_lane = self.turn_gate.fast_lane
        fast_lane.emit = self._say
        try:
            async with aclosing(events) as drained:  # type: ignore[type-var]
                async for event in drained:
                    if self.tape is not None and event.partial:
                        self.tape.event(self.chat, event)
                    if self.invocation is None:
                        self.invocation = event.invocation_id
                    async with self._telling:
                        await self._feed(self.translator.feed(event), notes_of(event))
                    if event.partial:
                        fast_lane.left_runner(event)
        except Exception as error:  # noqa: BLE001 - the one place that catches what ADK raises
            self._failed_with(error)
        fast_lane.emit = None
        try:
            await self._feed(self.translator.end(), {})
            # A call that was cut has no outcome, but its yes stands in the ledger.
            await self._feed(open_granted_requests(self.gate, self.turn_gate.granted), {})
        except StreamFull:
            self.fail(STREAM_FULL)
        if self._model_failed:
            self._failed_with(None)
        if self.failure is not None:
            return "failed"
        return "stopped" if self.abort.is_set() else "finished"

    def fail(self, sentence: str, error_id: str | None = None) -> None:
        """End the turn with this sentence, once no claimed call runs; the first failure counts."""
        if self.failure is None:
            self.failure = sentence
            self.error_id = error_id
            self.turn_gate.stopping = True
            self.turn_gate.claims.call_when_idle(self.abort.set)

    def cut(self) -> None:
        """End the turn at once: a claimed call runs longer than it may."""
        self.fail(TOOL_TOOK_TOO_LONG)
        self.abort.set()

    async def _say(self, call: FastLaneCall, response: LlmResponse) -> None:
        """Tell a piece that came past the Runner; the model that said it is not to fail for it."""
        async with self._telling:
            if self.abort.is_set():
                return
            try:
                await self._lengthen(call, response)
            except Exception as error:  # noqa: BLE001 - as where events are drained
                self._failed_with(error)
                self.abort.set()

    async def _lengthen(self, call: FastLaneCall, response: LlmResponse) -> None:
        first, content = call.first, response.content
        if first is None or content is None:
            return
        for part in content.parts or ():
            words, thought = part.text or "", bool(part.thought)
            if not self.turn_gate.order.append_text(first.id, words, thought=thought):
                self.turn_gate.order.note(continued(first, part))
            signals = self.translator.append_text(call.speaker, words, thought=thought)
            if signals is None:
                signals = self.translator.feed(continued(first, part))
            for signal in signals:
                await self.emit(self.gate.feed(signal))
        if self.gate.held_bytes > self.held_limit:
            self.fail(HELD_TOO_MUCH)

    async def _feed(self, signals: Sequence[Signal], note: Mapping[str, Any]) -> None:
        for found in with_granted_requests(signals, self.gate, self.turn_gate.granted):
            signal = found
            if isinstance(signal, ApprovalRequested) and not signal.request.automatic:
                signal = await self._remember(signal)
            elif isinstance(signal, Settled):
                signal = annotated(signal, {}, note)
                closed = closing_decision(signal, self.gate, self.turn_gate.requests.superseded)
                await self.emit(self.gate.feed_all(closed))
            elif isinstance(signal, Failed):
                self._model_failed = True
                continue
            elif isinstance(signal, Answered):
                continue
            await self.emit(self.gate.feed(signal))
        if self.gate.held_bytes > self.held_limit:
            self.fail(HELD_TOO_MUCH)

    async def _remember(self, signal: ApprovalRequested) -> Signal:
        """Write the request to the ledger before anybody sees it, and learn its deadline."""
        state = self.gate.calls.get(signal.request.call_id)
        if state is None:
            return signal
        state.request = signal.request
        approval = new_approval(self.chat, state, ttl=self.approval_ttl(state.call.name))
        state.request = None
        if state.call.facts.kind == "free":
            self.unforeseen(state.call.name)
        try:
            await self.ledger.request([approval])
            rows = await self.ledger.rows(self.chat)
            if self.tape is not None:
                self.tape.approvals(self.chat, rows)
        except StoreError as error:
            # The question stands in the log, so it has to be closed with the turn.
            self._failed_with(error)
            self.abort.set()
            return signal
        finally:
            self.turn_gate.requests.mark_stored(state.call.id_in_adk)
        return annotated(signal, {row.approval_id: row for row in rows}, {})

    def _failed_with(self, error: BaseException | None) -> None:
        if self.failure is not None:
            return
        error_id = self.new_error_id()
        logger.error(
            "turn failed chat=%s turn=%s error=%s %s",
            self.chat.chat,
            self.stamp.turn,
            error_id,
            describe(self.turn_gate.model_error or error),
        )
        self.failure = f"The agent could not finish its answer (error {error_id})."
        self.error_id = error_id

    async def emit(self, chunks: Sequence[BaseChunk]) -> None:
        """Check chunks against the grammar and write them."""
        writer = self._writer
        for chunk in chunks:
            self.grammar.feed(chunk)
            try:
                await writer.publish(chunk)
            except StreamFull:
                self.fail(STREAM_FULL)
                # What ends the turn has as much room again, and this chunk belongs before it.
                await writer.publish(chunk)

    async def write(self, chunk: BaseChunk) -> None:
        """Write a chunk as it is.

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
        """Write the end of the turn: what is held, then ``finish`` or ``error``, once."""
        chunks = [chunk for signal in closing for chunk in self.gate.feed(signal)]
        chunks.extend(self.gate.feed_all(self.translator.end()))
        waiting = self.gate.is_waiting
        chunks.extend(self.gate.pause() if waiting else self.gate.finish())
        await self.emit(chunks)
        if end == "failed":
            sentence = self.failure or "The agent could not finish its answer."
            await self.emit([ErrorChunk(error_text=sentence)])
            return
        reason: FinishReason = "other" if end == "stopped" else self.translator.facts.finish_reason
        if waiting:
            reason = "tool-calls"
        facts = metadata(
            self.translator.facts,
            created_at=self.stamp.created_at,
            edits=edits_in(self.gate, self.turn_gate.rows.values()),
        )
        await self.emit([FinishChunk(finish_reason=reason, message_metadata=facts)])

    async def rest(self) -> None:
        """Tell the tape, if there is one, what became of the approvals, and that this has ended."""
        if self.tape is None:
            return
        with contextlib.suppress(StoreError):
            self.tape.approvals(self.chat, await self.ledger.rows(self.chat))
        self.tape.rest(self.chat)

    @property
    def is_previewed(self) -> bool:
        """Whether this turn may show text and take it back."""
        return isinstance(self.gate, DeferredBuffer) and self.gate.preview

    def preview(self, *, shown: bool) -> None:
        """Show text while it may still be taken back (D4)."""
        if isinstance(self.gate, DeferredBuffer):
            self.gate.preview = shown
