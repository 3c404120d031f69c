"""Release ``progressive``: the natural order, shaped for the stock predicate (S2-R30)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.calls import outcome_chunk
from sluicegate.core.release.base import ReleaseBuffer
from sluicegate.wire.chunks import BaseChunk, DataChunk

if TYPE_CHECKING:
    from sluicegate.core.calls import CallState
    from sluicegate.core.signals import InputStreamed, Outcome


class ProgressiveBuffer(ReleaseBuffer):
    """Shows everything as it comes; only a call that may still ask waits for that (T7)."""

    def pause(self) -> list[BaseChunk]:
        """Close the step; the requests in it stay the last thing the client sees."""
        return [*self._resolve(), *self._step.close()]

    def finish(self) -> list[BaseChunk]:
        """Close every open call, then the last step (T5, T8)."""
        chunks = self._resolve()
        for state in self.calls.values():
            if not state.shown:
                chunks.extend(self._reveal(state))
        return [*chunks, *self._step.seal()]

    def _speech(self, chunk: BaseChunk) -> list[BaseChunk]:
        return [*self._step.begin(), chunk]

    def _neutral(self, chunk: BaseChunk) -> list[BaseChunk]:
        if isinstance(chunk, DataChunk):
            return [chunk]
        return [*self._step.begin(), chunk]

    def _produced(self, chunk: BaseChunk) -> list[BaseChunk]:
        return [*self._step.begin(), chunk]

    def _input_streamed(self, signal: InputStreamed) -> list[BaseChunk]:
        if self.style == "confirmation":
            return []
        self._streamed.add(signal.call_id)
        chunks = self._step.begin()
        self._step.announced(signal.call_id)
        return [*chunks, signal.chunk]

    def _step_began(self) -> list[BaseChunk]:
        return [*self._resolve(), *self._step.close()]

    def _step_ended(self) -> list[BaseChunk]:
        return []

    def _called(self, state: CallState) -> list[BaseChunk]:
        kind = state.call.facts.kind
        if kind == "conditional":
            return []
        if self.style == "confirmation" and kind in ("gated", "gated-client"):
            return []
        return [*self._step.begin(), *self._announce(state)]

    def _asked(self, state: CallState) -> list[BaseChunk]:
        return [*self._step.begin(), *self._request(state)]

    def _settled(self, state: CallState) -> list[BaseChunk]:
        return self._reveal(state)

    def _progress(self, state: CallState, outcome: Outcome) -> list[BaseChunk]:
        chunks: list[BaseChunk] = []
        if not state.announced:
            if state.was_asked:
                return []
            chunks = [*self._step.begin(), *self._announce(state)]
        return [*chunks, outcome_chunk(state.call.id, outcome, preliminary=True)]

    def _reveal(self, state: CallState) -> list[BaseChunk]:
        if self.style == "confirmation" and state.was_asked and not state.announced:
            original = [*self._step.renew(), *self._show_original(state)]
            return [*original, *self._close_confirmation(state)]
        chunks: list[BaseChunk] = []
        if not state.announced:
            chunks = [*self._step.begin(), *self._announce(state)]
        return [*chunks, *self._show_outcome(state)]

    def _resolve(self) -> list[BaseChunk]:
        """Announce what may still ask: its part must stand in the step it began in (T2, T9)."""
        chunks: list[BaseChunk] = []
        for state in self.calls.values():
            if state.call.facts.kind == "conditional" and not state.announced and not state.ask:
                chunks.extend([*self._step.begin(), *self._announce(state)])
            if self.style == "confirmation" and state.shown and state.was_asked:
                chunks.extend(self._close_confirmation(state))
        return chunks
