"""The steps of the message on the wire: at most one is open, the last one is never a trap (T5)."""

from __future__ import annotations

from sluicegate.wire.chunks import BaseChunk, FinishStepChunk, StartStepChunk


class StepWriter:
    """Writes ``start-step`` and ``finish-step`` and knows what stands in the last step."""

    def __init__(self) -> None:
        self.is_open = False
        self._announced: set[str] = set()
        self._finished: set[str] = set()

    def begin(self) -> list[BaseChunk]:
        """Open a step unless one is open."""
        if self.is_open:
            return []
        self.is_open = True
        self._announced.clear()
        self._finished.clear()
        return [StartStepChunk()]

    def close(self) -> list[BaseChunk]:
        """Close the open step, if any."""
        if not self.is_open:
            return []
        self.is_open = False
        return [FinishStepChunk()]

    def renew(self) -> list[BaseChunk]:
        """Close the open step, if any, and open the next."""
        return [*self.close(), *self.begin()]

    def taken_back(self) -> None:
        """``reset-step`` was written: the open step is empty again."""
        self._announced.clear()
        self._finished.clear()

    def announced(self, call_id: str) -> None:
        """A tool part was pushed into the open step."""
        self._announced.add(call_id)

    def has_announced(self, call_id: str) -> bool:
        """Whether the tool part of that call stands in the last step."""
        return call_id in self._announced

    def finished(self, call_id: str) -> None:
        """A server tool has its final output; it counts only where its part stands (T5)."""
        if call_id in self._announced:
            self._finished.add(call_id)

    def seal(self) -> list[BaseChunk]:
        """Close the last step of a message that waits for nobody (T5, S2-R47)."""
        if not self._finished:
            return self.close()
        return [*self.renew(), *self.close()]
