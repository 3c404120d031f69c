"""The grammar of a response: which chunk may follow which.

Rules for tool calls: a call is announced once in a message, and its input is complete in the step
that began it (T2, T9); until its approval is requested, that step may replace the input. Approvals
and outcomes name an announced call; an outcome is final (T8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias

from sluicegate.errors import ChunkOrderError
from sluicegate.wire.chunks import (
    AbortChunk,
    BaseChunk,
    CustomChunk,
    DataChunk,
    ErrorChunk,
    FileChunk,
    FinishChunk,
    FinishStepChunk,
    MessageMetadataChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningFileChunk,
    ReasoningStartChunk,
    ResetStepChunk,
    SourceDocumentChunk,
    SourceUrlChunk,
    StartChunk,
    StartStepChunk,
    SteeringMessageChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputErrorChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PartState: TypeAlias = Literal[
    "input-streaming",
    "input-available",
    "approval-requested",
    "approval-responded",
    "output-preliminary",
    "output-available",
    "output-error",
    "output-denied",
]
"""The state of a tool part, as the AI SDK names it; ``output-preliminary`` is not final yet."""

_FINAL: Final = frozenset({"output-available", "output-error", "output-denied"})
_REQUESTED: Final = frozenset({"approval-requested", "approval-responded"})
_REQUESTABLE: Final = frozenset({"input-available", "approval-responded"})
_CONFIRMATION: Final = "adk_request_confirmation"


class CallGrammar:
    """The calls of a message and their states; a chunk out of order raises `ChunkOrderError`."""

    def __init__(self, known: Mapping[str, str], reannounced: frozenset[str]) -> None:
        self._states: dict[str, str] = dict(known)
        self._requested = {call for call, state in known.items() if state in _REQUESTED}
        self._approvals: dict[str, str] = {}
        self._inputs: dict[str, object] = {}
        self._last_step = set(known)
        self._dynamic: dict[str, bool] = {}
        self._reannounced = set(reannounced)

    def begin_step(self) -> None:
        """Forget the calls of the last step; from here on no call is announced again."""
        self._last_step.clear()
        self._reannounced.clear()

    def reset_step(self) -> None:
        """Drop the calls that the open step announced."""
        for call in self._last_step:
            self._states.pop(call, None)
            self._dynamic.pop(call, None)
            self._requested.discard(call)
        self._approvals = {a: c for a, c in self._approvals.items() if c in self._states}
        self._last_step.clear()

    def reannounce(self, chunk: ToolInputAvailableChunk) -> bool:
        """Accept the second announcement of a decided call before any step, if it is one."""
        call = chunk.tool_call_id
        is_confirmation = (
            chunk.tool_name == _CONFIRMATION
            and bool(chunk.provider_executed)
            and call in self._last_step
            # A reader of major 6 gets no decision.
            and self._states[call] in ("approval-responded", "input-available")
        )
        if call not in self._reannounced and not is_confirmation:
            return False
        self._reannounced.discard(call)
        self._states[call] = "input-available"
        return True

    def input_start(self, chunk: ToolInputStartChunk) -> None:
        """``tool-input-start``, inside a step."""
        call = chunk.tool_call_id
        if call in self._states:
            refuse(chunk, "announces a call again", call)
        self._states[call] = "input-streaming"
        self._dynamic[call] = bool(chunk.dynamic)
        self._last_step.add(call)

    def input_delta(self, chunk: ToolInputDeltaChunk) -> None:
        """``tool-input-delta``."""
        if self._states.get(chunk.tool_call_id) != "input-streaming":
            refuse(chunk, "names no call whose input streams", chunk.tool_call_id)

    def input_end(self, chunk: ToolInputAvailableChunk | ToolInputErrorChunk) -> None:
        """``tool-input-available`` or ``tool-input-error``, inside a step."""
        call = chunk.tool_call_id
        state = self._states.get(call)
        complete = isinstance(chunk, ToolInputAvailableChunk)
        if state is not None:
            # Before its approval is requested, the step may replace the input of a call.
            is_replaced = (
                state == "input-available"
                and complete
                and call in self._last_step
                and chunk.input != self._inputs.get(call)
            )
            if state != "input-streaming" and not is_replaced:
                refuse(chunk, "announces a call again", call)
            if call not in self._last_step:
                refuse(chunk, "ends the input of a call of another step", call)
            if self._dynamic.get(call, False) != bool(chunk.dynamic):
                refuse(chunk, "changes whether the tool is dynamic", call)
        self._last_step.add(call)
        self._states[call] = "input-available" if complete else "output-error"
        self._inputs[call] = chunk.input

    def request(self, chunk: ToolApprovalRequestChunk) -> None:
        """``tool-approval-request``."""
        state = self._states.get(chunk.tool_call_id)
        if state not in _REQUESTABLE:
            refuse(chunk, f"requests approval of a call in state {state}", chunk.tool_call_id)
        if chunk.approval_id in self._approvals:
            refuse(chunk, "uses an approval id again", chunk.approval_id)
        self._approvals[chunk.approval_id] = chunk.tool_call_id
        self._requested.add(chunk.tool_call_id)
        self._states[chunk.tool_call_id] = "approval-requested"

    def response(self, chunk: ToolApprovalResponseChunk) -> None:
        """``tool-approval-response``; the client has only approvals of the same message."""
        call = self._approvals.get(chunk.approval_id)
        if call is None or self._states.get(call) != "approval-requested":
            refuse(chunk, "answers no open approval", chunk.approval_id)
        self._states[call] = "approval-responded"

    def output(
        self, chunk: ToolOutputAvailableChunk | ToolOutputErrorChunk | ToolOutputDeniedChunk
    ) -> None:
        """One of the three outcomes, or a preliminary output."""
        call = chunk.tool_call_id
        state = self._states.get(call)
        if state is None:
            refuse(chunk, "names a call that is not in the message", call)
        if state == "input-streaming":
            refuse(chunk, "ends a call whose input is not complete", call)
        if state in _FINAL:
            refuse(chunk, "ends a call again", call)
        if isinstance(chunk, ToolOutputDeniedChunk):
            if call not in self._requested:
                refuse(chunk, "denies a call without an approval request", call)
            self._states[call] = "output-denied"
        elif isinstance(chunk, ToolOutputErrorChunk):
            self._states[call] = "output-error"
        else:
            self._states[call] = "output-preliminary" if chunk.preliminary else "output-available"

    def finish(self, chunk: BaseChunk, *, waits: bool) -> None:
        """``finish``; ``waits``: a person or a browser has to act first (T5)."""
        for call, state in self._states.items():
            if state == "input-streaming":
                refuse(chunk, "leaves the input of a call open", call)
            if not waits and state in _FINAL and call in self._last_step:
                refuse(chunk, "ends a message whose last step holds a finished tool", call)


def refuse(chunk: BaseChunk, why: str, name: str | None = None) -> NoReturn:
    """Raise a `ChunkOrderError` about a chunk."""
    kind = getattr(chunk, "type", type(chunk).__name__)
    raise ChunkOrderError(f"{kind} {why}" + ("" if name is None else f": {name}"))


_REASONS: Final = frozenset({"stop", "length", "content-filter", "tool-calls", "error", "other"})


class Grammar:
    """Checks the chunks of one response, in order.

    ``known`` are the calls of earlier turns of the same message with their `PartState`.
    ``reannounced`` are those among them that ``tool-input-available`` may name once more before
    any ``start-step``: gated client-side calls that were approved. A decided confirmation of the
    last step may always be announced again before the next one.
    """

    def __init__(
        self,
        known: Mapping[str, str] | None = None,
        *,
        reannounced: frozenset[str] = frozenset(),
    ) -> None:
        self._phase: Literal["before", "open", "ended"] = "before"
        self._in_step = False
        self._texts: set[str] = set()
        self._reasonings: set[str] = set()
        self._calls = CallGrammar(known or {}, reannounced)

    def feed(self, chunk: BaseChunk) -> None:
        """Check the next chunk.

        Raises:
            ChunkOrderError: It may not follow the chunks before it.
        """
        rule = _RULES.get(type(chunk))
        if rule is None:
            refuse(chunk, "is not a chunk of this protocol")
        rule(self, chunk)

    def close(self) -> None:
        """End the response.

        Raises:
            ChunkOrderError: The response has neither ``finish`` nor ``error``.
        """
        if self._phase != "ended":
            raise ChunkOrderError("the response ended without finish or error")

    def _require_open(self, chunk: BaseChunk) -> None:
        if self._phase == "before":
            refuse(chunk, "comes before start")
        if self._phase == "ended":
            refuse(chunk, "comes after the end")

    def _require_step(self, chunk: BaseChunk) -> None:
        self._require_open(chunk)
        if not self._in_step:
            refuse(chunk, "stands outside a step")

    def _start(self, chunk: StartChunk) -> None:
        if self._phase != "before":
            refuse(chunk, "comes twice")
        self._phase = "open"

    def _start_step(self, chunk: StartStepChunk) -> None:
        self._require_open(chunk)
        if self._in_step:
            refuse(chunk, "opens a step inside a step")
        self._in_step = True
        self._calls.begin_step()

    def _finish_step(self, chunk: FinishStepChunk) -> None:
        self._require_step(chunk)
        if self._texts or self._reasonings:
            refuse(chunk, "leaves a block open")
        self._in_step = False

    def _reset_step(self, chunk: ResetStepChunk) -> None:
        self._require_step(chunk)
        self._texts.clear()
        self._reasonings.clear()
        self._calls.reset_step()

    def _text_start(self, chunk: TextStartChunk) -> None:
        self._require_step(chunk)
        if chunk.id in self._texts:
            refuse(chunk, "opens a block that is open", chunk.id)
        self._texts.add(chunk.id)

    def _text_delta(self, chunk: TextDeltaChunk | TextEndChunk) -> None:
        # Blocks are open only between start and finish, so no other check is needed.
        if chunk.id not in self._texts:
            refuse(chunk, "names no open block", chunk.id)

    def _text_end(self, chunk: TextEndChunk) -> None:
        self._text_delta(chunk)
        self._texts.discard(chunk.id)

    def _reasoning_start(self, chunk: ReasoningStartChunk) -> None:
        self._require_step(chunk)
        if chunk.id in self._reasonings:
            refuse(chunk, "opens a block that is open", chunk.id)
        self._reasonings.add(chunk.id)

    def _reasoning_delta(self, chunk: ReasoningDeltaChunk | ReasoningEndChunk) -> None:
        if chunk.id not in self._reasonings:
            refuse(chunk, "names no open block", chunk.id)

    def _reasoning_end(self, chunk: ReasoningEndChunk) -> None:
        self._reasoning_delta(chunk)
        self._reasonings.discard(chunk.id)

    def _input_start(self, chunk: ToolInputStartChunk) -> None:
        self._require_step(chunk)
        self._calls.input_start(chunk)

    def _input_delta(self, chunk: ToolInputDeltaChunk) -> None:
        self._require_step(chunk)
        self._calls.input_delta(chunk)

    def _input_available(self, chunk: ToolInputAvailableChunk) -> None:
        self._require_open(chunk)
        if not self._calls.reannounce(chunk):
            self._input_error(chunk)

    def _input_error(self, chunk: ToolInputAvailableChunk | ToolInputErrorChunk) -> None:
        self._require_step(chunk)
        self._calls.input_end(chunk)

    def _request(self, chunk: ToolApprovalRequestChunk) -> None:
        self._require_open(chunk)
        self._calls.request(chunk)

    def _response(self, chunk: ToolApprovalResponseChunk) -> None:
        self._require_open(chunk)
        self._calls.response(chunk)

    def _output(
        self, chunk: ToolOutputAvailableChunk | ToolOutputErrorChunk | ToolOutputDeniedChunk
    ) -> None:
        self._require_open(chunk)
        self._calls.output(chunk)

    def _finish(self, chunk: FinishChunk) -> None:
        self._require_open(chunk)
        if self._in_step:
            refuse(chunk, "leaves a step open")
        if chunk.finish_reason not in _REASONS:
            refuse(chunk, f"has the reason {chunk.finish_reason}")
        if chunk.message_metadata is None:
            refuse(chunk, "has no metadata")
        self._calls.finish(chunk, waits=chunk.finish_reason == "tool-calls")
        self._phase = "ended"

    def _error(self, chunk: ErrorChunk) -> None:
        self._require_open(chunk)
        self._phase = "ended"
        self._texts.clear()
        self._reasonings.clear()


_RULES: Final[Mapping[type[BaseChunk], Callable[[Grammar, Any], None]]] = {
    StartChunk: Grammar._start,
    StartStepChunk: Grammar._start_step,
    FinishStepChunk: Grammar._finish_step,
    ResetStepChunk: Grammar._reset_step,
    FinishChunk: Grammar._finish,
    ErrorChunk: Grammar._error,
    TextStartChunk: Grammar._text_start,
    TextDeltaChunk: Grammar._text_delta,
    TextEndChunk: Grammar._text_end,
    ReasoningStartChunk: Grammar._reasoning_start,
    ReasoningDeltaChunk: Grammar._reasoning_delta,
    ReasoningEndChunk: Grammar._reasoning_end,
    ToolInputStartChunk: Grammar._input_start,
    ToolInputDeltaChunk: Grammar._input_delta,
    ToolInputAvailableChunk: Grammar._input_available,
    ToolInputErrorChunk: Grammar._input_error,
    ToolApprovalRequestChunk: Grammar._request,
    ToolApprovalResponseChunk: Grammar._response,
    ToolOutputAvailableChunk: Grammar._output,
    ToolOutputErrorChunk: Grammar._output,
    ToolOutputDeniedChunk: Grammar._output,
    AbortChunk: Grammar._require_open,
    CustomChunk: Grammar._require_open,
    DataChunk: Grammar._require_open,
    FileChunk: Grammar._require_open,
    MessageMetadataChunk: Grammar._require_open,
    ReasoningFileChunk: Grammar._require_open,
    SourceDocumentChunk: Grammar._require_open,
    SourceUrlChunk: Grammar._require_open,
    SteeringMessageChunk: Grammar._require_open,
}
