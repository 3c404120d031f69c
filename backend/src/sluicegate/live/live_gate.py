"""The gate of a live run: a call that asks is held where it stands, and runs on when decided."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.adk.tools._confirmation_utils import apply_confirmation_gate
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from sluicegate.engine.files.result_files import as_object
from sluicegate.engine.guard.claims import ToolCall
from sluicegate.engine.guard.guard import ApprovalGuard
from sluicegate.engine.guard.recovery import STOPPED
from sluicegate.live.tool_copies import copy_tools

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.engine.guard.guard import Connecting
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.sorter import Orders


NOT_YET: Final = "Not run: another call has no result yet; do this again when it has one."

_LEAVING: Final = frozenset({"transfer_to_agent", "task_completed", "finish_task", "exit_loop"})
"""Tools of ADK after which another agent speaks, or none."""


@dataclass(frozen=True, slots=True)
class Question:
    """A call that asks; ``placeholder`` is what ADK answers until somebody has."""

    context: ToolContext
    call: types.FunctionCall
    confirmation: ToolConfirmation
    placeholder: dict[str, Any]


class Desk(Protocol):
    """Where a live gate asks, and who knows the run."""

    def began(self, run: InvocationContext) -> None:
        """The run has begun."""

    def meet(self, event: Event) -> Orders:
        """An event is about to be stored."""

    def connect(
        self, connected: Callable[[LlmRequest], Connecting], request: LlmRequest
    ) -> Connecting:
        """Open a connection to the model."""

    def began_call(self, call_id: str, run: InvocationContext) -> None:
        """A call is looked at, in that part of the run."""

    def owner(self, call_id: str) -> LiveExchange | None:
        """The exchange of a call."""

    def is_stopping(self, exchange: LiveExchange | None) -> bool:
        """Whether no call of an exchange may begin any more."""

    def has_open_calls(self, call_id: str) -> bool:
        """Whether another call than this one is at work, or waits."""

    async def ask(self, question: Question) -> bool:
        """Ask and wait; whether the answer was yes."""


@dataclass
class LiveGate(ApprovalGuard):
    """Asks as ADK does, and waits; everything else is as in any turn.

    ``may_gate``: a tool of the agent may ask, so no tool may keep the model from being heard.
    """

    desk: Desk = field(kw_only=True)
    may_gate: bool = field(kw_only=True)
    _arguments: dict[str, dict[str, Any]] = field(default_factory=dict)

    def begin(self, run: InvocationContext) -> None:
        """The run begins."""
        self.desk.began(run)

    def meet(self, event: Event) -> None:
        """Have the event marked, and its order followed in its own turn."""
        self.order = self.desk.meet(event)  # type: ignore[assignment]  # has its one method

    def connect(
        self, connected: Callable[[LlmRequest], Connecting], request: LlmRequest
    ) -> Connecting:
        """Open a connection; tools get copies that ADK runs beside its receiving loop."""
        copy_tools(request.tools_dict, beside=self.may_gate)
        return self.desk.connect(connected, request)

    async def before(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any] | None:
        """Answer a call in place of its tool, or let it run; one that asks waits here."""
        call_id = self._name(context)
        self.desk.began_call(call_id, context._invocation_context)
        if self.desk.is_stopping(self.desk.owner(call_id)):
            return self._unrun(call_id, STOPPED)
        if self.may_gate and tool.name in _LEAVING and self.desk.has_open_calls(call_id):
            # ADK: with the agent's connection its calls at work end, those that wait among them.
            return self._unrun(call_id, NOT_YET)
        self._arguments[call_id] = copy.deepcopy(arguments)
        await self._look_again()
        answer = await super().before(tool, arguments, context)
        if answer is not None or context.tool_confirmation is not None:
            return answer
        if not await self._will_ask(tool, arguments, context):
            return None
        placeholder = await apply_confirmation_gate(tool, arguments, context)
        await self._ask(tool, context, placeholder or {})
        return await super().before(tool, arguments, context)

    async def after(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext, result: object
    ) -> dict[str, Any] | None:
        """Store the outcome; a tool that asked in its run waits, and runs again."""
        given = await super().after(tool, arguments, context, result)
        requested = context.actions.requested_tool_confirmations
        if (context.function_call_id or "") not in requested:
            return given
        called = copy.deepcopy(self._arguments[self._name(context)])
        confirmed = await self._ask(tool, context, as_object(result) if given is None else given)
        row = self._row(context)
        if row is None or not confirmed:
            return await super().before(tool, called, context)
        return await self._run_again(ToolCall(self._name(context), tool, called, context), row)

    async def _ask(self, tool: BaseTool, context: ToolContext, placeholder: dict[str, Any]) -> bool:
        """Ask and wait; whether the answer was yes, which the context says afterwards too."""
        call_id = context.function_call_id or ""
        asked = context.actions.requested_tool_confirmations.pop(call_id)
        arguments = copy.deepcopy(self._arguments[self._name(context)])
        call = types.FunctionCall(id=call_id, name=tool.name, args=arguments)
        confirmed = await self.desk.ask(Question(context, call, asked, placeholder))
        context.tool_confirmation = ToolConfirmation(
            hint=asked.hint, payload=asked.payload, confirmed=confirmed
        )
        context.actions.skip_summarization = None
        await self._look_again()
        return confirmed

    async def _look_again(self) -> None:
        """Read the ledger as it is now: a live run outlives many decisions."""
        if self.may_gate:
            self.rows = {row.key: row for row in await self.ledger.rows(self.chat)}

    def _is_here(self, row: ApprovalRow, context: ToolContext) -> bool:
        """Whether a row is of the same exchange; all exchanges of a run are one invocation."""
        owner = self.desk.owner(self._name(context))
        return owner is not None and self.desk.owner(row.key.call) is owner

    def _over_cap(self, context: ToolContext) -> bool:
        owner = self.desk.owner(self._name(context))
        mine = [name for name in self._asked if self.desk.owner(name) is owner]
        before = owner.asked_before if owner is not None else set()
        waiting = sum(row.state == "requested" for row in self.rows.values())
        return (
            len([name for name in mine if name not in before]) >= self.caps.per_turn
            or len(mine) >= self.caps.per_exchange
            or waiting >= self.caps.per_chat
        )
