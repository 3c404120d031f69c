"""Contents and signals with ADK's ids in, signals with the wire's ids, blocks and steps out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sluicegate.core.call_id_mapping import CallIdMapping
from sluicegate.core.event_reading import CREDENTIAL
from sluicegate.core.signals import (
    CONNECTED,
    NOT_FINISHED,
    Answered,
    ApprovalRequested,
    Call,
    Code,
    CodeOutput,
    ImmediateSignal,
    InputAvailable,
    InputDelta,
    InputStarted,
    Media,
    Outcome,
    ResultSignal,
    Settled,
    Signal,
    Source,
    Speaker,
    StepFinished,
    StepStarted,
    TextContent,
    TextSignal,
)
from sluicegate.core.tool_facts import ToolFacts
from sluicegate.wire.chunks import (
    DataChunk,
    FileChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningStartChunk,
    SourceDocumentChunk,
    SourceUrlChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sluicegate.core.signals import ReadSignal
    from sluicegate.core.tool_facts import ToolLookup

CODE_TOOL: Final = "code_execution"
_CODE_FACTS: Final = ToolFacts(kind="free", dynamic=True)


class SignalBuilder:
    """Turns what is read of one segment after the other into signals with the ids of the wire.

    A segment is what one event, or the events of one model call, contribute without interruption.
    """

    def __init__(self, tools: ToolLookup) -> None:
        self._tools = tools
        self._calls = CallIdMapping(tools)
        self._signals: list[Signal] = []
        self._speaker = Speaker(None, "")
        self._agent: str | None = None
        """The agent of the last model call."""
        self._in_step = False
        self._block: tuple[bool, str] | None = None
        """Whether the open block is a thought, and its id."""
        self._blocks = {True: 0, False: 0}
        self._sources: set[str] = set()
        self._code_calls: dict[Speaker, list[str]] = {}
        """Code calls without a result, by the agent that runs them."""
        self._code_count = 0
        self._is_hidden = False
        self._hidden_calls: dict[str, Call] = {}
        """Calls of hidden agents that are not shown, by ADK's id: each may still ask."""

    def drain(self) -> list[Signal]:
        """The signals since the last call of `drain`."""
        signals, self._signals = self._signals, []
        return signals

    def begin(self, speaker: Speaker, *, is_model_call: bool) -> None:
        """Begin a segment; announce a model call of another agent than before."""
        self._speaker = speaker
        self._is_hidden = self._tools.is_hidden(speaker.agent)
        if self._is_hidden or not is_model_call or speaker.agent == self._agent:
            return
        if self._agent is not None:
            data = DataChunk(type="data-agent", data={"name": speaker.agent}, transient=True)
            self._signals.append(ImmediateSignal(data))
        self._agent = speaker.agent

    def end(self) -> None:
        """End a segment: its block and its step are closed."""
        self._end_block()
        if self._in_step:
            self._in_step = False
            self._signals.append(StepFinished(self._speaker.label))

    def feed(self, signal: ReadSignal) -> None:
        """Process the next signal of the segment."""
        if self._is_hidden and self._hides(signal):
            return
        if type(signal) is TextContent:
            self._text(signal)
            return
        self._end_block()
        self._RULES[type(signal)](self, signal)

    def _hides(self, signal: ReadSignal) -> bool:
        """Whether a signal of a hidden agent is not shown: all but calls that may wait."""
        if isinstance(signal, InputStarted | InputAvailable):
            call = signal.call
            if self._calls.facts(self._speaker.agent, call.name).kind != "free":
                return False
            self._hidden_calls[call.id_in_adk] = call
            return True
        if isinstance(signal, InputDelta):
            return signal.call_id in self._hidden_calls
        return isinstance(signal, TextContent | Media | Source | Code | CodeOutput)

    def settle_code(self) -> None:
        """Settle code calls without a result as not finished."""
        for call_ids in self._code_calls.values():
            for call_id in call_ids:
                self._settle(call_id, NOT_FINISHED)
        self._code_calls.clear()

    def _text(self, content: TextContent) -> None:
        block = self._block
        if block is None or block[0] is not content.thought:
            self._end_block()
            self._begin_step()
            self._blocks[content.thought] += 1
            name = "reasoning" if content.thought else "text"
            block = self._block = (content.thought, f"{name}-{self._blocks[content.thought]}")
            if content.thought:
                self._signals.append(ImmediateSignal(ReasoningStartChunk(id=block[1])))
            else:
                self._signals.append(TextSignal(TextStartChunk(id=block[1])))
        if content.thought:
            delta = ReasoningDeltaChunk(id=block[1], delta=content.text)
            self._signals.append(ImmediateSignal(delta))
        else:
            self._signals.append(TextSignal(TextDeltaChunk(id=block[1], delta=content.text)))

    def _end_block(self) -> None:
        if self._block is None:
            return
        thought, name = self._block
        self._block = None
        if thought:
            self._signals.append(ImmediateSignal(ReasoningEndChunk(id=name)))
        else:
            self._signals.append(TextSignal(TextEndChunk(id=name)))

    def _begin_step(self) -> None:
        if not self._in_step:
            self._in_step = True
            self._signals.append(StepStarted(self._speaker.label))

    def _file(self, file: Media) -> None:
        self._begin_step()
        self._add_file(file)

    def _add_file(self, file: Media) -> None:
        self._signals.append(ResultSignal(FileChunk(url=file.url, media_type=file.media_type)))

    def _source(self, source: Source) -> None:
        """A source is shown once in a message."""
        if source.uri in self._sources:
            return
        self._sources.add(source.uri)
        self._begin_step()
        source_id = f"source-{len(self._sources)}"
        if source.media_type is None:
            page = SourceUrlChunk(source_id=source_id, url=source.uri, title=source.title or None)
            self._signals.append(ResultSignal(page))
            return
        document = SourceDocumentChunk(
            source_id=source_id,
            media_type=source.media_type,
            title=source.title,
            filename=source.uri.rstrip("/").rpartition("/")[2] or None,
        )
        self._signals.append(ResultSignal(document))

    def _code(self, code: Code) -> None:
        self._begin_step()
        self._code_count += 1
        args: dict[str, Any] = {"language": code.language, "code": code.code}
        call = self._calls.add_without_id(
            Call(f"code-{self._code_count}", CODE_TOOL, args, _CODE_FACTS), self._speaker
        )
        self._code_calls.setdefault(self._speaker, []).append(call.id)
        self._signals.append(InputAvailable(call))

    def _code_output(self, result: CodeOutput) -> None:
        call_ids = self._code_calls.get(self._speaker)
        if call_ids:
            output: dict[str, Any] = {"outcome": result.outcome, "output": result.output}
            self._settle(call_ids.pop(0), Outcome("output", output))

    def _input_started(self, signal: InputStarted) -> None:
        self._begin_step()
        call_id = self._calls.start_input(signal.call.id)
        branch, agent = self._speaker
        facts = self._calls.facts(agent, signal.call.name)
        call = replace(signal.call, id=call_id, facts=facts, author=agent, branch=branch)
        self._signals.append(InputStarted(call))

    def _input_delta(self, signal: InputDelta) -> None:
        self._signals.append(InputDelta(self._calls.streaming_id(signal.call_id), signal.delta))

    def _input_available(self, signal: InputAvailable) -> None:
        if self._calls.asks_again(signal.call):
            return
        self._begin_step()
        self._signals.append(InputAvailable(self._calls.add(signal.call, self._speaker)))

    def _approval_requested(self, signal: ApprovalRequested) -> None:
        request = signal.request
        call = signal.call or self._hidden_calls.pop(request.call_id, None)
        if call is not None and self._calls.get(request.call_id) is None:
            self._input_available(InputAvailable(call))
        registered = self._calls.add_request(request)
        if registered is not None:
            self._signals.append(
                ApprovalRequested(
                    replace(
                        request,
                        approval_id=registered.approval_id,
                        call_id=registered.call_id,
                        branch=self._speaker.branch,
                    )
                )
            )

    def _decided(self, signal: Answered) -> None:
        registered = self._calls.request(signal.approval_id or "")
        if registered is not None:
            decision = replace(
                signal, call_id=registered.call_id, approval_id=registered.approval_id
            )
            self._signals.append(decision)

    def _settled(self, signal: Settled) -> None:
        registered = self._calls.get(signal.call_id)
        if registered is None or registered.is_settled:
            # The first outcome of a call counts; calls of other exchanges are not named (T9).
            return
        call = registered.call
        if signal.preliminary:
            self._signals.append(Settled(call.id, signal.outcome, preliminary=True))
        elif signal.by_user and call.facts.kind in ("client", "gated-client"):
            self._calls.settle(signal.call_id)
            outcome = signal.outcome
            if call.name == CREDENTIAL and outcome.kind == "output":
                outcome = CONNECTED
            self._signals.append(Answered(call.id, outcome=outcome))
        else:
            self._settle(signal.call_id, signal.outcome)
            for file in signal.files:
                self._add_file(file)

    def _settle(self, adk_id: str, outcome: Outcome) -> None:
        call = self._calls.settle(adk_id)
        if call is not None:
            self._signals.append(Settled(call.id, outcome))

    _RULES: ClassVar[Mapping[type, Callable[[SignalBuilder, Any], None]]] = {
        Media: _file,
        Source: _source,
        Code: _code,
        CodeOutput: _code_output,
        InputStarted: _input_started,
        InputDelta: _input_delta,
        InputAvailable: _input_available,
        ApprovalRequested: _approval_requested,
        Answered: _decided,
        Settled: _settled,
    }
