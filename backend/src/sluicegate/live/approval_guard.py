"""The approval guard of a live run, which holds a call until its decision."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.flows.llm_flows.functions import generate_request_confirmation_event
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from sluicegate.adk_private import invocation_of, request_confirmation, run_before_tool_callbacks
from sluicegate.engine.guard.call_responses import STOPPED
from sluicegate.engine.guard.claims import ToolCall
from sluicegate.engine.guard.guard import ApprovalGuard
from sluicegate.live.event_router import SILENT
from sluicegate.live.model_connection import open_connection
from sluicegate.live.model_input_rules import LiveModelRules
from sluicegate.live.pending_approvals import NOT_YET, PendingApprovals
from sluicegate.live.tool_copies import copy_tools, declare_non_blocking
from sluicegate.media.storable_results import as_object
from sluicegate.tools.approval_terms import terms_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.engine.guard.guard import Connecting
    from sluicegate.live.answer_failed_calls import FailedCalls
    from sluicegate.live.event_router import EventRouter
    from sluicegate.live.exchange_queue import ExchangeQueue
    from sluicegate.live.run import LiveRun
    from sluicegate.live.spoken_approvals import SpokenApprovals


_AGENT_CONTROL: Final = frozenset(
    {"transfer_to_agent", "task_completed", "finish_task", "exit_loop"}
)
"""Tools of ADK after which another agent speaks, or none."""


@dataclass
class LiveApprovalGuard(ApprovalGuard):
    """The approval guard of a live run: it holds a call until its decision.

    ``may_gate``: a tool of the agent may require approval, so ADK runs all tools beside its
    receiving loop. ``announces``: the model says that a call waits.
    """

    run: LiveRun = field(kw_only=True)
    router: EventRouter = field(kw_only=True)
    exchange_queue: ExchangeQueue = field(kw_only=True)
    pending: PendingApprovals = field(kw_only=True)
    unfinished: FailedCalls = field(kw_only=True)
    spoken: SpokenApprovals = field(kw_only=True)
    may_gate: bool = field(kw_only=True)
    announces: bool = field(kw_only=True)
    _arguments: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The arguments of the calls as the model wrote them, which ADK compares with its log."""

    def start_run(self, run: InvocationContext) -> None:
        """Note that ADK has started the run."""
        self.run.started(run)

    def observe(self, event: Event) -> None:
        """Route an event that is about to be stored, and follow the order of its turn."""
        for response in event.get_function_responses():
            if self.pending.is_withdrawn(response.id or ""):
                response.scheduling = SILENT
        self.order = self.router.route(event)

    def connect(
        self, connected: Callable[[LlmRequest], Connecting], request: LlmRequest
    ) -> Connecting:
        """Open a connection to the model, with copies of the request's tools."""
        copy_tools(request.tools_dict, in_background=self.may_gate)
        model = getattr(connected, "__self__", None)
        protocol = LiveModelRules()
        if model is not None:
            protocol = LiveModelRules.of(model, request.model or "")
        if self.may_gate and protocol.takes_behavior:
            declare_non_blocking(request)
        again = self.run.prepare_connection(request, protocol)

        async def shape(contents: list[types.Content]) -> list[types.Content]:
            if model is None:
                return contents
            return list((await self.models.shape(contents, model, request.model)).contents)

        return open_connection(connected, request, self.run, shape, protocol, again)

    async def before_callbacks(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any] | None:
        """Answer a call that cannot run now, and keep the arguments that the model wrote."""
        call_id = self.call_name(context)
        self.run.call_started(call_id, invocation_of(context))
        if context.tool_confirmation is None:
            self.unfinished.watch(tool, context)
        exchange = self.router.exchange_of(call_id)
        if exchange is not None and self.exchange_queue.is_stopping(exchange):
            return self.outcomes.not_run(call_id, STOPPED)
        if (
            self.may_gate
            and tool.name in _AGENT_CONTROL
            and self.exchange_queue.has_open_calls(call_id)
        ):
            # ADK: the connection of an agent ends with its running calls, those that wait included.
            return self.outcomes.not_run(call_id, NOT_YET)
        self._arguments[call_id] = copy.deepcopy(arguments)
        response = await super().before_callbacks(tool, arguments, context)
        if response is None:
            # A callback may answer the call now, so that it does not reach the guard again.
            self.snapshots.remove(call_id)
        return response

    async def before_tool(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any] | None:
        """Answer a call in place of its tool, or let it run; a call without a decision waits."""
        await self._read_ledger()
        answer = await super().before_tool(tool, arguments, context)
        if answer is not None or context.tool_confirmation is not None:
            return answer
        if self.call_name(context) not in self.requested:
            return None
        if await self._hold(tool, context, await request_confirmation(tool, context)):
            return await self._repeat_callbacks(tool, arguments, context)
        return await super().before_tool(tool, arguments, context)

    async def after_tool(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext, result: object
    ) -> dict[str, Any] | None:
        """Store the outcome; a tool that has requested approval itself waits, and runs again.

        Each request has a row of its own: the claim that this run of the tool had is released.
        """
        shown = await super().after_tool(tool, arguments, context, result)
        requested = context.actions.requested_tool_confirmations
        if (context.function_call_id or "") not in requested:
            return shown
        if not await self._hold(tool, context, as_object(result) if shown is None else shown):
            return await super().before_tool(tool, arguments, context)
        response = await self._repeat_callbacks(tool, arguments, context)
        if response is None:
            return await self.run_claimed(
                ToolCall(self.call_name(context), tool, arguments, context)
            )
        shown = await super().after_tool(tool, arguments, context, response)
        return response if shown is None else shown

    async def _repeat_callbacks(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> dict[str, Any] | None:
        """Run all callbacks before an approved call again, as ADK does in a turn.

        They begin with the arguments that the model wrote, and end with `before_tool`, which claims
        the call unless they differ now from those that were approved (A1).
        """
        # ADK: a live run never resumes a call, so its callbacks would run before the request alone.
        arguments.clear()
        arguments.update(copy.deepcopy(self._arguments[self.call_name(context)]))
        return await run_before_tool_callbacks(tool, arguments, context)

    async def _hold(
        self, tool: BaseTool, context: ToolContext, placeholder: dict[str, Any]
    ) -> bool:
        """Request approval and wait for the decision, which the context holds afterwards."""
        call_id = context.function_call_id or ""
        confirmation = context.actions.requested_tool_confirmations.pop(call_id)
        arguments = copy.deepcopy(self._arguments[self.call_name(context)])
        call = types.FunctionCall(id=call_id, name=tool.name, args=arguments)
        await self._store_request(context, call, confirmation, placeholder)
        phrase = terms_of(tool).by_voice
        if phrase is not None:
            self.spoken.begin(call_id, phrase, self.exchange_queue.exchanges)
        await self.run.answer_meanwhile(call, announced=self.announces)
        try:
            confirmed = await self.pending.wait(call_id)
        finally:
            self.spoken.end(call_id)
        await self._read_ledger()
        row = self.row_of(context)
        context.tool_confirmation = ToolConfirmation(
            hint=confirmation.hint,
            payload=row.approved_payload if confirmed and row is not None else None,
            confirmed=confirmed,
        )
        context.actions.skip_summarization = None
        return confirmed

    async def _store_request(
        self,
        context: ToolContext,
        call: types.FunctionCall,
        confirmation: ToolConfirmation,
        placeholder: dict[str, Any],
    ) -> None:
        """Store the request for approval and the response that takes the place of the result."""
        invocation = invocation_of(context)
        author = invocation.agent.name if invocation.agent else ""
        asking = Event(
            author=author,
            content=types.Content(role="model", parts=[types.Part(function_call=call)]),
        )
        response = types.FunctionResponse(id=call.id, name=call.name, response=dict(placeholder))
        answer = Event(
            invocation_id=invocation.invocation_id,
            author=author,
            branch=invocation.branch,
            content=types.Content(role="user", parts=[types.Part(function_response=response)]),
            actions=EventActions(
                skip_summarization=True,
                requested_tool_confirmations={call.id or "": confirmation},
            ),
        )
        # ADK: a call inside a node is resumed by the path of the node.
        path = self.run.node_path_of(call.id or "")
        answer.node_info.path = path
        request = generate_request_confirmation_event(invocation, asking, answer)
        if request is not None:
            request.node_info.path = path
            await self.run.store(request)
        await self.run.store(answer)

    async def _read_ledger(self) -> None:
        """Read the rows again: many decisions may be recorded during a live run."""
        if self.may_gate:
            self.rows = {row.key: row for row in await self.ledger.rows(self.chat)}

    def is_same_exchange(self, row: ApprovalRow, context: ToolContext) -> bool:
        """Whether a row is of the same exchange; all exchanges of a run are one invocation."""
        exchange = self.router.exchange_of(self.call_name(context))
        return exchange is not None and self.router.exchange_of(row.key.call_id) is exchange

    def decides_before_adk(self, call: ToolCall) -> bool:
        """Always: a live call waits for its decision before ADK requests it."""
        return True

    def exceeds_limits(self, context: ToolContext) -> bool:
        """Whether one more request would exceed the limits."""
        exchange_of = self.router.exchange_of
        exchange = exchange_of(self.call_name(context))
        requested = [call_id for call_id in self.requested if exchange_of(call_id) is exchange]
        earlier = exchange.earlier_approval_calls if exchange is not None else set()
        waiting = sum(row.state == "requested" for row in self.rows.values())
        later = [key for key in self.rows if key.request_number > 1 and key.call_id in requested]
        return (
            len([call_id for call_id in requested if call_id not in earlier])
            >= self.limits.per_turn
            or len(requested) + len(later) >= self.limits.per_exchange
            or waiting >= self.limits.per_chat
        )
