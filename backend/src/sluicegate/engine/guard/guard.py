"""The approval guard: no gated call of a turn runs without an approval, each at most once."""

from __future__ import annotations

import asyncio
import copy
import logging
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_confirmation import ToolConfirmation

from sluicegate.core.approvals import NewApproval
from sluicegate.core.call_keys import CallKey
from sluicegate.core.closed_approval_outcomes import OUTCOME_UNKNOWN
from sluicegate.core.confirmation_payload_form import is_form
from sluicegate.core.event_reading import NODE_CONFIRMATION
from sluicegate.core.stored_emission_order import EmissionOrder
from sluicegate.core.tool_definition_changes import changes
from sluicegate.engine.agents.tool_declarations import definition_of, is_of_mcp_server, schema_of
from sluicegate.engine.agents.wait_for_concurrent_calls import ConcurrentCalls, refusal_beside_task
from sluicegate.engine.guard.approval_request_details import ApprovalRequestDetails
from sluicegate.engine.guard.call_ids import CallIds
from sluicegate.engine.guard.call_responses import (
    NOT_APPROVED,
    REPEATED_AFTER_DENIAL,
    STOPPED,
    TOO_MANY,
    WAITING,
    Outcomes,
)
from sluicegate.engine.guard.claims import ApprovedCalls, ToolCall
from sluicegate.engine.guard.refuse_reserved_calls import DeclaredTools, refusal_of
from sluicegate.engine.guard.shown_argument_snapshots import ArgumentSnapshots
from sluicegate.engine.guard.supersede_requests import ApprovalRequests
from sluicegate.engine.guard.tool_predicates import has_predicate, requires_approval
from sluicegate.engine.guard.user_notice_queue import Notices
from sluicegate.engine.models.cut_off_calls import CUT_OFF, is_cut_off
from sluicegate.errors import ToolError
from sluicegate.media.storable_results import as_object
from sluicegate.tools.approval_terms import terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.core.tool_facts import ToolFacts, ToolLookup
    from sluicegate.engine.entitlement import Entitlement
    from sluicegate.engine.guard.compute_previews import Previews
    from sluicegate.engine.guard.running_claims import RunningClaims
    from sluicegate.engine.options import ApprovalLimits
    from sluicegate.media.model_wrapper import ModelFiles
    from sluicegate.media.replace_files_by_references import ResultFiles
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.tools.approval_terms import Policy
    from sluicegate.tools.client_tools import ClientTool

    Connecting = AbstractAsyncContextManager[BaseLlmConnection]
    """A live connection to a model that is being opened."""

logger = logging.getLogger("sluicegate")


