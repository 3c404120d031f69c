"""Bounds on what is asked of a person."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.adk.tools.tool_confirmation import ToolConfirmation

from sluicegate.core.approvals import NewApproval
from sluicegate.core.emission_order import EmissionOrder
from sluicegate.core.events import CONFIRMATION, NODE_CONFIRMATION, arguments_of, calls_of, text
from sluicegate.core.json_values import hash_arguments, json_safe
from sluicegate.core.keys import CallKey, ChatKey
from sluicegate.engine.files.result_files import as_object
from sluicegate.engine.guard.claims import ApprovedCalls, RunningClaims, ToolCall
from sluicegate.engine.guard.plugin import CallIds
from sluicegate.engine.guard.recovery import (
    NOT_APPROVED,
    REPEATED_AFTER_DENIAL,
    STOPPED,
    TOO_MANY,
    Outcomes,
)
from sluicegate.engine.models.fast_lane import FastLanes
from sluicegate.engine.turn_context import Notices
from sluicegate.errors import ToolError
from sluicegate.tools.gated import terms_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.adk.events.event import Event

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.stores.approvals.ledger import Ledger


@dataclass(frozen=True, slots=True)
class ApprovalLimits:
    """How many approvals may be asked for (A6, S2-R43)."""

    per_turn: int
    per_exchange: int
    per_chat: int


class ApprovalRequests:
    """The questions that ADK has stored in this turn, by ADK's ids of their calls."""

    def __init__(self) -> None:
        """Begin without a question."""
        self.closed: dict[str, ApprovalRow] = {}
        """The rows, by approval id, of questions that ended with the turn."""
        self._written: dict[str, asyncio.Event] = {}

    def meet(self, event: Event) -> None:
        """Notice the questions of an event that is about to be stored."""
        for call in calls_of(event):
            if call.name == CONFIRMATION:
                original = arguments_of(call).get("originalFunctionCall")
                self._written.setdefault(text(original, "id"), asyncio.Event())

    def written(self, call: str) -> None:
        """The question about a call is in the ledger, or never gets there."""
        self._written.setdefault(call, asyncio.Event()).set()

    async def close(
        self, chat: ChatKey, invocation: str, calls: Iterable[str], ledger: Ledger
    ) -> list[ApprovalRow]:
        """Close the questions about calls which ADK ends by itself, before it stores their end.

        The turn hears of a question after ADK, so its row may be still to come.

        Raises:
            StoreError: The ledger cannot be written.
        """
        asked = [call for call in calls if call in self._written]
        for call in asked:
            await self._written[call].wait()
        rows = await ledger.supersede([CallKey(*chat, invocation, call) for call in asked])
        self.closed.update((row.approval_id, row) for row in rows)
        return rows


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.engine.files.result_files import ResultFiles
    from sluicegate.engine.guard.guard import ApprovalLimits
    from sluicegate.engine.models.model_files import ModelFiles
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.tools.client_tools import ClientTool
    from sluicegate.tools.gated import Policy

    Connecting = AbstractAsyncContextManager[BaseLlmConnection]


