"""The steps of a message: one is open at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.wire.chunks import (
    BaseChunk,
    FinishStepChunk,
    StartStepChunk,
    ToolInputAvailableChunk,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class StepBoundaries:
    """Writes ``start-step`` and ``finish-step``; at most one step is open (T5)."""

    def __init__(self) -> None:
        self._is_open = False
        self._announced: set[str] = set()
        """Calls whose tool part is in the last step."""
        self._finished: set[str] = set()
        """Those of them that have their final output, and calls that the page has answered."""
        self._repeated: list[ToolInputAvailableChunk] = []
        """Tool parts of the last step to announce again before the next one."""

    @property
    def repeated(self) -> Sequence[ToolInputAvailableChunk]:
        """What `open` will announce again."""
        return self._repeated

    def open(self) -> list[BaseChunk]:
        """Open a step unless one is open."""
        if self._is_open:
            return []
        self._is_open = True
        self.reset()
        repeated, self._repeated = self._repeated, []
        return [*repeated, StartStepChunk()]

    def close(self) -> list[BaseChunk]:
        """Close the open step, if any."""
        if not self._is_open:
            return []
        self._is_open = False
        return [FinishStepChunk()]

    def next(self) -> list[BaseChunk]:
        """Close the open step, if any, and open another."""
        return [*self.close(), *self.open()]

    def open_empty(self) -> list[BaseChunk]:
        """Open a step unless one without tool parts is open."""
        return self.next() if self._is_open and self._announced else self.open()

    def reset(self) -> None:
        """Forget the tool parts of the step: it is empty."""
        self._announced.clear()
        self._finished.clear()

    def announce(self, call_id: str) -> None:
        """Note that the tool part of a call is in the open step."""
        self._announced.add(call_id)

    def repeat(self, chunk: ToolInputAvailableChunk) -> None:
        """Announce a tool part again before the next step, if it is in the last one (T9).

        A client looks for a part that is announced in its last step alone; any other would be
        doubled.
        """
        if chunk.tool_call_id in self._announced:
            self._repeated.append(chunk)

    def holds(self, call_id: str) -> bool:
        """Whether the tool part of a call is in the open step."""
        return self._is_open and call_id in self._announced

    def finish(self, call_id: str) -> None:
        """Note the final output of a server tool; it counts where its part is (T5)."""
        if call_id in self._announced:
            self._finished.add(call_id)

    def answer(self, call_id: str) -> None:
        """Note the output of the page; a step has to follow it wherever its part is (T4)."""
        self._finished.add(call_id)

    def close_last(self) -> list[BaseChunk]:
        """Close the last step of a message that waits for nothing (T5, S2-R47).

        A finished tool in the last step would make the client send the message again, so an empty
        step follows.
        """
        return [*self.next(), *self.close()] if self._finished else self.close()
