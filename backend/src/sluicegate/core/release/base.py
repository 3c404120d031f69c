"""What all release buffers share: the calls, the chunks and the steps of a message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from sluicegate.core.call_chunks import (
    confirmation_chunks,
    input_chunk,
    message_of,
    outcome_chunk,
    request_chunk,
    result_texts,
    start_chunk,
)
from sluicegate.core.call_state import CallState
from sluicegate.core.release.step_boundaries import StepBoundaries
from sluicegate.core.signals import (
    NOT_FINISHED,
    Answered,
    ApprovalRequest,
    ApprovalRequested,
    ImmediateSignal,
    InputAvailable,
    InputDelta,
    InputStarted,
    Outcome,
    ResultSignal,
    Settled,
    Signal,
    StepFinished,
    StepStarted,
    TextSignal,
)
from sluicegate.wire.chunks import (
    BaseChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ApprovalStyle = Literal["call", "confirmation"]
"""The tool part that carries an approval request: the call's own, or one of its own."""

RESULT_TEXT: Final = "result-text-"
"""How the ids of text blocks begin that contain messages of results."""


class ReleaseBuffer(ABC):
    """Turns the signals of an exchange into chunks, as soon as the release policy allows."""

    def __init__(self, style: ApprovalStyle, *, text_from_results: bool = False) -> None:
        self.style = style
        self._text_from_results = text_from_results
        self._result_blocks = 0
        self.calls: dict[str, CallState] = {}
        """The calls of the exchange by the wire's id, in call order."""
        self._step = StepBoundaries()
        self._streamed: set[str] = set()
        """Calls whose arguments were streamed to the client."""

    @property
    def is_waiting(self) -> bool:
        """Whether the exchange waits for an approval or a browser's output."""
        return any(state.is_waiting for state in self.calls.values())

    @property
    def held_bytes(self) -> int:
        """The approximate size of the held output in bytes (S2-R27)."""
        return 0

    @property
    def repeated_inputs(self) -> Sequence[ToolInputAvailableChunk]:
        """The decided confirmations that are announced again before the next step (T9)."""
        return self._step.repeated

    def feed_all(self, signals: Sequence[Signal]) -> list[BaseChunk]:
        """Feed signals in order; return the chunks that may be shown now."""
        return [chunk for signal in signals for chunk in self.feed(signal)]

    def feed(self, signal: Signal) -> list[BaseChunk]:
        """Process one signal; return the chunks that may be emitted now."""
        match signal:
            case TextSignal(chunk=chunk):
                return self._text(chunk)
            case ImmediateSignal(chunk=chunk):
                return self._immediate(chunk)
            case InputDelta(call_id=call_id, delta=delta):
                chunk = ToolInputDeltaChunk(tool_call_id=call_id, input_text_delta=delta)
                return self._input_streamed(call_id, chunk)
            case InputStarted(call=call):
                return self._input_streamed(call.id, start_chunk(call))
            case ResultSignal(chunk=chunk):
                return self._result(chunk)
            case StepStarted():
                return self._step_started()
            case StepFinished():
                return self._step_finished()
            case _:
                return self._feed_call(signal)

    def _feed_call(self, signal: Signal) -> list[BaseChunk]:
        match signal:
            case InputAvailable(call=call):
                state = self.calls.setdefault(call.id, CallState(call))
                return self._input_available(state)
            case ApprovalRequested(request=request) if request.call_id in self.calls:
                state = self.calls[request.call_id]
                return self._add_request(state, request)
            case Settled(call_id=call_id) if call_id in self.calls:
                return self._settle(self.calls[call_id], signal)
            case Answered(call_id=call_id) if call_id in self.calls:
                return self._answer(self.calls[call_id], signal)
            case _:
                return []

    def _add_request(self, state: CallState, request: ApprovalRequest) -> list[BaseChunk]:
        is_again = state.request is not None
        if state.request is not None:
            if not state.is_approved or request.approval_id == state.request.approval_id:
                return []
            state.earlier.append(state.request)
            state.answer = None
        state.request = request
        chunks: list[BaseChunk] = []
        if request.arguments is not None:
            state.call = replace(state.call, args=dict(request.arguments))
            if state.announced and self._step.holds(request.call_id):
                # The client replaces the input of the part: it shows what would run (T9).
                chunks.append(input_chunk(state.call, provider_executed=False))
        if request.automatic:
            state.answer = Answered(request.call_id, request.approval_id, approved=True)
        requested = self._requested_again(state) if is_again else self._approval_requested(state)
        return [*chunks, *requested]

    def _settle(self, state: CallState, signal: Settled) -> list[BaseChunk]:
        if state.outcome is not None:
            return []
        if signal.preliminary:
            return self._progress(state, signal.outcome)
        state.outcome = signal.outcome
        return self._settled(state)

    def _answer(self, state: CallState, answer: Answered) -> list[BaseChunk]:
        """Show an answer; its sender has it already, so a running turn publishes few answers."""
        if answer.approval_id is None:
            return self._client_output(state, answer)
        if state.answer is not None or state.request is None:
            return []
        if answer.approval_id != state.request.approval_id:
            return []
        state.answer = answer
        return [
            ToolApprovalResponseChunk(
                approval_id=answer.approval_id, approved=answer.approved, reason=answer.reason
            )
        ]

    def _client_output(self, state: CallState, answer: Answered) -> list[BaseChunk]:
        if state.outcome is not None:
            return []
        if state.request is None:
            state.answer = answer
        state.outcome = answer.outcome or Outcome("output")
        state.shown = True
        chunks: list[BaseChunk] = []
        if not state.announced:
            chunks = [*self._step.open(), *self._announce(state), *self._step.close()]
        # If nothing followed in another step, the client would send the message again.
        self._step.answer(state.call.id)
        return [*chunks, outcome_chunk(state.call.id, state.outcome)]

    def announce_again(self, call_id: str) -> list[BaseChunk]:
        """Announce an approved call that a browser may run now (the exception to T9)."""
        state = self.calls[call_id]
        if state.announced:
            return [input_chunk(state.call, provider_executed=False)]
        return [*self._step.open(), *self._announce(state)]

    def release_text(self) -> list[BaseChunk]:
        """Show the held text: the exchange ends with the model call that has just ended (D4)."""
        return []

    @abstractmethod
    def pause(self) -> list[BaseChunk]:
        """End a turn that waits: held output stays held."""

    @abstractmethod
    def finish(self) -> list[BaseChunk]:
        """End the exchange: flush held output, close open calls (D3, D7)."""

    @abstractmethod
    def _text(self, chunk: BaseChunk) -> list[BaseChunk]: ...

    @abstractmethod
    def _immediate(self, chunk: BaseChunk) -> list[BaseChunk]: ...

    @abstractmethod
    def _result(self, chunk: BaseChunk) -> list[BaseChunk]: ...

    @abstractmethod
    def _input_streamed(self, call_id: str, chunk: BaseChunk) -> list[BaseChunk]: ...

    @abstractmethod
    def _step_started(self) -> list[BaseChunk]: ...

    @abstractmethod
    def _step_finished(self) -> list[BaseChunk]: ...

    @abstractmethod
    def _input_available(self, state: CallState) -> list[BaseChunk]: ...

    @abstractmethod
    def _approval_requested(self, state: CallState) -> list[BaseChunk]: ...

    @abstractmethod
    def _requested_again(self, state: CallState) -> list[BaseChunk]: ...

    @abstractmethod
    def _settled(self, state: CallState) -> list[BaseChunk]: ...

    @abstractmethod
    def _progress(self, state: CallState, outcome: Outcome) -> list[BaseChunk]: ...

    def _next_messages(self) -> list[str]:
        """The messages of the results since the last time, in call order (S2-R07, R08)."""
        if not self._text_from_results:
            return []
        settled = [s for s in self.calls.values() if s.outcome is not None and not s.described]
        for state in settled:
            state.described = True
        return [message for state in settled if (message := message_of(state)) is not None]

    def _describe_results(self) -> list[BaseChunk]:
        """The messages of the results since the last time, as a text block of their own."""
        messages = self._next_messages()
        self._result_blocks += bool(messages)
        return result_texts(f"{RESULT_TEXT}{self._result_blocks}", messages)

    def _announce(self, state: CallState) -> list[BaseChunk]:
        """The tool part of a call, in the open step."""
        chunks: list[BaseChunk] = []
        if state.call.id not in self._streamed:
            chunks.append(start_chunk(state.call))
        state.announced = True
        self._step.announce(state.call.id)
        return [*chunks, input_chunk(state.call, provider_executed=state.is_provider_executed)]

    def _request(self, state: CallState) -> list[BaseChunk]:
        """The approval request of a call, in the step that holds its part (S2-R03)."""
        request = state.request
        if request is None:
            return []
        if request.automatic:
            return self._granted_request(state, request)
        chunks: list[BaseChunk] = []
        part_id = state.call.id
        if self.style == "confirmation":
            part_id = request.approval_id
            chunks = confirmation_chunks(state.call, request)
            self._step.announce(part_id)
        elif not state.announced:
            chunks = self._announce(state)
        return [*chunks, request_chunk(state.call, request, part_id)]

    def _next_request(self, state: CallState) -> list[BaseChunk]:
        """The next approval request of a call whose part is in the message.

        Style ``call``: it takes the place of the approved one, in the step of the part, so that a
        client's rule for the last step still sees it.
        """
        if self.style == "call":
            return self._request(state)
        return [*self._step.next(), *self._request(state)]

    def _granted_request(self, state: CallState, request: ApprovalRequest) -> list[BaseChunk]:
        """A request that a grant has approved, with its response (A8); it has no own part."""
        if self.style == "confirmation":
            return []
        announced = [] if state.announced else self._announce(state)
        response = ToolApprovalResponseChunk(approval_id=request.approval_id, approved=True)
        return [*announced, request_chunk(state.call, request, state.call.id), response]

    def _show_outcome(self, state: CallState) -> list[BaseChunk]:
        """The final outcome of a call whose part is in the message (T8)."""
        state.shown = True
        self._step.finish(state.call.id)
        return [outcome_chunk(state.call.id, state.outcome or NOT_FINISHED)]

    def _show_original(self, state: CallState) -> list[BaseChunk]:
        """Style ``confirmation``: the original call with its outcome, first announced here."""
        outcome = state.outcome or NOT_FINISHED
        if outcome.kind == "denied":
            outcome = Outcome("error", text=outcome.text)
        announced = self._announce(state)
        state.shown = True
        self._step.finish(state.call.id)
        return [*announced, outcome_chunk(state.call.id, outcome)]

    def _close_confirmation(self, state: CallState) -> list[BaseChunk]:
        """Style ``confirmation``: the end of the part that carries the approval."""
        if state.request is None or state.closed:
            return []
        state.closed = True
        chunks: list[BaseChunk] = []
        for request in state.requests:
            if request.automatic:
                continue
            part_id = request.approval_id
            self._step.finish(part_id)
            is_last = request is state.request
            if is_last and state.outcome is not None and state.outcome.kind == "denied":
                chunks.append(ToolOutputDeniedChunk(tool_call_id=part_id))
            else:
                confirmed = ToolOutputAvailableChunk(
                    tool_call_id=part_id, output={"confirmed": True}
                )
                chunks.append(confirmed)
        return chunks