@dataclass(slots=True)
class ApprovalGuard:
    """The gated calls of one turn.

    ``rows`` are the chat's ledger rows as of the start of the turn, which holds the lease.
    ``client_outputs`` are results of gated client-side calls by call id, ``page_tools`` what the
    page brings along. ``outcomes`` are notes for function responses: how else a call ended (T8).
    """

    chat: ChatKey
    owner: str
    ledger: Ledger
    rows: dict[CallKey, ApprovalRow]
    caps: ApprovalLimits
    ttl: Callable[[str], float]
    files: ResultFiles
    models: ModelFiles
    new_error_id: Callable[[], str]
    report: Callable[[str, BaseException], None]
    policy: Policy | None = None
    client_outputs: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    page_tools: tuple[ClientTool, ...] = ()
    outcomes: Outcomes = field(default_factory=Outcomes)
    remembered: dict[str, ApprovalRow] = field(default_factory=dict)
    """Calls of this turn that were approved without asking, by ADK's id (A8)."""
    stopping: bool = False
    model_error: Exception | None = None
    """What a model raised; only its type and place are told, and only to the log."""
    claims: RunningClaims = field(default_factory=lambda: RunningClaims(60.0))
    order: EmissionOrder = field(default_factory=EmissionOrder)
    call_ids: CallIds = field(default_factory=CallIds)
    lanes: FastLanes = field(default_factory=FastLanes)
    asks: ApprovalRequests = field(default_factory=ApprovalRequests)
    notices: Notices = field(default_factory=Notices)
    approved: ApprovedCalls = field(init=False)
    _asked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin without any call."""
        self.approved = ApprovedCalls(
            chat=self.chat,
            owner=self.owner,
            ledger=self.ledger,
            claims=self.claims,
            outcomes=self.outcomes,
            policy=self.policy,
            report=self._reported,
        )

    def begin(self, run: InvocationContext) -> None:
        """The run begins in which the turn's calls are made."""

    def meet(self, event: Event) -> None:
        """An event of the run is about to be stored."""

    def connect(
        self, connected: Callable[[LlmRequest], Connecting], request: LlmRequest
    ) -> Connecting:
        """Open a connection to a live model."""
        return connected(request)

    async def before(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any] | None:
        """Answer a call in place of its tool, or let it run, claimed if it was approved."""
        call_id = self._name(context)
        if self.stopping:
            return self._unrun(call_id, STOPPED)
        confirmation = context.tool_confirmation
        if confirmation is None:
            return await self._before_asking(tool, arguments, context)
        row = self._row(context)
        if row is None:
            return self._unrun(call_id, NOT_APPROVED)
        if confirmation.confirmed is not True:
            return self.outcomes.closed(call_id, row)
        if call_id in self.client_outputs:
            return self.client_outputs[call_id]
        return await self.approved.begin(ToolCall(call_id, tool, arguments, context), row)

    async def after(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext, result: object
    ) -> dict[str, Any] | None:
        """Store the outcome of a claimed call before ADK stores its event."""
        call_id = self._name(context)
        outcome, shown = await self.files.after(result, is_claimed=call_id in self.claims)
        if call_id in self.claims:
            outcome, shown = self.approved.noted(call_id, outcome, shown, result)
            await self.approved.end(call_id, outcome)
        requested = context.actions.requested_tool_confirmations
        asks_for = context.function_call_id or ""
        if asks_for in requested and call_id not in self._asked:
            call = ToolCall(call_id, tool, arguments, context)
            row = await self._approve_remembered(call)
            if row is not None:
                del requested[asks_for]
                return await self._run_again(call, row)
            why = await self._may_not_ask(call)
            if why is not None:
                del requested[asks_for]
                return self._unrun(call_id, why)
            self._asked.add(call_id)
        return shown

    async def failed(self, context: ToolContext, error: BaseException) -> dict[str, Any] | None:
        """Turn a tool's exception into one safe sentence for model and user (T8)."""
        if isinstance(error, asyncio.CancelledError):
            self.claims.let_go(self._name(context), cut=True)
            return None
        call_id = self._name(context)
        if isinstance(error, ToolError):
            sentence = str(error)
        else:
            sentence = f"The tool failed (error {self._reported(error)})."
        answer = self._unrun(call_id, sentence)
        return await self.approved.fail(call_id, answer) if call_id in self.claims else answer

    async def _before_asking(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any] | None:
        call_id = self._name(context)
        digest = hash_arguments(json_safe(arguments))
        for row in self.rows.values():
            same_call = row.tool == tool.name and row.args_hash == digest
            if same_call and row.state == "denied" and self._is_here(row, context):
                return self._unrun(call_id, REPEATED_AFTER_DENIAL)
        if await self._will_ask(tool, arguments, context):
            call = ToolCall(call_id, tool, arguments, context)
            remembered = await self._approve_remembered(call)
            if remembered is not None:
                return await self.approved.begin(call, remembered)
            why = await self._may_not_ask(call)
            if why is not None:
                return self._unrun(call_id, why)
            self._asked.add(call_id)
        return None

    async def _may_not_ask(self, call: ToolCall) -> str | None:
        """Why a call is refused without asking; None if a person is asked."""
        if self._over_cap(call.context):
            return TOO_MANY
        why = await self.approved.forbidden(call, None, self.chat.user)
        return None if why is None else f"Not run: {why}"

    async def _will_ask(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> bool:
        try:
            return await tool.check_require_confirmation(arguments, context) is True
        except Exception:  # noqa: BLE001 - a predicate is the user's and may raise anything;
            # ADK asks it next and takes what it raises for a failure of the tool (T8).
            return False

    async def _approve_remembered(self, call: ToolCall) -> ApprovalRow | None:
        """Answer ADK's question before it is asked, if the chat remembers a yes (A8)."""
        context = call.context
        # A node of a Workflow is asked about by its place, and its calls are not shown otherwise.
        if not terms_of(call.tool).rememberable or context.node is not None:
            return None
        # Only a yes to the same tool can have been remembered, so most calls need not be looked up.
        if not any(row.answer and row.tool == call.tool.name for row in self.rows.values()):
            return None
        arguments = json_safe(call.arguments)
        new = NewApproval(
            key=CallKey(*self.chat, context.invocation_id, call.name),
            approval_id=f"remembered-{secrets.token_hex(12)}",
            tool=call.tool.name,
            args_hash=hash_arguments(arguments),
            ttl=self.ttl(call.tool.name),
            arguments=arguments,
        )
        row = await self.ledger.approve_by_grant(new)
        if row is not None:
            self.rows[row.key] = self.remembered[call.name] = row
            context.tool_confirmation = ToolConfirmation(confirmed=True)
        return row

    async def _run_again(self, call: ToolCall, row: ApprovalRow) -> dict[str, Any] | None:
        """Run a tool that has asked in its own code as ADK does after a person's yes."""
        context = call.context
        # Tools set it beside their question, so that the model does not comment on it.
        context.actions.skip_summarization = None
        answer = await self.approved.begin(call, row)
        if answer is not None:
            return answer
        try:
            result = await self._execute(call.tool, call.arguments, context)
        except asyncio.CancelledError as cancelled:
            await self.failed(context, cancelled)
            raise
        except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
            return await self.failed(context, error)
        context.actions.requested_tool_confirmations.pop(context.function_call_id or "", None)
        shown = await self.after(call.tool, call.arguments, context, result)
        # ADK still holds the first result, which was only the question.
        return as_object(result) if shown is None else shown

    async def _execute(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> Any:
        return await tool.run_async(args=arguments, tool_context=context)

    def _unrun(self, call_id: str, sentence: str) -> dict[str, Any]:
        return self.outcomes.unrun(call_id, sentence)

    def _reported(self, error: BaseException) -> str:
        error_id = self.new_error_id()
        self.report(error_id, error)
        return error_id

    def _row(self, context: ToolContext) -> ApprovalRow | None:
        return self.rows.get(CallKey(*self.chat, context.invocation_id, self._name(context)))

    def _name(self, context: ToolContext) -> str:
        """What a call is called in the ledger and in notes.

        ADK: a tool node of a Workflow gets a fresh call id per run; its interrupt id is stable.
        """
        call_id = context.function_call_id or ""
        interrupt = NODE_CONFIRMATION + context.node_path
        node = CallKey(*self.chat, context.invocation_id, interrupt)
        return interrupt if node in self.rows else call_id

    def _is_here(self, row: ApprovalRow, context: ToolContext) -> bool:
        return row.key.invocation == context.invocation_id

    def _over_cap(self, context: ToolContext) -> bool:
        rows = self.rows.values()
        waiting = sum(row.state == "requested" for row in rows)
        exchange = sum(self._is_here(row, context) and not row.is_automatic for row in rows)
        asked = len(self._asked)
        return (
            asked >= self.caps.per_turn
            or exchange + asked >= self.caps.per_exchange
            or waiting + asked >= self.caps.per_chat
        )
