"""Release policy ``progressive``: output is emitted in its natural order (S2-R30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.call_chunks import outcome_chunk
from sluicegate.core.release.base import ApprovalStyle, ReleaseBuffer
from sluicegate.core.signals import InputStarted
from sluicegate.wire.chunks import BaseChunk, DataChunk

if TYPE_CHECKING:
    from sluicegate.core.call_state import CallState
    from sluicegate.core.signals import Outcome, Signal


class ProgressiveBuffer(ReleaseBuffer):
    """Shows each signal at once; only a call that may still need approval is held (T7)."""

    def __init__(self, style: ApprovalStyle, *, text_from_results: bool = False) -> None:
        super().__init__(style, text_from_results=text_from_results)
        self._unstreamed: set[str] = set()
        """Calls whose arguments are not streamed."""

    def feed(self, signal: Signal) -> list[BaseChunk]:
        """Process one signal; arguments of a call that belongs in the last step do not stream."""
        if isinstance(signal, InputStarted) and signal.call.facts.kind == "gated-client":
            self._unstreamed.add(signal.call.id)
            return []
        return super().feed(signal)

    def pause(self) -> list[BaseChunk]:
        """Close the step; its approval requests stay the last thing the client sees."""
        chunks = self._announce_conditional()
        last = [s for s in self.calls.values() if s.belongs_last and not s.announced]
        if last and self.style == "call":
            chunks.extend(self._step.open_empty())
            for announce in (self._announce, self._request):
                chunks.extend(chunk for state in last for chunk in announce(state))
        return [*chunks, *self._step.close()]

    def finish(self) -> list[BaseChunk]:
        """Close every open call, then the last step (T5, T8)."""
        chunks = self._announce_conditional()
        for state in self.calls.values():
            if not state.shown:
                chunks.extend(self._show(state))
        return [*chunks, *self._text_of_results(), *self._step.close_last()]

    def _text(self, chunk: BaseChunk) -> list[BaseChunk]:
        return [*self._step.open(), chunk]

    def _immediate(self, chunk: BaseChunk) -> list[BaseChunk]:
        if isinstance(chunk, DataChunk):
            return [chunk]
        return [*self._step.open(), chunk]

    def _result(self, chunk: BaseChunk) -> list[BaseChunk]:
        return [*self._step.open(), chunk]

    def _input_streamed(self, call_id: str, chunk: BaseChunk) -> list[BaseChunk]:
        if self.style == "confirmation" or call_id in self._unstreamed:
            return []
        self._streamed.add(call_id)
        chunks = self._step.open()
        self._step.announce(call_id)
        return [*chunks, chunk]

    def _step_started(self) -> list[BaseChunk]:
        return [*self._announce_conditional(), *self._step.close(), *self._text_of_results()]

    def _text_of_results(self) -> list[BaseChunk]:
        text = self._describe_results()
        return [*self._step.open(), *text] if text else []

    def _step_finished(self) -> list[BaseChunk]:
        return []

    def _input_available(self, state: CallState) -> list[BaseChunk]:
        kind = state.call.facts.kind
        if kind in ("conditional", "gated-client"):
            return []
        if self.style == "confirmation" and kind == "gated":
            return []
        return [*self._step.open(), *self._announce(state)]

    def _approval_requested(self, state: CallState) -> list[BaseChunk]:
        if self.style == "call" and state.belongs_last:
            return []
        return [*self._step.open(), *self._request(state)]

    def _requested_again(self, state: CallState) -> list[BaseChunk]:
        return self._next_request(state)

    def _settled(self, state: CallState) -> list[BaseChunk]:
        return self._show(state)

    def _progress(self, state: CallState, outcome: Outcome) -> list[BaseChunk]:
        chunks: list[BaseChunk] = []
        if not state.announced:
            if state.was_requested:
                return []
            chunks = [*self._step.open(), *self._announce(state)]
        return [*chunks, outcome_chunk(state.call.id, outcome, preliminary=True)]

    def _show(self, state: CallState) -> list[BaseChunk]:
        """The outcome of a call, after its part."""
        if self.style == "confirmation" and state.was_requested and not state.announced:
            original = [*self._step.next(), *self._show_original(state)]
            return [*original, *self._close_confirmation(state)]
        chunks: list[BaseChunk] = []
        if not state.announced:
            announce = self._request if state.was_requested else self._announce
            chunks = [*self._step.open(), *announce(state)]
        return [*chunks, *self._show_outcome(state)]

    def _announce_conditional(self) -> list[BaseChunk]:
        """Announce held conditional calls: a part belongs to the step it began in (T2, T9)."""
        chunks: list[BaseChunk] = []
        for state in self.calls.values():
            is_held = not state.announced and state.request is None
            if state.call.facts.kind == "conditional" and is_held:
                chunks.extend([*self._step.open(), *self._announce(state)])
            if self.style == "confirmation" and state.shown and state.was_requested:
                chunks.extend(self._close_confirmation(state))
        return chunks
