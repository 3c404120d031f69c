"""The calls of an exchange as the wire names them, and what has become of each."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sluicegate.core.signals import Call, ToolFacts

if TYPE_CHECKING:
    from sluicegate.core.items import CallMade, Question
    from sluicegate.core.lanes import Lane
    from sluicegate.core.signals import ToolLookup


@dataclass(slots=True)
class KnownCall:
    """A call that was made; ``is_over``: its outcome is known."""

    call: Call
    is_over: bool = False


@dataclass(slots=True)
class KnownQuestion:
    """A confirmation request: its approval, and the call it is about."""

    approval_id: str
    call_id: str


@dataclass(slots=True)
class CallBook:
    """Calls by ADK's id.

    ADK: some models number their calls anew in each answer, so the same id may come twice in an
    exchange; the wire allows it once in a message (T9), so the later one gets ``~2``.
    """

    tools: ToolLookup
    _latest: dict[str, KnownCall] = field(default_factory=dict)
    _questions: dict[str, KnownQuestion] = field(default_factory=dict)
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

    def make(self, made: CallMade, lane: Lane) -> Call:
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

    def ask(self, question: Question) -> KnownQuestion | None:
        """Enter a confirmation request; None if there is nothing left to ask about.

        A node's approval is named like its call, other approvals by ADK.
        """
        is_node = question.answer_name == "adk_request_input"
        about = self._latest.get(question.original.id)
        if about is None or about.is_over or (not is_node and question.id in self._questions):
            return None
        known = KnownQuestion(
            f"{about.call.id}:approval" if is_node else question.id, about.call.id
        )
        self._questions[question.id] = known
        return known

    def question(self, adk_id: str) -> KnownQuestion | None:
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
