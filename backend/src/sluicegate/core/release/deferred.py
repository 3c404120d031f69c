"""Releases ``deferred`` and ``preview``: text and results wait for the last approval (S2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from sluicegate.core.calls import progress_chunk
from sluicegate.core.release.base import ApprovalStyle, ReleaseBuffer
from sluicegate.core.signals import InputStreamed, Outcome
from sluicegate.wire.chunks import BaseChunk, DataChunk, ResetStepChunk, TextDeltaChunk
from sluicegate.wire.encoding import to_json

if TYPE_CHECKING:
    from sluicegate.core.calls import CallState


@dataclass(slots=True)
class CallBatch:
    """The calls of one model step; they are announced together (D2)."""

    calls: list[CallState] = field(default_factory=list)
    is_complete: bool = False
    is_announced: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether each call has settled, asked or is client-side."""
        return self.is_complete and all(
            state.ask is not None or state.outcome is not None or state.call.facts.kind == "client"
            for state in self.calls
        )


class DeferredBuffer(ReleaseBuffer):
    """Holds text and results until the exchange ends; ``preview`` shows text while it may (D4)."""

    def __init__(self, style: ApprovalStyle) -> None:
        super().__init__(style)
        self.preview = False
        self._held_speech: list[BaseChunk] = []
        self._own_speech: list[BaseChunk] = []
        self._shows_speech = False
        self._step_record: list[BaseChunk] = []
        self._products: list[BaseChunk] = []
        self._batches: list[CallBatch] = []
        self._model_speaks = False
        self._held = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of the text and results held back, as they would stand on the wire."""
        return self._held

    def pause(self) -> list[BaseChunk]:
        """Close the step; text and results stay held."""
        self._model_speaks = False
        return [*self._take_back(), *self._announce_ready(), *self._step.close()]

    def finish(self) -> list[BaseChunk]:
        """Release all that is held, in the order of D3, then close the last step (T5)."""
        self._model_speaks = False
        chunks: list[BaseChunk] = []
        for batch in self._batches:
            if not batch.is_announced:
                chunks.extend(self._announce_batch(batch))
        chunks.extend(self._release_speech())
        chunks.extend(self._release_originals())
        for state in self.calls.values():
            if not state.shown:
                chunks.extend([*self._step.begin(), *self._show_outcome(state)])
        for product in self._products:
            chunks.extend([*self._step.begin(), product])
        self._products = []
        self._held = 0
        return [*chunks, *self._step.seal()]

    def _speech(self, chunk: BaseChunk) -> list[BaseChunk]:
        self._own_speech.append(chunk)
        self._held += len(to_json(chunk))
        if not self.preview:
            return []
        if self._shows_speech:
            return [chunk]
        self._shows_speech = True
        return [*self._step.begin(), *_joined([*self._held_speech, *self._own_speech])]

    def _neutral(self, chunk: BaseChunk) -> list[BaseChunk]:
        if isinstance(chunk, DataChunk) and chunk.transient:
            return [chunk]
        taken_back = self._take_back()
        self._step_record.append(chunk)
        return [*taken_back, *self._step.begin(), chunk]

    def _produced(self, chunk: BaseChunk) -> list[BaseChunk]:
        self._held += len(to_json(chunk))
        self._products.append(chunk)
        return []

    def _input_streamed(self, signal: InputStreamed) -> list[BaseChunk]:
        return self._take_back()

    def _step_began(self) -> list[BaseChunk]:
        chunks = [*self._take_back(), *self._step.close()]
        self._held_speech.extend(self._own_speech)
        self._own_speech = []
        self._step_record = []
        self._model_speaks = True
        self._batches.append(CallBatch())
        return chunks

    def _step_ended(self) -> list[BaseChunk]:
        self._model_speaks = False
        if self._batches:
            self._batches[-1].is_complete = True
        return self._announce_ready()

    def _called(self, state: CallState) -> list[BaseChunk]:
        chunks = self._take_back()
        if not self._batches:
            self._batches.append(CallBatch(is_complete=True))
        self._batches[-1].calls.append(state)
        if state.call.facts.kind in ("free", "conditional"):
            chunks.append(progress_chunk(state.call, "running"))
        return chunks

    def _asked(self, state: CallState) -> list[BaseChunk]:
        return self._announce_ready()

    def _settled(self, state: CallState) -> list[BaseChunk]:
        outcome = state.outcome or Outcome("output")
        self._held += len(repr(outcome.output)) + len(outcome.text)
        progress = progress_chunk(state.call, "done" if outcome.kind == "output" else "failed")
        return [progress, *self._announce_ready()]

    def _progress(self, state: CallState, outcome: Outcome) -> list[BaseChunk]:
        return [progress_chunk(state.call, "running")]

    def _announce_ready(self) -> list[BaseChunk]:
        if self._model_speaks:
            return []
        chunks: list[BaseChunk] = []
        for batch in self._batches:
            if not batch.is_announced and batch.is_ready:
                chunks.extend(self._announce_batch(batch))
        return chunks

    def _announce_batch(self, batch: CallBatch) -> list[BaseChunk]:
        """First what ran without asking, then, in a step of its own, what waits (D2, S2-R46)."""
        batch.is_announced = True
        if not batch.calls:
            return []
        chunks = self._take_back()
        if batch is not self._batches[-1]:
            chunks.extend(self._step.close())
        unasked = [s for s in batch.calls if not s.was_asked and not s.is_for_browser]
        waiting = [s for s in batch.calls if s not in unasked]
        if unasked:
            chunks.extend(self._step.begin())
            for state in unasked:
                chunks.extend([*self._announce(state), *self._request(state)])
        if waiting:
            chunks.extend(self._step.renew() if unasked else self._step.begin())
            chunks.extend(self._announce_waiting(waiting))
        return chunks

    def _announce_waiting(self, waiting: list[CallState]) -> list[BaseChunk]:
        chunks: list[BaseChunk] = []
        if self.style == "call":
            for state in waiting:
                chunks.extend(self._announce(state))
        for state in waiting:
            chunks.extend(self._request(state) if state.ask else self._announce_once(state))
        return chunks

    def _announce_once(self, state: CallState) -> list[BaseChunk]:
        return [] if state.announced else self._announce(state)

    def _take_back(self) -> list[BaseChunk]:
        """Preview: the text that is shown goes back behind the gate (D4)."""
        if not self._shows_speech:
            return []
        self._shows_speech = False
        self._step.taken_back()
        return [ResetStepChunk(), *self._step_record]

    def _release_speech(self) -> list[BaseChunk]:
        speech = [*self._held_speech, *self._own_speech]
        self._held_speech, self._own_speech = [], []
        if self._shows_speech:
            self._shows_speech = False
            return []
        return [*self._step.begin(), *_joined(speech)] if speech else []

    def _release_originals(self) -> list[BaseChunk]:
        """Style ``confirmation``: a step with each original call, then the closings (D3)."""
        if self.style == "call":
            return []
        asked = [s for s in self.calls.values() if s.was_asked and not s.closed]
        if not asked:
            return []
        chunks = self._step.renew()
        for state in asked:
            if not state.shown:
                chunks.extend(self._show_original(state))
        for state in asked:
            chunks.extend(self._close_confirmation(state))
        return chunks


def _joined(speech: list[BaseChunk]) -> list[BaseChunk]:
    """Text that was held comes in one delta per block: all at once, its pieces tell nothing."""
    joined: list[BaseChunk] = []
    pieces: list[str] = []
    for chunk, following in zip_longest(speech, speech[1:]):
        if isinstance(chunk, TextDeltaChunk):
            pieces.append(chunk.delta)
            if isinstance(following, TextDeltaChunk) and following.id == chunk.id:
                continue
            joined.append(TextDeltaChunk(id=chunk.id, delta="".join(pieces)))
            pieces = []
        else:
            joined.append(chunk)
    return joined
