"""Which chunk may follow which: the client's own rules and what the server promises on top.

1 ``start`` comes once and first (T1). 2 Deltas and ends name an open block; a block is open once
at a time, and none is open when its step ends (AI SDK 6). 3 Blocks and tool inputs stand inside a
step (T2). 4 Calls go by `CallGrammar` (T8, T9). 5 The last step of a message that waits for nobody
holds no finished tool (T5). 6 ``finish`` carries metadata, and everything is closed by then (T3).
7 Nothing follows ``finish`` or ``error``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from sluicegate.core.call_grammar import CallGrammar, PartState, refuse
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

__all__ = ["Grammar", "PartState"]

_REASONS: Final = frozenset({"stop", "length", "content-filter", "tool-calls", "error", "other"})


class Grammar:
    """Judges the chunks of one response, in order.

    ``known`` are the calls of earlier turns of the same message with their `PartState`.
    ``reannounced`` are those among them that ``tool-input-available`` may name once more before
    any ``start-step``: gated client-side calls that were approved.
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
        """Take the next chunk.

        Raises:
            ChunkOrderError: it may not follow what came before.
        """
        rule = _RULES.get(type(chunk))
        if rule is None:
            refuse(chunk, "is not a chunk of this protocol")
        rule(self, chunk)

    def close(self) -> None:
        """Say that nothing follows.

        Raises:
            ChunkOrderError: the response has neither ``finish`` nor ``error``.
        """
        if self._phase != "ended":
            raise ChunkOrderError("the response ended without finish or error")

    def _running(self, chunk: BaseChunk) -> None:
        if self._phase == "before":
            refuse(chunk, "comes before start")
        if self._phase == "ended":
            refuse(chunk, "comes after the end")

    def _stepping(self, chunk: BaseChunk) -> None:
        self._running(chunk)
        if not self._in_step:
            refuse(chunk, "stands outside a step")

    def _start(self, chunk: StartChunk) -> None:
        if self._phase != "before":
            refuse(chunk, "comes twice")
        self._phase = "open"

    def _start_step(self, chunk: StartStepChunk) -> None:
        self._running(chunk)
        if self._in_step:
            refuse(chunk, "opens a step inside a step")
        self._in_step = True
        self._calls.begin_step()

    def _finish_step(self, chunk: FinishStepChunk) -> None:
        self._stepping(chunk)
        if self._texts or self._reasonings:
            refuse(chunk, "leaves a block open")
        self._in_step = False

    def _reset_step(self, chunk: ResetStepChunk) -> None:
        self._stepping(chunk)
        self._texts.clear()
        self._reasonings.clear()
        self._calls.reset_step()

    def _text_start(self, chunk: TextStartChunk) -> None:
        self._stepping(chunk)
        if chunk.id in self._texts:
            refuse(chunk, "opens a block that is open", chunk.id)
        self._texts.add(chunk.id)

    def _text_delta(self, chunk: TextDeltaChunk | TextEndChunk) -> None:
        # Blocks are open only between start and the end, so this one check says it all.
        if chunk.id not in self._texts:
            refuse(chunk, "names no open block", chunk.id)

    def _text_end(self, chunk: TextEndChunk) -> None:
        self._text_delta(chunk)
        self._texts.discard(chunk.id)

    def _reasoning_start(self, chunk: ReasoningStartChunk) -> None:
        self._stepping(chunk)
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
        self._stepping(chunk)
        self._calls.input_start(chunk)

    def _input_delta(self, chunk: ToolInputDeltaChunk) -> None:
        self._stepping(chunk)
        self._calls.input_delta(chunk)

    def _input_available(self, chunk: ToolInputAvailableChunk) -> None:
        self._running(chunk)
        if not self._calls.takes_again(chunk):
            self._input_error(chunk)

    def _input_error(self, chunk: ToolInputAvailableChunk | ToolInputErrorChunk) -> None:
        self._stepping(chunk)
        self._calls.input_end(chunk)

    def _request(self, chunk: ToolApprovalRequestChunk) -> None:
        self._running(chunk)
        self._calls.request(chunk)

    def _response(self, chunk: ToolApprovalResponseChunk) -> None:
        self._running(chunk)
        self._calls.response(chunk)

    def _output(
        self, chunk: ToolOutputAvailableChunk | ToolOutputErrorChunk | ToolOutputDeniedChunk
    ) -> None:
        self._running(chunk)
        self._calls.output(chunk)

    def _finish(self, chunk: FinishChunk) -> None:
        self._running(chunk)
        if self._in_step:
            refuse(chunk, "leaves a step open")
        if chunk.finish_reason not in _REASONS:
            refuse(chunk, f"has the reason {chunk.finish_reason}")
        if chunk.message_metadata is None:
            refuse(chunk, "has no metadata")
        self._calls.finish(chunk, waits=chunk.finish_reason == "tool-calls")
        self._phase = "ended"

    def _error(self, chunk: ErrorChunk) -> None:
        self._running(chunk)
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
    AbortChunk: Grammar._running,
    CustomChunk: Grammar._running,
    DataChunk: Grammar._running,
    FileChunk: Grammar._running,
    MessageMetadataChunk: Grammar._running,
    ReasoningFileChunk: Grammar._running,
    SourceDocumentChunk: Grammar._running,
    SourceUrlChunk: Grammar._running,
    SteeringMessageChunk: Grammar._running,
}
