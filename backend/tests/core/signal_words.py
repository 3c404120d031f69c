"""Signals as short lines of text, for readable assertions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sluicegate.core.signals import (
    Answered,
    ApprovalRequested,
    Failed,
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
from sluicegate.core.stored_emission_order import in_emission_order
from sluicegate.core.tool_facts import ToolFacts
from sluicegate.core.translator import Translator
from sluicegate.wire.chunks import (
    DataChunk,
    FileChunk,
    SourceDocumentChunk,
    SourceUrlChunk,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from google.adk.events.event import Event

FILES = "/files/"


class Tools:
    """Facts by tool name; every other tool is free."""

    def __init__(self, facts: Mapping[str, ToolFacts] | None = None) -> None:
        self._facts = facts or {}

    def is_hidden(self, author: str) -> bool:
        return False

    def facts(self, author: str, name: str) -> ToolFacts:
        return self._facts.get(name, ToolFacts())


def translate(events: Iterable[Event], tools: Tools | None = None) -> list[Signal]:
    """Every signal of events as they come."""
    translator = Translator(tools or Tools(), files_url=FILES)
    signals = [signal for event in events for signal in translator.feed(event)]
    return [*signals, *translator.end()]


def replayed(events: Sequence[Event], tools: Tools | None = None) -> list[Signal]:
    """Every signal of events of the log, but for answers: live their poster knows them."""
    signals = translate(in_emission_order(events), tools)
    return [signal for signal in signals if not isinstance(signal, Answered)]


def words(signals: Iterable[Signal]) -> list[str]:
    """One line per block, call, step boundary and so on; the pieces of a text are joined."""
    return _Words().read(signals)


class _Words:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}
        self._blocks: dict[str, int] = {}
        self._inputs: dict[str, int] = {}

    def read(self, signals: Iterable[Signal]) -> list[str]:
        for signal in signals:
            self._read(signal)
        return self.lines

    def _name(self, adk_id: str) -> str:
        """ADK's ids are random; the first call is c1, the second c2."""
        if not adk_id.startswith("adk-"):
            return adk_id
        return self._names.setdefault(adk_id, f"c{len(self._names) + 1}")

    def _read(self, signal: Signal) -> None:
        match signal:
            case StepStarted(speaker=speaker):
                self.lines.append(f"step {speaker}")
            case StepFinished():
                self.lines.append("end")
            case TextSignal(chunk=chunk) | ImmediateSignal(chunk=chunk):
                self._block(chunk)
            case InputStarted(call=call):
                self._inputs[call.id] = len(self.lines)
                self.lines.append(f"input {self._name(call.id)} {call.name} ")
            case InputDelta(call_id=call_id, delta=delta):
                self.lines[self._inputs[call_id]] += delta
            case ResultSignal(chunk=chunk):
                self._produced(chunk)
            case _:
                self.lines.append(self._of_call(signal))

    def _of_call(self, signal: Signal) -> str:
        match signal:
            case InputAvailable(call=call):
                marks = f"{call.facts.kind}{' dynamic' if call.facts.dynamic else ''}"
                return f"call {self._name(call.id)} {call.name} {_json(call.args)} {marks}"
            case ApprovalRequested(request=request):
                return f"ask {self._name(request.call_id)}"
            case Answered(call_id=call_id, approval_id=approval, approved=yes, outcome=outcome):
                said = f"{'yes' if yes else 'no'}" if approval else _outcome(outcome)
                return f"answer {self._name(call_id)} {said}"
            case Settled(call_id=call_id, outcome=outcome, preliminary=preliminary):
                verb = "progress" if preliminary else "done"
                return f"{verb} {self._name(call_id)} {_outcome(outcome)}"
            case Failed(code=code):
                return f"failed {code}"
            case _:
                raise AssertionError(signal)

    def _block(self, chunk: Any) -> None:
        if isinstance(chunk, DataChunk):
            assert chunk.transient
            self.lines.append(f"{chunk.type} {_json(chunk.data)}")
            return
        step = chunk.type.rpartition("-")[2]
        if step == "start":
            assert chunk.id not in self._blocks
            self._blocks[chunk.id] = len(self.lines)
            self.lines.append(f"{chunk.id} ")
        elif step == "delta":
            assert self._blocks[chunk.id] == len(self.lines) - 1
            self.lines[-1] += chunk.delta
        else:
            assert self._blocks[chunk.id] == len(self.lines) - 1
            self.lines[-1] += "."

    def _produced(self, chunk: Any) -> None:
        match chunk:
            case FileChunk(url=url, media_type=media_type):
                self.lines.append(f"file {url} {media_type}")
            case SourceUrlChunk(source_id=name, url=url, title=title):
                self.lines.append(f"{name} {url} {title}")
            case SourceDocumentChunk(source_id=name, title=title, media_type=media_type):
                self.lines.append(f"{name} {title} {media_type} {chunk.filename}")
            case _:
                raise AssertionError(chunk)


def _outcome(outcome: Outcome | None) -> str:
    if outcome is None:
        return "nothing"
    return _json(outcome.output) if outcome.kind == "output" else f"{outcome.kind}: {outcome.text}"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
