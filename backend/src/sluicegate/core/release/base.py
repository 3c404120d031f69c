"""The steps of the message on the wire: at most one is open, the last one is never a trap (T5)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from sluicegate.core.calls import (
    CallState,
    confirmation_chunks,
    input_chunk,
    outcome_chunk,
    request_chunk,
    start_chunk,
)
from sluicegate.core.signals import (
    Answered,
    ApprovalRequest,
    ApprovalRequested,
    InputAvailable,
    InputStreamed,
    Outcome,
    ResultChunk,
    Settled,
    Signal,
    StepFinished,
    StepStarted,
    TextChunk,
    UnheldChunk,
)
from sluicegate.wire.chunks import (
    BaseChunk,
    FinishStepChunk,
    StartStepChunk,
    ToolApprovalResponseChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


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


ApprovalStyle = Literal["call", "confirmation"]
NOT_FINISHED = Outcome("error", text="This call did not finish.")


class ReleaseBuffer(ABC):
    """The shared part of the releases: the calls, their chunks, the steps."""

    def __init__(self, style: ApprovalStyle) -> None:
        self.style = style
        self.calls: dict[str, CallState] = {}
        self._step = StepWriter()
        self._streamed: set[str] = set()

    @property
    def is_waiting(self) -> bool:
        """Whether the exchange waits for an approval or a browser's output."""
        return any(state.waits for state in self.calls.values())

    @property
    def held_bytes(self) -> int:
        """Roughly what is held back, in bytes (S2-R27)."""
        return 0

    def feed_all(self, signals: Sequence[Signal]) -> list[BaseChunk]:
        """Feed signals in order; return what may be shown now."""
        return [chunk for signal in signals for chunk in self.feed(signal)]

    def feed(self, signal: Signal) -> list[BaseChunk]:
        """Take one signal; return what may be shown now."""
        match signal:
            case TextChunk(chunk=chunk):
                return self._speech(chunk)
            case UnheldChunk(chunk=chunk):
                return self._neutral(chunk)
            case InputStreamed():
                return self._input_streamed(signal)
            case ResultChunk(chunk=chunk):
                return self._produced(chunk)
            case StepStarted():
                return self._step_began()
            case StepFinished():
                return self._step_ended()
            case _:
                return self._call_signal(signal)

    def _call_signal(self, signal: Signal) -> list[BaseChunk]:
        match signal:
            case InputAvailable(call=call):
                state = self.calls.setdefault(call.id, CallState(call))
                return self._called(state)
            case ApprovalRequested(ask=ask) if ask.call_id in self.calls:
                state = self.calls[ask.call_id]
                if state.ask is not None:
                    return []
                state.ask = ask
                if ask.automatic:
                    state.answer = Answered(ask.call_id, ask.approval_id, approved=True)
                return self._asked(state)
            case Settled(call_id=call_id) if call_id in self.calls:
                return self._settle(self.calls[call_id], signal)
            case Answered(call_id=call_id) if call_id in self.calls:
                return self._answered(self.calls[call_id], signal)
            case _:
                return []

    def _settle(self, state: CallState, signal: Settled) -> list[BaseChunk]:
        if state.outcome is not None:
            return []
        if signal.preliminary:
            return self._progress(state, signal.outcome)
        state.outcome = signal.outcome
        return self._settled(state)

    def _answered(self, state: CallState, answer: Answered) -> list[BaseChunk]:
        """What the one who answered knows already; shown to others by a rebuild."""
        if answer.approval_id is None:
            return self._given(state, answer)
        if state.answer is not None or state.ask is None:
            return []
        state.answer = answer
        return [
            ToolApprovalResponseChunk(
                approval_id=answer.approval_id, approved=answer.approved, reason=answer.reason
            )
        ]

    def _given(self, state: CallState, answer: Answered) -> list[BaseChunk]:
        """The browser's own output, which it need not be told."""
        if state.outcome is not None:
            return []
        if state.ask is None:
            state.answer = answer
        state.outcome = answer.outcome or Outcome("output")
        state.shown = True
        chunks: list[BaseChunk] = []
        if not state.announced:
            chunks = [*self._step.begin(), *self._announce(state), *self._step.close()]
        # An answer that adds nothing after it would be asked for again and again (T4).
        self._step.finished(state.call.id)
        return [*chunks, outcome_chunk(state.call.id, state.outcome)]

    def announce_again(self, call_id: str) -> list[BaseChunk]:
        """The call a browser may run now that a person said yes (the exception to T9)."""
        state = self.calls[call_id]
        if state.announced:
            return [input_chunk(state.call, provider_executed=False)]
        return [*self._step.begin(), *self._announce(state)]

    @abstractmethod
    def pause(self) -> list[BaseChunk]:
        """End a turn that waits: what is held stays held."""

    @abstractmethod
    def finish(self) -> list[BaseChunk]:
        """End the exchange: everything held is released, open calls are closed (D3, D7)."""

    @abstractmethod
    def _speech(self, chunk: BaseChunk) -> list[BaseChunk]: ...

    @abstractmethod
    def _neutral(self, chunk: BaseChunk) -> list[BaseChunk]: ...

    @abstractmethod
    def _input_streamed(self, signal: InputStreamed) -> list[BaseChunk]: ...

    @abstractmethod
    def _produced(self, chunk: BaseChunk) -> list[BaseChunk]: ...

    @abstractmethod
    def _step_began(self) -> list[BaseChunk]: ...

    @abstractmethod
    def _step_ended(self) -> list[BaseChunk]: ...

    @abstractmethod
    def _called(self, state: CallState) -> list[BaseChunk]: ...

    @abstractmethod
    def _asked(self, state: CallState) -> list[BaseChunk]: ...

    @abstractmethod
    def _settled(self, state: CallState) -> list[BaseChunk]: ...

    @abstractmethod
    def _progress(self, state: CallState, outcome: Outcome) -> list[BaseChunk]: ...

    def _announce(self, state: CallState) -> list[BaseChunk]:
        """The input of a call, in the step that is open."""
        chunks: list[BaseChunk] = []
        if state.call.id not in self._streamed:
            chunks.append(
                start_chunk(state.call, provider_executed=state.call.facts.kind == "free")
            )
        state.announced = True
        self._step.announced(state.call.id)
        return [*chunks, input_chunk(state.call, provider_executed=state.runs_unasked)]

    def _request(self, state: CallState) -> list[BaseChunk]:
        """The approval request of a call, in the step that holds its part (S2-R03)."""
        ask = state.ask
        if ask is None:
            return []
        if ask.automatic:
            return self._remembered(state, ask)
        chunks: list[BaseChunk] = []
        part_id = state.call.id
        if self.style == "confirmation":
            part_id = ask.approval_id
            chunks = confirmation_chunks(state.call, ask)
            self._step.announced(part_id)
        elif not state.announced:
            chunks = self._announce(state)
        return [*chunks, request_chunk(state.call, ask, part_id)]

    def _remembered(self, state: CallState, ask: ApprovalRequest) -> list[BaseChunk]:
        """A question that was answered before it was asked (A8); no card of its own for it."""
        if self.style == "confirmation":
            return []
        announced = [] if state.announced else self._announce(state)
        answer = ToolApprovalResponseChunk(approval_id=ask.approval_id, approved=True)
        return [*announced, request_chunk(state.call, ask, state.call.id), answer]

    def _show_outcome(self, state: CallState) -> list[BaseChunk]:
        """The final outcome of a call whose part stands in the message (T8)."""
        state.shown = True
        self._step.finished(state.call.id)
        return [outcome_chunk(state.call.id, state.outcome or NOT_FINISHED)]

    def _show_original(self, state: CallState) -> list[BaseChunk]:
        """Style ``confirmation``: the original call with its outcome, first announced here."""
        outcome = state.outcome or NOT_FINISHED
        if outcome.kind == "denied":
            outcome = Outcome("error", text=outcome.text)
        announced = self._announce(state)
        state.shown = True
        self._step.finished(state.call.id)
        return [*announced, outcome_chunk(state.call.id, outcome)]

    def _close_confirmation(self, state: CallState) -> list[BaseChunk]:
        """Style ``confirmation``: the end of the part that carries the approval."""
        if state.ask is None or state.closed:
            return []
        state.closed = True
        part_id = state.ask.approval_id
        self._step.finished(part_id)
        if state.outcome is not None and state.outcome.kind == "denied":
            return [ToolOutputDeniedChunk(tool_call_id=part_id)]
        return [ToolOutputAvailableChunk(tool_call_id=part_id, output={"confirmed": True})]
