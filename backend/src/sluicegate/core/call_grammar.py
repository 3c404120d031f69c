"""Which chunk may follow which, for the tool calls of one message.

Rules: a call is announced once in a message, and its input is complete in the step that began it
(T2, T9). Approvals and outcomes name an announced call; an outcome is final (T8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeAlias

from sluicegate.errors import ChunkOrderError
from sluicegate.wire.chunks import (
    BaseChunk,
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
    from collections.abc import Mapping

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
_ASKED: Final = frozenset({"approval-requested", "approval-responded"})
_ASKABLE: Final = frozenset({"input-available", "approval-responded"})


class CallGrammar:
    """The calls of a message and their states; every method raises `ChunkOrderError`."""

    def __init__(self, known: Mapping[str, str], reannounced: frozenset[str]) -> None:
        self._states: dict[str, str] = dict(known)
        self._asked = {call for call, state in known.items() if state in _ASKED}
        self._approvals: dict[str, str] = {}
        self._last_step = set(known)
        self._dynamic: dict[str, bool] = {}
        self._reannounced = set(reannounced)

    def begin_step(self) -> None:
        """Forget which calls stood in the last step; nothing is announced again from here on."""
        self._last_step.clear()
        self._reannounced.clear()

    def reset_step(self) -> None:
        """Drop the calls that the open step announced."""
        for call in self._last_step:
            self._states.pop(call, None)
            self._dynamic.pop(call, None)
            self._asked.discard(call)
        self._approvals = {a: c for a, c in self._approvals.items() if c in self._states}
        self._last_step.clear()

    def takes_again(self, chunk: ToolInputAvailableChunk) -> bool:
        """Whether this announces a gated client-side call that was approved, a second time."""
        call = chunk.tool_call_id
        if call not in self._reannounced:
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
        if state is not None:
            if state != "input-streaming":
                refuse(chunk, "announces a call again", call)
            if call not in self._last_step:
                refuse(chunk, "ends the input of a call of another step", call)
            if self._dynamic[call] != bool(chunk.dynamic):
                refuse(chunk, "changes whether the tool is dynamic", call)
        self._last_step.add(call)
        complete = isinstance(chunk, ToolInputAvailableChunk)
        self._states[call] = "input-available" if complete else "output-error"

    def request(self, chunk: ToolApprovalRequestChunk) -> None:
        """``tool-approval-request``."""
        state = self._states.get(chunk.tool_call_id)
        if state not in _ASKABLE:
            refuse(chunk, f"asks about a call in state {state}", chunk.tool_call_id)
        if chunk.approval_id in self._approvals:
            refuse(chunk, "uses an approval id again", chunk.approval_id)
        self._approvals[chunk.approval_id] = chunk.tool_call_id
        self._asked.add(chunk.tool_call_id)
        self._states[chunk.tool_call_id] = "approval-requested"

    def response(self, chunk: ToolApprovalResponseChunk) -> None:
        """``tool-approval-response``; the client knows only approvals of the same message."""
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
            if call not in self._asked:
                refuse(chunk, "denies a call that nobody was asked about", call)
            self._states[call] = "output-denied"
        elif isinstance(chunk, ToolOutputErrorChunk):
            self._states[call] = "output-error"
        else:
            self._states[call] = "output-preliminary" if chunk.preliminary else "output-available"

    def finish(self, chunk: BaseChunk, *, waits: bool) -> None:
        """``finish``; ``waits``: a person or a browser is to go on (T5)."""
        for call, state in self._states.items():
            if state == "input-streaming":
                refuse(chunk, "leaves the input of a call open", call)
            if not waits and state in _FINAL and call in self._last_step:
                refuse(chunk, "ends a message whose last step holds a finished tool", call)


def refuse(chunk: BaseChunk, why: str, name: str | None = None) -> NoReturn:
    """Raise the `ChunkOrderError` that says what is wrong with a chunk."""
    kind = getattr(chunk, "type", type(chunk).__name__)
    raise ChunkOrderError(f"{kind} {why}" + ("" if name is None else f": {name}"))
