"""Release policies ``deferred`` and ``preview``: output waits for the last approval (S2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from sluicegate.core.call_chunks import confirmation_chunk, progress_chunk
from sluicegate.core.release.base import RESULT_TEXT, ApprovalStyle, ReleaseBuffer
from sluicegate.core.signals import Outcome
from sluicegate.wire.chunks import (
    BaseChunk,
    DataChunk,
    ResetStepChunk,
    TextDeltaChunk,
    TextEndChunk,
)
from sluicegate.wire.encoding import to_json

if TYPE_CHECKING:
    from sluicegate.core.call_state import CallState
    from sluicegate.core.signals import Answered


@dataclass(slots=True)
class CallBatch:
    """The calls of one model step; they are announced together (D2)."""

    calls: list[CallState] = field(default_factory=list)
    is_complete: bool = False
    is_announced: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether each call has settled, needs approval or is client-side."""
        return self.is_complete and all(
            state.request is not None
            or state.outcome is not None
            or state.call.facts.kind == "client"
            for state in self.calls
        )


class DeferredBuffer(ReleaseBuffer):
    """Holds text and results until the exchange ends.

    With ``preview`` it shows text at once and retracts it with ``reset-step`` when a call comes
    (D4).
    """

    def __init__(self, style: ApprovalStyle, *, text_from_results: bool = False) -> None:
        super().__init__(style, text_from_results=text_from_results)
        self.preview = False
        self._earlier_text: list[BaseChunk] = []
        """Text of earlier model calls."""
        self._current_text: list[BaseChunk] = []
        """Text of the current model call."""
        self._shows_text = False
        """Whether the text is shown and may still be retracted."""
        self._step_chunks: list[BaseChunk] = []
        """Chunks of the open step that stay when its text is retracted."""
        self._results: list[BaseChunk] = []
        self._batches: list[CallBatch] = []
        self._early: set[str] = set()
        """Calls that were announced before the others of their step."""
        self._in_model_call = False
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        """The approximate size of the text and results held so far, counted in characters."""
        return self._held_bytes

    def release_text(self) -> list[BaseChunk]:
        """Show the held text before `finish`, unless a call has no outcome yet."""
        has_open_call = any(state.outcome is None for state in self.calls.values())
        if self._in_model_call or has_open_call:
            return []
        return self._flush_text()

    def pause(self) -> list[BaseChunk]:
        """Close the step; text and results stay held."""
        self._in_model_call = False
        last: list[CallState] = []
        chunks = [*self._retract_text(), *self._announce_ready(), *self._announce_early(last)]
        return [*chunks, *self._announce_last(last), *self._step.close()]

    def finish(self) -> list[BaseChunk]:
        """Flush everything in the order of D3, then close the last step (T5)."""
        self._in_model_call = False
        chunks: list[BaseChunk] = []
        for batch in self._batches:
            if not batch.is_announced:
                chunks.extend(self._announce_batch(batch))
        chunks.extend(self._flush_text())
        chunks.extend(self._flush_originals())
        for state in self.calls.values():
            if not state.shown:
                chunks.extend([*self._step.open(), *self._show_outcome(state)])
        for result in self._results:
            chunks.extend([*self._step.open(), result])
        self._results = []
        self._held_bytes = 0
        return [*chunks, *self._step.close_last()]

    def _text(self, chunk: BaseChunk) -> list[BaseChunk]:
        self._current_text.append(chunk)
        self._held_bytes += len(to_json(chunk))
        if not self.preview:
            return []
        if self._shows_text:
            return [chunk]
        self._shows_text = True
        return [*self._step.open(), *_joined([*self._earlier_text, *self._current_text])]

    def _immediate(self, chunk: BaseChunk) -> list[BaseChunk]:
        if isinstance(chunk, DataChunk) and chunk.transient:
            return [chunk]
        retracted = self._retract_text()
        self._step_chunks.append(chunk)
        return [*retracted, *self._step.open(), chunk]

    def _result(self, chunk: BaseChunk) -> list[BaseChunk]:
        self._held_bytes += len(to_json(chunk))
        self._results.append(chunk)
        return []

    def _input_streamed(self, call_id: str, chunk: BaseChunk) -> list[BaseChunk]:
        return self._retract_text()

    def _step_started(self) -> list[BaseChunk]:
        chunks = [*self._retract_text(), *self._step.close()]
        self._end_current_text()
        self._step_chunks = []
        self._in_model_call = True
        self._batches.append(CallBatch())
        return chunks

    def _step_finished(self) -> list[BaseChunk]:
        self._in_model_call = False
        if self._batches:
            self._batches[-1].is_complete = True
        return self._announce_ready()

    def _input_available(self, state: CallState) -> list[BaseChunk]:
        chunks = self._retract_text()
        if not self._batches:
            self._batches.append(CallBatch(is_complete=True))
        self._batches[-1].calls.append(state)
        if state.call.facts.kind in ("free", "conditional"):
            chunks.append(progress_chunk(state.call, "running"))
        return chunks

    def _approval_requested(self, state: CallState) -> list[BaseChunk]:
        return self._announce_ready()

    def _requested_again(self, state: CallState) -> list[BaseChunk]:
        is_announced = any(b.is_announced for b in self._batches if state in b.calls)
        if not is_announced and state.call.id not in self._early:
            return self._announce_ready()
        return [*self._retract_text(), *self._next_request(state)]

    def _settled(self, state: CallState) -> list[BaseChunk]:
        outcome = state.outcome or Outcome("output")
        self._held_bytes += len(repr(outcome.output)) + len(outcome.text)
        progress = progress_chunk(state.call, "done" if outcome.kind == "output" else "failed")
        return [progress, *self._announce_ready()]

    def _progress(self, state: CallState, outcome: Outcome) -> list[BaseChunk]:
        return [progress_chunk(state.call, "running")]

    def _answer(self, state: CallState, answer: Answered) -> list[BaseChunk]:
        """Show an answer; in style ``confirmation`` its part is then announced again (T9).

        The literal S2 rule for SSE sends as long as a message has a decided part, and the outcome
        that would replace this state is held. The rule does not apply to client-side tools
        (S2-R02), whose announcement has a step of its own.
        """
        chunks = super()._answer(state, answer)
        request = state.request
        has_gated_client = any(s.is_client_side and s.request for s in self.calls.values())
        if self.style == "call" or request is None or state.answer is not answer:
            return chunks
        if not has_gated_client:
            self._step.repeat(confirmation_chunk(state.call, request, decided=True))
        return chunks

    def _announce_ready(self) -> list[BaseChunk]:
        if self._in_model_call:
            return []
        chunks: list[BaseChunk] = []
        for batch in self._batches:
            if not batch.is_announced and batch.is_ready and not self._belong_last(batch.calls):
                chunks.extend(self._announce_batch(batch))
        return chunks

    def _announce_early(self, last: list[CallState]) -> list[BaseChunk]:
        """Announce what waits beside calls in which something else waits.

        Those end in a later turn, and their step is announced then; these answers are needed now.
        Those that belong in the last step are added to ``last``.
        """
        chunks: list[BaseChunk] = []
        for batch in self._batches:
            if batch.is_announced or not batch.is_complete:
                continue
            waiting = [s for s in batch.calls if s.is_waiting and s.call.id not in self._early]
            self._early.update(state.call.id for state in waiting)
            if self._belong_last(waiting):
                last.extend(waiting)
            elif waiting:
                chunks.extend([*self._step.open(), *self._announce_waiting(waiting)])
        return chunks

    def _belong_last(self, calls: list[CallState]) -> bool:
        """Whether calls are announced in the last step of the turn, with one that needs it."""
        return self.style == "call" and any(state.belongs_last for state in calls)

    def _announce_last(self, calls: list[CallState]) -> list[BaseChunk]:
        """Announce what belongs in the last step of the turn, in one step with ``calls``."""
        chunks: list[BaseChunk] = []
        for batch in self._batches:
            if not batch.is_announced and batch.is_ready:
                announced, waiting = self._announce_unrequested(batch)
                chunks.extend(announced)
                calls.extend(waiting)
        if not calls:
            return chunks
        return [*chunks, *self._step.open_empty(), *self._announce_waiting(calls)]

    def _announce_batch(self, batch: CallBatch) -> list[BaseChunk]:
        """First the calls without a request, then, in a step of their own, the others.

        D2, S2-R46.
        """
        chunks, waiting = self._announce_unrequested(batch)
        if not waiting:
            return chunks
        return [*chunks, *self._step.open_empty(), *self._announce_waiting(waiting)]

    def _announce_unrequested(self, batch: CallBatch) -> tuple[list[BaseChunk], list[CallState]]:
        """Announce the calls without a request; the others follow in a step of their own."""
        batch.is_announced = True
        if not batch.calls:
            return [], []
        chunks = self._retract_text()
        if batch is not self._batches[-1]:
            chunks.extend(self._step.close())
        unrequested = [s for s in batch.calls if not s.was_requested and not s.is_for_browser]
        early = self._early
        waiting = [s for s in batch.calls if s not in unrequested and s.call.id not in early]
        if unrequested:
            chunks.extend(self._step.open())
            for state in unrequested:
                chunks.extend([*self._announce(state), *self._request(state)])
        return chunks, waiting

    def _announce_waiting(self, waiting: list[CallState]) -> list[BaseChunk]:
        chunks: list[BaseChunk] = []
        if self.style == "call":
            for state in waiting:
                chunks.extend(self._announce(state))
        for state in waiting:
            if state.request is not None:
                chunks.extend(self._request(state))
            elif not state.announced:
                chunks.extend(self._announce(state))
        return chunks

    def _retract_text(self) -> list[BaseChunk]:
        """Preview: hold the text again that is shown (D4)."""
        if not self._shows_text:
            return []
        self._shows_text = False
        self._step.reset()
        return [ResetStepChunk(), *self._step_chunks]

    def _end_current_text(self) -> None:
        """Add the text of the current model call and the messages of results to the earlier text.

        Messages that no text separates share a block (S2-R07).
        """
        text = self._earlier_text
        text.extend(self._current_text)
        self._current_text = []
        last = text[-1] if text else None
        if isinstance(last, TextEndChunk) and last.id.startswith(RESULT_TEXT):
            messages = self._next_messages()
            text[-1:] = [TextDeltaChunk(id=last.id, delta=f"\n\n{each}") for each in messages]
            text.append(last)
        else:
            text.extend(self._describe_results())

    def _flush_text(self) -> list[BaseChunk]:
        if self._shows_text:
            self._shows_text = False
            self._earlier_text, self._current_text = [], []
        self._end_current_text()
        text, self._earlier_text = self._earlier_text, []
        return [*self._step.open(), *_joined(text)] if text else []

    def _flush_originals(self) -> list[BaseChunk]:
        """Style ``confirmation``: a step with each original call, then the closed parts (D3)."""
        if self.style == "call":
            return []
        requested = [s for s in self.calls.values() if s.was_requested and not s.closed]
        if not requested:
            return []
        chunks = self._step.next()
        for state in requested:
            if not state.shown:
                chunks.extend(self._show_original(state))
        for state in requested:
            chunks.extend(self._close_confirmation(state))
        return chunks


def _joined(text: list[BaseChunk]) -> list[BaseChunk]:
    """Held text with one delta per block or result, since all of it is flushed at once."""
    joined: list[BaseChunk] = []
    pieces: list[str] = []
    for chunk, following in zip_longest(text, text[1:]):
        if isinstance(chunk, TextDeltaChunk):
            pieces.append(chunk.delta)
            is_result = chunk.id.startswith(RESULT_TEXT)
            if not is_result and isinstance(following, TextDeltaChunk) and following.id == chunk.id:
                continue
            joined.append(TextDeltaChunk(id=chunk.id, delta="".join(pieces)))
            pieces = []
        else:
            joined.append(chunk)
    return joined
