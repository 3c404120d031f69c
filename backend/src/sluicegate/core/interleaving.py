"""The order of the parts of agents that run in parallel."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluicegate.core.signal_builder import SignalBuilder
    from sluicegate.core.signals import ReadSignal, Speaker
    from sluicegate.core.streamed_model_call import ModelCall


@dataclass(slots=True, eq=False)
class Segment:
    """Signals that are emitted without interruption; ``call`` for a model call, which is a step."""

    speaker: Speaker
    event_id: str
    call: ModelCall | None = None
    is_open: bool = True
    held: list[ReadSignal] = field(default_factory=list)


class Interleaver:
    """The queue of segments; the signals of the first one are emitted at once."""

    def __init__(self, builder: SignalBuilder) -> None:
        self._builder = builder
        self._queue: deque[Segment] = deque()
        self._model_calls: dict[Speaker, Segment] = {}

    def model_call(self, speaker: Speaker) -> Segment | None:
        """The open segment of a speaker's model call."""
        return self._model_calls.get(speaker)

    def open_segments(self) -> list[Segment]:
        """The segments of model calls that have not ended, in the order in which they began."""
        return [segment for segment in self._queue if segment.is_open]

    def open(self, speaker: Speaker, event_id: str, call: ModelCall) -> Segment:
        """Begin the segment of a model call."""
        segment = Segment(speaker, event_id, call)
        self._model_calls[speaker] = segment
        self._enqueue(segment)
        return segment

    def emit(self, segment: Segment, signals: Iterable[ReadSignal]) -> None:
        """Emit signals of an open segment, or hold them until the segment is the first."""
        if self._queue[0] is not segment:
            segment.held.extend(signals)
            return
        for signal in signals:
            self._builder.feed(signal)

    def close(self, segment: Segment) -> None:
        """End a segment; once it is the first, emit what the next ones hold."""
        segment.is_open = False
        if self._model_calls.get(segment.speaker) is segment:
            del self._model_calls[segment.speaker]
        while self._queue and not self._queue[0].is_open:
            self._queue.popleft()
            self._builder.end()
            if self._queue:
                self._begin(self._queue[0])

    def emit_event(self, speaker: Speaker, event_id: str, signals: Sequence[ReadSignal]) -> None:
        """Emit the signals of an event that is no model response, as a segment of its own."""
        if signals:
            segment = Segment(speaker, event_id)
            self._enqueue(segment)
            self.emit(segment, signals)
            self.close(segment)

    def overtaken_by(self, segment: Segment) -> str | None:
        """The event id of the first segment that began after this one and has already ended."""
        following = iter(self._queue)
        for other in following:
            if other is segment:
                break
        return next((other.event_id for other in following if not other.is_open), None)

    def _enqueue(self, segment: Segment) -> None:
        self._queue.append(segment)
        if len(self._queue) == 1:
            self._begin(segment)

    def _begin(self, segment: Segment) -> None:
        self._builder.begin(segment.speaker, is_model_call=segment.call is not None)
        for signal in segment.held:
            self._builder.feed(signal)
        segment.held = []
