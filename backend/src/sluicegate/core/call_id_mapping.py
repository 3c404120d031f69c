"""The ids of calls and approval requests: ADK's and those of the wire."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sluicegate.core.event_reading import CREDENTIAL, INPUT, NODE_CONFIRMATION

if TYPE_CHECKING:
    from sluicegate.core.signals import ApprovalRequest, Call, Speaker
    from sluicegate.core.tool_facts import ToolFacts, ToolLookup


@dataclass(slots=True)
class RegisteredCall:
    """A call of the exchange.

    ``is_settled``: its final outcome is known. ``requests`` counts its approval requests.
    """

    call: Call
    is_settled: bool = False
    requests: int = 0


@dataclass(frozen=True, slots=True)
class RegisteredRequest:
    """The wire's ids of an approval request and its call."""

    approval_id: str
    call_id: str


class CallIdMapping:
    """The calls and approval requests of an exchange by ADK's id.

    ADK: some models number their calls anew in each answer, so an exchange may have an id twice;
    the wire allows it once in a message (T9), so the later one gets ``~2``.
    """

    def __init__(self, tools: ToolLookup) -> None:
        self._tools = tools
        self._calls: dict[str, RegisteredCall] = {}
        """The newest call of each id."""
        self._requests: dict[str, RegisteredRequest] = {}
        self._streaming: dict[str, deque[str]] = {}
        """Wire ids of calls whose arguments stream and that are not complete yet."""
        self._used: set[str] = set()

    def start_input(self, adk_id: str) -> str:
        """Allocate the wire id of a call whose arguments begin to stream."""
        wire_id = self._allocate(adk_id)
        self._streaming.setdefault(adk_id, deque()).append(wire_id)
        return wire_id

    def streaming_id(self, adk_id: str) -> str:
        """The wire id of the call whose arguments stream."""
        streaming = self._streaming.get(adk_id)
        return streaming[-1] if streaming else self.start_input(adk_id)

    def add(self, call: Call, speaker: Speaker) -> Call:
        """Register a complete call; return it with its wire id and facts."""
        adk_id = call.id_in_adk
        streaming = self._streaming.get(adk_id)
        wire_id = streaming.popleft() if streaming else self._allocate(call.id)
        facts = self.facts(speaker.agent, call.name)
        if adk_id.startswith(NODE_CONFIRMATION):
            # A node of a Workflow is no tool: its next run may request something else.
            facts = replace(facts, kind="gated", rememberable=False)
        return self._register(adk_id, wire_id, replace(call, facts=facts), speaker)

    def add_without_id(self, call: Call, speaker: Speaker) -> Call:
        """Register a call that has no id in ADK; return it with its wire id."""
        wire_id = self._allocate(call.id)
        return self._register(wire_id, wire_id, call, speaker)

    def _register(self, adk_id: str, wire_id: str, call: Call, speaker: Speaker) -> Call:
        branch, agent = speaker
        registered = replace(call, id=wire_id, author=agent, branch=branch, adk_id=adk_id)
        self._calls[adk_id] = RegisteredCall(registered)
        return registered

    def get(self, adk_id: str) -> RegisteredCall | None:
        """The newest call of that id."""
        return self._calls.get(adk_id)

    def asks_again(self, call: Call) -> bool:
        """Whether a call is that of a node which has asked before and has no outcome."""
        known = self._calls.get(call.id_in_adk)
        if known is None or not call.id_in_adk.startswith(NODE_CONFIRMATION):
            return False
        return known.requests > 0 and not known.is_settled

    def settle(self, adk_id: str) -> Call | None:
        """Settle a call; return it, or None if it is settled already or not known."""
        registered = self._calls.get(adk_id)
        if registered is None or registered.is_settled:
            return None
        registered.is_settled = True
        return registered.call

    def add_request(self, request: ApprovalRequest) -> RegisteredRequest | None:
        """Register an approval request; None if its call is settled or it is a repetition.

        The approval of a node is named after its call and the number of the request, others by
        ADK.
        """
        about = self._calls.get(request.call_id)
        is_known = request.confirmation_id in self._requests and not request.is_of_node
        if about is None or about.is_settled or is_known:
            return None
        call_id, approval_id = about.call.id, request.confirmation_id
        about.requests += 1
        if request.is_of_node:
            # ADK: all requests of a node have the id of its interrupt.
            approval_id = f"{call_id}:approval"
            if about.requests > 1:
                approval_id = f"{approval_id}-{about.requests}"
        registered = RegisteredRequest(approval_id, call_id)
        self._requests[request.confirmation_id] = registered
        return registered

    def request(self, confirmation_id: str) -> RegisteredRequest | None:
        """The newest approval request of that id."""
        return self._requests.get(confirmation_id)

    def facts(self, author: str, name: str) -> ToolFacts:
        """Facts of a tool; ADK's own requests to the user are answered in the browser."""
        facts = self._tools.facts(author, name)
        return replace(facts, kind="client") if name in (INPUT, CREDENTIAL) else facts

    def _allocate(self, wanted: str) -> str:
        base = wanted or "call"
        wire_id, count = base, 1
        while wire_id in self._used:
            count += 1
            wire_id = f"{base}~{count}"
        self._used.add(wire_id)
        return wire_id