@dataclass(slots=True)
class ApprovalGuard:
    """The gated calls of one turn.

    ``rows`` are the chat's ledger rows as of the start of the turn, which holds the lease.
    ``client_outputs`` are results of gated client-side calls by call id, ``page_tools`` the tools
    of the page's request. ``outcomes`` are notes for function responses: calls without a plain
    output (T8). ``granted`` are calls that were approved by a grant, by ADK's id (A8).
    ``requested`` are the calls whose approval this turn requests, by name, and ``requested_nodes``
    those that are nodes of a Workflow, by interrupt id. ``model_error`` is the error of a model or
    of ``tools_for``; the log gets its text without credentials. ``is_lost``: another process may
    write to the chat, whose lease is lost. ``has_chat_tools``: those of the chat are loaded.
    """

    chat: ChatKey
    owner: str
    ledger: Ledger
    rows: dict[CallKey, ApprovalRow]
    limits: ApprovalLimits
    ttl: Callable[[str, str], float]
    files: ResultFiles
    models: ModelFiles
    new_error_id: Callable[[], str]
    report: Callable[[str, BaseException], None]
    claims: RunningClaims
    tools: ToolLookup
    policy: Policy | None = None
    entitlement: Entitlement | None = None
    previews: Previews | None = None
    client_outputs: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    page_tools: tuple[ClientTool, ...] = ()
    outcomes: Outcomes = field(default_factory=Outcomes)
    granted: dict[str, ApprovalRow] = field(default_factory=dict)
    stopping: bool = False
    is_lost: bool = False
    has_chat_tools: bool = False
    model_error: Exception | None = None
    order: EmissionOrder = field(default_factory=EmissionOrder)
    call_ids: CallIds = field(default_factory=CallIds)
    declared: DeclaredTools = field(default_factory=DeclaredTools)
    requests: ApprovalRequests = field(default_factory=ApprovalRequests)
    notices: Notices = field(default_factory=Notices)
    snapshots: ArgumentSnapshots = field(default_factory=ArgumentSnapshots)
    requested: dict[str, ApprovalRequestDetails] = field(default_factory=dict)
    requested_nodes: dict[str, ApprovalRequestDetails] = field(default_factory=dict)
    concurrent: ConcurrentCalls = field(default_factory=ConcurrentCalls)
    approved: ApprovedCalls = field(init=False)

    def __post_init__(self) -> None:
        self.approved = ApprovedCalls(
            chat=self.chat,
            owner=self.owner,
            ledger=self.ledger,
            claims=self.claims,
            outcomes=self.outcomes,
            policy=self.policy,
            entitlement=self.entitlement,
            previews=self.previews,
            report=self._report,
        )

    def start_run(self, run: InvocationContext) -> None:
        """Start a run of the turn; live runs keep it."""

    def observe(self, event: Event) -> None:
        """Observe an event that is about to be stored; live runs route it."""

    def connect(
        self, connect: Callable[[LlmRequest], Connecting], request: LlmRequest
    ) -> Connecting:
        """Open a connection to a live model."""
        return connect(request)

    async def before_callbacks(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any] | None:
        """Return a response in place of a call that no callback of the user needs to see."""
        self.concurrent.begin(context.function_call_id or "")
        if is_cut_off(arguments):
            return self.outcomes.not_run(self.call_name(context), CUT_OFF)
        return self._answer_early(tool, context)

    async def before_tool(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any] | None:
        """Return a response in place of a call, or let it run, claimed if it was approved.

        It follows all callbacks of the user, so ``arguments`` are those that the tool gets.
        """
        response = self._answer_early(tool, context)
        if response is not None:
            return response
        name = self.call_name(context)
        call = ToolCall(name, tool, arguments, context)
        row = self.row_of(context)
        if row is not None:
            self.approved.keep_earlier_edits(call, row, self.rows)
        self.snapshots.add(call)
        if row is None or context.tool_confirmation is None:
            return await self._before_request(call)
        if name in self.client_outputs:
            return self.client_outputs[name]
        return await self.approved.claim(call, row)

    def _answer_early(self, tool: BaseTool, context: ToolContext) -> dict[str, Any] | None:
        """Return the response to a call that does not run, whatever its arguments are."""
        name = self.call_name(context)
        if self.stopping:
            return self.outcomes.not_run(name, STOPPED)
        refusal = refusal_of(tool.name) if type(tool) is BaseTool else None
        if refusal is not None:
            return self.outcomes.not_run(name, refusal)
        confirmation, row = context.tool_confirmation, self.row_of(context)
        if confirmation is None:
            return None
        if row is None:
            return self.outcomes.not_run(name, NOT_APPROVED)
        if confirmation.confirmed is not True:
            return self.outcomes.closed(name, row)
        return None

    async def after_tool(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext, result: object
    ) -> dict[str, Any] | None:
        """Store the outcome of a claimed call before ADK stores its event.

        A call whose approval ADK or its own code has requested is approved by a grant, refused, or
        left to wait.
        """
        name = self.call_name(context)
        await self._claim_answered(name, context)
        call_id = context.function_call_id or ""
        requests = context.actions.requested_tool_confirmations
        if name in self.claims and call_id in requests:
            return await self.ask_again(name, tool, context, result)
        outcome, shown = await self.files.outcome_of(result, is_claimed=name in self.claims)
        if name in self.claims:
            outcome, shown = self.approved.with_edits(name, outcome, shown, result)
            await self.approved.store_outcome(name, outcome, context)
        if call_id not in requests or name in self.requested:
            return shown
        if name not in self.snapshots:
            # A callback has requested approval in place of the tool.
            self.snapshots.add(ToolCall(name, tool, arguments, context))
        self.snapshots.add_payload(name, requests[call_id])
        card = self.snapshots.get(name)
        # The tool may have changed its arguments before it requested approval.
        effective = arguments if card is None else copy.deepcopy(card.arguments)
        call = ToolCall(name, tool, effective, context)
        requested = ApprovalRequestDetails(definition_of(tool))
        row, requested = await self._approve_by_grant(call, requested)
        if row is not None:
            del requests[call_id]
            return await self.run_approved(call, row)
        refusal = await self._refusal(call)
        if refusal is not None:
            del requests[call_id]
            # ADK and tools set it beside a request, so that the model does not comment on it.
            context.actions.skip_summarization = None
            return self.outcomes.not_run(name, refusal)
        self._show_request(call, requested)
        # ADK: as beside a request of its own, else some trees ask the model at the placeholder.
        context.actions.skip_summarization = True
        return shown

    async def after_node(self, tool: BaseTool, context: ToolContext, result: object) -> object:
        """Return the result of the tool of a node, whose call may ask again."""
        name, requests = self.call_name(context), context.actions.requested_tool_confirmations
        if name not in self.claims or (context.function_call_id or "") not in requests:
            return result
        shown = await self.ask_again(name, tool, context, result)
        return result if shown is None else shown

    async def ask_again(
        self, name: str, tool: BaseTool, context: ToolContext, result: object
    ) -> dict[str, Any] | None:
        """Release the claim of a call whose tool asks again, and leave it to wait.

        ADK makes no request for a call of an agent that it resumes; the next model call makes it
        (`follow_up_requests`).
        """
        call_id = context.function_call_id or ""
        requests = context.actions.requested_tool_confirmations
        # ADK would end the turn with the response, so that nothing asks.
        context.actions.skip_summarization = None
        call = ToolCall(name, tool, self.approved.approved_arguments(name), context)
        self.snapshots.add(call)
        self.snapshots.add_payload(name, requests[call_id])
        refusal = await self._refusal(call)
        if refusal is not None:
            del requests[call_id]
            refused = self.outcomes.not_run(name, refusal)
            return await self.approved.store_failure(name, refused, context)
        if not await self.approved.release(name):
            del requests[call_id]
            return self.outcomes.not_run(name, OUTCOME_UNKNOWN)
        self._show_request(call, ApprovalRequestDetails(definition_of(tool)))
        _, shown = await self.files.outcome_of(result, is_claimed=False)
        return shown

    async def tool_failed(
        self, context: ToolContext, error: BaseException
    ) -> dict[str, Any] | None:
        """Turn a tool's exception into one safe sentence for model and user (T8)."""
        name = self.call_name(context)
        if isinstance(error, asyncio.CancelledError):
            self.claims.end(name, interrupted=True)
            return None
        if isinstance(error, ToolError):
            sentence = str(error)
        else:
            sentence = f"The tool failed (error {self._report(error)})."
        response = self.outcomes.not_run(name, sentence)
        if name in self.claims:
            return await self.approved.store_failure(name, response, context)
        return response

    async def run_approved(self, call: ToolCall, row: ApprovalRow) -> dict[str, Any] | None:
        """Run a tool that has requested its approval in this run, as ADK does after a decision."""
        call.context.actions.skip_summarization = None
        response = await self.approved.claim(call, row)
        return await self.run_claimed(call) if response is None else response

    async def run_claimed(self, call: ToolCall) -> dict[str, Any] | None:
        """Run the tool of a call that is claimed, and store its outcome."""
        context = call.context
        try:
            result = await call.tool.run_async(args=call.arguments, tool_context=context)
        except asyncio.CancelledError as cancelled:
            await self.tool_failed(context, cancelled)
            raise
        except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
            return await self.tool_failed(context, error)
        shown = await self.after_tool(call.tool, call.arguments, context, result)
        # ADK still holds the first result, which was only the request.
        return as_object(result) if shown is None else shown

    def call_name(self, context: ToolContext) -> str:
        """Return the name of a call in the ledger and in notes.

        ADK: a tool node of a Workflow gets a fresh call id per run; its interrupt id is stable.
        """
        call_id = context.function_call_id or ""
        interrupt = NODE_CONFIRMATION + context.node_path
        node = CallKey(*self.chat, context.invocation_id, interrupt)
        return interrupt if node in self.rows else call_id

    def row_of(self, context: ToolContext) -> ApprovalRow | None:
        """Return the ledger's row of the last request for a call, None if it has none."""
        key = CallKey(*self.chat, context.invocation_id, self.call_name(context))
        while (following := key.with_request_number(key.request_number + 1)) in self.rows:
            key = following
        return self.rows.get(key)

    def is_same_exchange(self, row: ApprovalRow, context: ToolContext) -> bool:
        """Whether a row belongs to the exchange of a call."""
        return row.key.invocation == context.invocation_id

    def exceeds_limits(self, context: ToolContext) -> bool:
        """Whether one more request would exceed the limits."""
        rows = self.rows.values()
        waiting = sum(row.state == "requested" for row in rows)
        exchange = sum(self.is_same_exchange(row, context) and not row.is_automatic for row in rows)
        requested = len(self.requested)
        return (
            requested >= self.limits.per_turn
            or exchange + requested >= self.limits.per_exchange
            or waiting + requested >= self.limits.per_chat
        )

    def decides_before_adk(self, call: ToolCall) -> bool:
        """Whether to check before ADK does if a call requires an approval.

        A predicate is the user's code and is called as often as ADK calls it: ADK's own request is
        seen in `after_tool`. That comes too late for a call that a grant may approve, which runs as
        any other, and for a node of a Workflow, whose request ADK does not show to callbacks.
        """
        return (
            not has_predicate(call.tool)
            or call.context.node is not None
            or self._may_have_grant(call)
        )

    async def _claim_answered(self, name: str, context: ToolContext) -> None:
        """Claim an approved call that a callback answered, so that it did not reach the guard."""
        confirmation = context.tool_confirmation
        if confirmation is None or confirmation.confirmed is not True or name in self.snapshots:
            return
        row = self.row_of(context)
        if row is not None and row.state == "approved" and name not in self.client_outputs:
            await self.approved.claim_answered(name, row)

    async def _before_request(self, call: ToolCall) -> dict[str, Any] | None:
        for row in self.rows.values():
            is_denied = row.tool == call.tool.name and row.is_denied
            # Whether this call has another payload is known only when its tool asks.
            if (
                is_denied
                and row.args_hash == self.snapshots.digest(call.name, row.payload)
                and self._is_of_agent(row, call)
            ):
                return self.outcomes.not_run(call.name, REPEATED_AFTER_DENIAL)
        if (
            call.context.function_call_id or ""
        ) in call.context.actions.requested_tool_confirmations:
            # A callback has asked and lets the call go on, which ADK would run at once.
            return dict(WAITING)
        if not self.decides_before_adk(call) or not await requires_approval(call):
            return None
        requested = ApprovalRequestDetails(definition_of(call.tool))
        row_of_grant, requested = await self._approve_by_grant(call, requested)
        if row_of_grant is not None:
            return await self.approved.claim(call, row_of_grant)
        refusal = await self._refusal(call)
        if refusal is not None:
            return self.outcomes.not_run(call.name, refusal)
        self._show_request(call, requested)
        return None

    def _is_of_agent(self, row: ApprovalRow, call: ToolCall) -> bool:
        """Whether a row is of the agent and the exchange of a call."""
        # A node of a Workflow has no agent of its own, and rows of schema 6 name none.
        is_named = row.agent is not None and call.context.node is None
        if is_named and row.agent != self._facts(call).agent:
            return False
        return self.is_same_exchange(row, call.context)

    def _facts(self, call: ToolCall) -> ToolFacts:
        return self.tools.facts(call.context.agent_name, call.tool.name)

    async def _refusal(self, call: ToolCall) -> str | None:
        """Return why the approval of a call is not even requested; None if it is."""
        refusal = self.snapshots.refusal(call.name) or refusal_beside_task(call.context)
        if refusal is not None:
            logger.warning("tool %s was not run: %s", call.tool.name, refusal)
            return refusal
        if self.exceeds_limits(call.context):
            return TOO_MANY
        refusal = await self.approved.policy_refusal(call, None, self.chat.user)
        if refusal is None:
            refusal = await self.approved.resolve_rule(call)
            if refusal is None and terms_of(call.tool).preview is not None:
                previews = self.approved.previewed
                rows = {**self.rows, **previews.drifted}.values()
                own = [row for row in rows if self._is_of_agent(row, call)]
                return await previews.request(call, self.snapshots.get(call.name), own)
            return refusal
        # The row of a call that asks again has the refusal as its outcome.
        if call.name not in self.claims:
            shown = self.snapshots.get(call.name)
            await self.ledger.audit_refusal(
                CallKey(*self.chat, call.context.invocation_id, call.name),
                tool=call.tool.name,
                args_hash=None if shown is None else shown.digest,
                reason=refusal,
            )
        return f"Not run: {refusal}"

    def _show_request(self, call: ToolCall, requested: ApprovalRequestDetails) -> None:
        """Note a request; its card has the schema that the tool's server declares now."""
        terms = terms_of(call.tool)
        request = self.requested[call.name] = replace(
            requested,
            approvers=self.approved.rules.get(call.name),
            preview=self.approved.previewed.shown.get(call.name),
            remind_after=terms.remind_after,
            at_expiry="deny" if terms.then == "deny" else None,
        )
        if call.context.node is not None:
            # Its request names the interrupt of the node, and grants do not cover it.
            node = NODE_CONFIRMATION + call.context.node_path
            self.requested_nodes[node] = replace(request, definition=None, changed=None)
        if is_of_mcp_server(call.tool):
            schema = schema_of(call.tool)
            if schema is not None and schema != self._facts(call).schema:
                self.snapshots.add_schema(call.name, schema)

    def _may_have_grant(self, call: ToolCall) -> bool:
        # A node of a Workflow is approved by its path, and its calls are not shown otherwise.
        if call.context.node is not None:
            return False
        # A grant comes from an approval of the same tool, so most calls need no look-up.
        tool = call.tool.name
        if not any(row.remember and row.tool == tool for row in self.rows.values()):
            return False
        return self._facts(call).rememberable

    async def _approve_by_grant(
        self, call: ToolCall, requested: ApprovalRequestDetails
    ) -> tuple[ApprovalRow | None, ApprovalRequestDetails]:
        """Approve a call by a grant of the chat, without a request (A8).

        Returns the row, None without a grant, and what the card shows of the tool.
        """
        definition, shown = requested.definition, self.snapshots.get(call.name)
        if definition is None or shown is None or not self._may_have_grant(call):
            return None, requested
        if is_form(shown.payload):
            # A grant fills in no form.
            return None, requested
        context, facts = call.context, self._facts(call)
        new = NewApproval(
            key=CallKey(*self.chat, context.invocation_id, call.name),
            approval_id=f"remembered-{secrets.token_hex(12)}",
            tool=call.tool.name,
            args_hash=shown.digest,
            ttl=self.ttl(facts.agent, call.tool.name),
            arguments=shown.arguments,
            payload=shown.payload,
            agent=facts.agent,
            definition=definition,
        )
        found = await self.ledger.approve_by_grant(new)
        if found.row is not None:
            self.rows[found.row.key] = self.granted[call.name] = found.row
            context.tool_confirmation = ToolConfirmation(confirmed=True)
        if found.definition is not None:
            requested = ApprovalRequestDetails(definition, changes(found.definition, definition))
        return found.row, requested

    def _report(self, error: BaseException) -> str:
        error_id = self.new_error_id()
        self.report(error_id, error)
        return error_id
