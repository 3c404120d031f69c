"""The calls of an exchange as the wire names them, and what has become of each."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sluicegate.core.calls import start_chunk
from sluicegate.core.events import CREDENTIAL, INPUT, Code, CodeOutput, Media, TextContent
from sluicegate.core.release.base import NOT_FINISHED
from sluicegate.core.signals import (
    Answered,
    ApprovalRequest,
    ApprovalRequested,
    Call,
    CallAborted,
    CallCompleted,
    Cited,
    ConfirmationAnswer,
    ConfirmationRequest,
    InputAvailable,
    InputDelta,
    InputStarted,
    InputStreamed,
    NodeEnded,
    Outcome,
    Progress,
    ResponseReceived,
    ResultChunk,
    Settled,
    Signal,
    StepFinished,
    StepStarted,
    TextChunk,
    ToolFacts,
    UnheldChunk,
)
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
    ToolInputDeltaChunk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sluicegate.core.interleaving import Lane, Segment
    from sluicegate.core.signals import Item, ToolLookup


@dataclass(slots=True)
class KnownCall:
    """A call that was made; ``is_over``: its outcome is known."""

    call: Call
    is_over: bool = False


@dataclass(slots=True)
class KnownRequest:
    """A confirmation request: its approval, and the call it is about."""

    approval_id: str
    call_id: str


@dataclass(slots=True)
class CallRegistry:
    """Calls by ADK's id.

    ADK: some models number their calls anew in each answer, so the same id may come twice in an
    exchange; the wire allows it once in a message (T9), so the later one gets ``~2``.
    """

    tools: ToolLookup
    _latest: dict[str, KnownCall] = field(default_factory=dict)
    _questions: dict[str, KnownRequest] = field(default_factory=dict)
    _begun: dict[str, deque[str]] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    def begin(self, adk_id: str) -> str:
        """Give a wire id to a call whose arguments are about to be told."""
        wire_id = self._free(adk_id)
        self._begun.setdefault(adk_id, deque()).append(wire_id)
        return wire_id

    def writing(self, adk_id: str) -> str:
        """The wire id of the call whose arguments are being told."""
        begun = self._begun.get(adk_id)
        return begun[-1] if begun else self.begin(adk_id)

    def make(self, made: CallCompleted, lane: Lane) -> Call:
        """Enter a complete call."""
        begun = self._begun.get(made.id)
        wire_id = begun.popleft() if begun else self._free(made.wire_id or made.id)
        facts = self.facts(lane[1], made.name)
        if made.kind is not None:
            # A node of a Workflow is a place, not a tool: its next run may be another question.
            facts = replace(facts, kind=made.kind, rememberable=False)
        call = Call(wire_id, made.name, made.args, facts, lane[1], lane[0], made.id)
        self._latest[made.id] = KnownCall(call)
        return call

    def enter(self, call_id: str, name: str, facts: ToolFacts, lane: Lane) -> str:
        """Take an id for a call that ADK has none for."""
        wire_id = self._free(call_id)
        self._latest[wire_id] = KnownCall(Call(wire_id, name, {}, facts, lane[1], lane[0]))
        return wire_id

    def find(self, adk_id: str) -> KnownCall | None:
        """The newest call under that id."""
        return self._latest.get(adk_id)

    def end(self, adk_id: str) -> Call | None:
        """The call, if its outcome was not known before."""
        known = self._latest.get(adk_id)
        if known is None or known.is_over:
            return None
        known.is_over = True
        return known.call

    def ask(self, question: ConfirmationRequest) -> KnownRequest | None:
        """Enter a confirmation request; None if there is nothing left to ask about.

        A node's approval is named like its call, other approvals by ADK.
        """
        is_node = question.answer_name == "adk_request_input"
        about = self._latest.get(question.original.id)
        if about is None or about.is_over or (not is_node and question.id in self._questions):
            return None
        known = KnownRequest(f"{about.call.id}:approval" if is_node else question.id, about.call.id)
        self._questions[question.id] = known
        return known

    def question(self, adk_id: str) -> KnownRequest | None:
        """The newest confirmation request under that id."""
        return self._questions.get(adk_id)

    def facts(self, author: str, name: str) -> ToolFacts:
        """Facts of a tool; what ADK asks the user for is answered in the browser."""
        facts = self.tools.facts(author, name)
        if name in ("adk_request_input", "adk_request_credential"):
            return replace(facts, kind="client")
        return facts

    def _free(self, wanted: str) -> str:
        wire_id, count = wanted or "call", 1
        while wire_id in self._taken:
            count += 1
            wire_id = f"{wanted or 'call'}~{count}"
        self._taken.add(wire_id)
        return wire_id


CODE_TOOL = "code_execution"
_CODE = ToolFacts(kind="free", dynamic=True)


class SignalBuilder:
    """Hears the items of one unit after the other and turns them into signals."""

    def __init__(self, tools: ToolLookup) -> None:
        self.book = CallRegistry(tools)
        self._out: list[Signal] = []
        self._lane: Lane = (None, "")
        self._agent: str | None = None
        self._in_step = False
        self._block: tuple[bool, str] | None = None
        self._counts = {True: 0, False: 0}
        self._cited: set[str] = set()
        self._code: dict[Lane, list[str]] = {}
        self._codes = 0

    def take(self) -> list[Signal]:
        """The signals since the last time."""
        out, self._out = self._out, []
        return out

    def begin(self, unit: Segment) -> None:
        """A unit's turn; another agent than before is announced."""
        self._lane = unit.lane
        if unit.call is None or unit.lane[1] == self._agent:
            return
        if self._agent is not None:
            data = DataChunk(type="data-agent", data={"name": unit.lane[1]}, transient=True)
            self._out.append(UnheldChunk(data))
        self._agent = unit.lane[1]

    def end(self) -> None:
        """A unit has told everything: its block and its step end."""
        self._end_block()
        if self._in_step:
            self._in_step = False
            self._out.append(StepFinished(_name(self._lane)))

    def tell(self, item: Item) -> None:
        """Hear the next item."""
        if type(item) is TextContent:
            self._said(item)
            return
        self._end_block()
        self._HEARD[type(item)](self, item)

    def give_up_code(self) -> None:
        """Code that was written and has no result will have none."""
        for waiting in self._code.values():
            for call_id in waiting:
                self._settle(call_id, NOT_FINISHED)
        self._code.clear()

    def _said(self, said: TextContent) -> None:
        block = self._block
        if block is None or block[0] is not said.thought:
            self._end_block()
            self._begin_step()
            self._counts[said.thought] += 1
            name = "reasoning" if said.thought else "text"
            block = self._block = (said.thought, f"{name}-{self._counts[said.thought]}")
            if said.thought:
                self._out.append(UnheldChunk(ReasoningStartChunk(id=block[1])))
            else:
                self._out.append(TextChunk(TextStartChunk(id=block[1])))
        if said.thought:
            self._out.append(UnheldChunk(ReasoningDeltaChunk(id=block[1], delta=said.text)))
        else:
            self._out.append(TextChunk(TextDeltaChunk(id=block[1], delta=said.text)))

    def _end_block(self) -> None:
        if self._block is None:
            return
        thought, name = self._block
        self._block = None
        if thought:
            self._out.append(UnheldChunk(ReasoningEndChunk(id=name)))
        else:
            self._out.append(TextChunk(TextEndChunk(id=name)))

    def _begin_step(self) -> None:
        if not self._in_step:
            self._in_step = True
            self._out.append(StepStarted(_name(self._lane)))

    def _input_begun(self, item: InputStarted) -> None:
        self._begin_step()
        call_id = self.book.begin(item.id)
        facts = self.book.facts(self._lane[1], item.name)
        call = Call(call_id, item.name, None, facts, self._lane[1], self._lane[0])
        chunk = start_chunk(call, provider_executed=facts.kind == "free")
        self._out.append(InputStreamed(call_id, chunk))

    def _input_text(self, item: InputDelta) -> None:
        call_id = self.book.writing(item.id)
        chunk = ToolInputDeltaChunk(tool_call_id=call_id, input_text_delta=item.text)
        self._out.append(InputStreamed(call_id, chunk))

    def _made(self, item: CallCompleted) -> None:
        self._begin_step()
        self._out.append(InputAvailable(self.book.make(item, self._lane)))

    def _cut(self, item: CallAborted) -> None:
        self._settle(item.id, NOT_FINISHED)

    def _media(self, item: Media) -> None:
        self._begin_step()
        self._out.append(ResultChunk(FileChunk(url=item.url, media_type=item.media_type)))

    def _cited_once(self, item: Cited) -> None:
        if item.uri in self._cited:
            return
        self._cited.add(item.uri)
        self._begin_step()
        source = f"source-{len(self._cited)}"
        if item.media_type is None:
            title = item.title or None
            page = SourceUrlChunk(source_id=source, url=item.uri, title=title)
            self._out.append(ResultChunk(page))
            return
        document = SourceDocumentChunk(
            source_id=source,
            media_type=item.media_type,
            title=item.title,
            filename=item.uri.rstrip("/").rpartition("/")[2] or None,
        )
        self._out.append(ResultChunk(document))

    def _code_written(self, item: Code) -> None:
        self._begin_step()
        self._codes += 1
        call_id = self.book.enter(f"code-{self._codes}", CODE_TOOL, _CODE, self._lane)
        self._code.setdefault(self._lane, []).append(call_id)
        args: dict[str, Any] = {"language": item.language, "code": item.code}
        self._out.append(
            InputAvailable(Call(call_id, CODE_TOOL, args, _CODE, self._lane[1], self._lane[0]))
        )

    def _code_ran(self, item: CodeOutput) -> None:
        waiting = self._code.get(self._lane)
        if waiting:
            output: dict[str, Any] = {"outcome": item.outcome, "output": item.output}
            self._settle(waiting.pop(0), Outcome("output", output))

    def _asked(self, item: ConfirmationRequest) -> None:
        if self.book.find(item.original.id) is None:
            self._made(item.original)
        question = self.book.ask(item)
        if question is None:
            return
        self._out.append(
            ApprovalRequested(
                ApprovalRequest(
                    approval_id=question.approval_id,
                    call_id=question.call_id,
                    confirmation_id=item.id,
                    answer_name=item.answer_name,
                    hint=item.hint,
                    payload=item.payload,
                    branch=self._lane[0],
                    invocation=item.invocation,
                )
            )
        )

    def _judged(self, item: ConfirmationAnswer) -> None:
        question = self.book.question(item.id)
        if question is not None:
            self._out.append(
                Answered(question.call_id, question.approval_id, item.approved, item.reason)
            )

    def _response(self, item: ResponseReceived) -> None:
        known = self.book.find(item.id)
        if known is not None and item.by_user and self._is_browsers(known.call):
            if self.book.end(item.id) is not None:
                outcome = item.outcome
                if known.call.name == CREDENTIAL and outcome.kind == "output":
                    outcome = Outcome("output", {"connected": True})
                self._out.append(Answered(known.call.id, outcome=outcome))
            return
        if self._settle(item.id, item.outcome):
            self._produce(item.media)

    def _is_browsers(self, call: Call) -> bool:
        return call.facts.kind in ("client", "gated-client") or call.name in (INPUT, CREDENTIAL)

    def _node_ended(self, item: NodeEnded) -> None:
        if self._settle(item.id, item.outcome):
            self._produce(item.media)

    def _produce(self, files: Sequence[Media]) -> None:
        for file in files:
            self._out.append(ResultChunk(FileChunk(url=file.url, media_type=file.media_type)))

    def _progress(self, item: Progress) -> None:
        known = self.book.find(item.id)
        if known is not None and not known.is_over:
            outcome = Outcome("output", item.output)
            self._out.append(Settled(known.call.id, outcome, preliminary=True))

    def _settle(self, adk_id: str, outcome: Outcome) -> bool:
        """The first outcome of a call counts; calls of other exchanges are not named (T9)."""
        call = self.book.end(adk_id)
        if call is not None:
            self._out.append(Settled(call.id, outcome))
        return call is not None

    _HEARD: ClassVar[Mapping[type, Callable[[SignalBuilder, Any], None]]] = {
        InputStarted: _input_begun,
        InputDelta: _input_text,
        CallCompleted: _made,
        CallAborted: _cut,
        Media: _media,
        Cited: _cited_once,
        Code: _code_written,
        CodeOutput: _code_ran,
        ConfirmationRequest: _asked,
        ResponseReceived: _response,
        ConfirmationAnswer: _judged,
        NodeEnded: _node_ended,
        Progress: _progress,
    }


def _name(lane: Lane) -> str:
    return lane[1] if lane[0] is None else f"{lane[0]}/{lane[1]}"
