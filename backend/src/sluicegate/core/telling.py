"""Items to signals, in natural order: blocks, steps, calls and what becomes of them.

Everything that is numbered is numbered here (blocks, sources, code), so that it depends on the
order of the telling alone and is the same live and replayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sluicegate.core.call_book import CallBook
from sluicegate.core.call_chunks import start_chunk
from sluicegate.core.event_parts import CREDENTIAL, INPUT, Code, CodeOutput, Media, Said
from sluicegate.core.gate import NOT_FINISHED
from sluicegate.core.items import (
    CallCut,
    CallMade,
    Cited,
    InputBegun,
    InputText,
    NodeEnded,
    Progress,
    Question,
    Response,
    Verdict,
)
from sluicegate.core.signals import (
    Answered,
    Ask,
    Asked,
    Call,
    Called,
    InputStreamed,
    Neutral,
    Outcome,
    Produced,
    Settled,
    Signal,
    Speech,
    StepBegan,
    StepEnded,
    ToolFacts,
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

    from sluicegate.core.items import Item
    from sluicegate.core.lanes import Lane, Unit
    from sluicegate.core.signals import ToolLookup

CODE_TOOL = "code_execution"
_CODE = ToolFacts(kind="free", dynamic=True)


class Telling:
    """Hears the items of one unit after the other and turns them into signals."""

    def __init__(self, tools: ToolLookup) -> None:
        self.book = CallBook(tools)
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

    def begin(self, unit: Unit) -> None:
        """A unit's turn; another agent than before is announced."""
        self._lane = unit.lane
        if unit.call is None or unit.lane[1] == self._agent:
            return
        if self._agent is not None:
            data = DataChunk(type="data-agent", data={"name": unit.lane[1]}, transient=True)
            self._out.append(Neutral(data))
        self._agent = unit.lane[1]

    def end(self) -> None:
        """A unit has told everything: its block and its step end."""
        self._end_block()
        if self._in_step:
            self._in_step = False
            self._out.append(StepEnded(_name(self._lane)))

    def tell(self, item: Item) -> None:
        """Hear the next item."""
        if type(item) is Said:
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

    def _said(self, said: Said) -> None:
        block = self._block
        if block is None or block[0] is not said.thought:
            self._end_block()
            self._begin_step()
            self._counts[said.thought] += 1
            name = "reasoning" if said.thought else "text"
            block = self._block = (said.thought, f"{name}-{self._counts[said.thought]}")
            if said.thought:
                self._out.append(Neutral(ReasoningStartChunk(id=block[1])))
            else:
                self._out.append(Speech(TextStartChunk(id=block[1])))
        if said.thought:
            self._out.append(Neutral(ReasoningDeltaChunk(id=block[1], delta=said.text)))
        else:
            self._out.append(Speech(TextDeltaChunk(id=block[1], delta=said.text)))

    def _end_block(self) -> None:
        if self._block is None:
            return
        thought, name = self._block
        self._block = None
        if thought:
            self._out.append(Neutral(ReasoningEndChunk(id=name)))
        else:
            self._out.append(Speech(TextEndChunk(id=name)))

    def _begin_step(self) -> None:
        if not self._in_step:
            self._in_step = True
            self._out.append(StepBegan(_name(self._lane)))

    def _input_begun(self, item: InputBegun) -> None:
        self._begin_step()
        call_id = self.book.begin(item.id)
        facts = self.book.facts(self._lane[1], item.name)
        call = Call(call_id, item.name, None, facts, self._lane[1], self._lane[0])
        chunk = start_chunk(call, provider_executed=facts.kind == "free")
        self._out.append(InputStreamed(call_id, chunk))

    def _input_text(self, item: InputText) -> None:
        call_id = self.book.writing(item.id)
        chunk = ToolInputDeltaChunk(tool_call_id=call_id, input_text_delta=item.text)
        self._out.append(InputStreamed(call_id, chunk))

    def _made(self, item: CallMade) -> None:
        self._begin_step()
        self._out.append(Called(self.book.make(item, self._lane)))

    def _cut(self, item: CallCut) -> None:
        self._settle(item.id, NOT_FINISHED)

    def _media(self, item: Media) -> None:
        self._begin_step()
        self._out.append(Produced(FileChunk(url=item.url, media_type=item.media_type)))

    def _cited_once(self, item: Cited) -> None:
        if item.uri in self._cited:
            return
        self._cited.add(item.uri)
        self._begin_step()
        source = f"source-{len(self._cited)}"
        if item.media_type is None:
            title = item.title or None
            page = SourceUrlChunk(source_id=source, url=item.uri, title=title)
            self._out.append(Produced(page))
            return
        document = SourceDocumentChunk(
            source_id=source,
            media_type=item.media_type,
            title=item.title,
            filename=item.uri.rstrip("/").rpartition("/")[2] or None,
        )
        self._out.append(Produced(document))

    def _code_written(self, item: Code) -> None:
        self._begin_step()
        self._codes += 1
        call_id = self.book.enter(f"code-{self._codes}", CODE_TOOL, _CODE, self._lane)
        self._code.setdefault(self._lane, []).append(call_id)
        args: dict[str, Any] = {"language": item.language, "code": item.code}
        self._out.append(
            Called(Call(call_id, CODE_TOOL, args, _CODE, self._lane[1], self._lane[0]))
        )

    def _code_ran(self, item: CodeOutput) -> None:
        waiting = self._code.get(self._lane)
        if waiting:
            output: dict[str, Any] = {"outcome": item.outcome, "output": item.output}
            self._settle(waiting.pop(0), Outcome("output", output))

    def _asked(self, item: Question) -> None:
        if self.book.find(item.original.id) is None:
            self._made(item.original)
        question = self.book.ask(item)
        if question is None:
            return
        self._out.append(
            Asked(
                Ask(
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

    def _judged(self, item: Verdict) -> None:
        question = self.book.question(item.id)
        if question is not None:
            self._out.append(
                Answered(question.call_id, question.approval_id, item.approved, item.reason)
            )

    def _response(self, item: Response) -> None:
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
            self._out.append(Produced(FileChunk(url=file.url, media_type=file.media_type)))

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

    _HEARD: ClassVar[Mapping[type, Callable[[Telling, Any], None]]] = {
        InputBegun: _input_begun,
        InputText: _input_text,
        CallMade: _made,
        CallCut: _cut,
        Media: _media,
        Cited: _cited_once,
        Code: _code_written,
        CodeOutput: _code_ran,
        Question: _asked,
        Response: _response,
        Verdict: _judged,
        NodeEnded: _node_ended,
        Progress: _progress,
    }


def _name(lane: Lane) -> str:
    return lane[1] if lane[0] is None else f"{lane[0]}/{lane[1]}"
