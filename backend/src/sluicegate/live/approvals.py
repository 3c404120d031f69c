"""Calls of a live run that wait for a person: held where they stand, woken by the ledger."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.flows.llm_flows.functions import generate_request_confirmation_event
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from sluicegate.adk_private import invocation_of, request_confirmation
from sluicegate.core.ledger_overlay import shown_answer
from sluicegate.engine.files.result_files import as_object
from sluicegate.engine.guard.claims import ToolCall
from sluicegate.engine.guard.guard import ApprovalGuard
from sluicegate.engine.guard.recovery import STOPPED
from sluicegate.errors import StoreError
from sluicegate.live.connection import Ears, copy_tools, listened_to
from sluicegate.wire.live_frames import ApprovalFrame

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.engine.guard.guard import Connecting
    from sluicegate.live.connection import Listening
    from sluicegate.live.context import LiveContext
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.exchange_queue import ExchangeQueue
    from sluicegate.live.router import EmissionNotes, EventRouter
    from sluicegate.live.run import LiveRun
    from sluicegate.wire.live_frames import FinalApprovalState

INTERVAL: Final = 1.0
"""Seconds after which the ledger is read again: others may have decided, or nobody in time (A2)."""

_ENDS: Final[dict[str, FinalApprovalState]] = {
    "denied": "denied",
    "expired": "expired",
    "superseded": "superseded",
}


class PendingApprovals:
    """The waiting calls, by ADK's id."""

    def __init__(self, hold: LiveContext, look: Callable[[], Awaitable[None]]) -> None:
        """``look`` is called while calls wait, after the ledger was read."""
        self._hold = hold
        self._look = look
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._asked: set[str] = set()
        self._told: set[str] = set()
        self._wake = asyncio.Event()
        self.rows: dict[str, ApprovalRow] = {}
        """The rows of this run's calls, by call id, as they were read last."""

    async def wait(self, call_id: str) -> bool:
        """Wait until the call is decided; whether it may run."""
        self._asked.add(call_id)
        decided: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = decided
        self.wake()
        try:
            return await decided
        finally:
            self._waiting.pop(call_id, None)

    def is_waiting(self, call_id: str) -> bool:
        """Whether somebody waits for a decision on that call."""
        return call_id in self._waiting

    def resolve(self, call_id: str, *, confirmed: bool) -> None:
        """Let a call go on."""
        decided = self._waiting.get(call_id)
        if decided is not None and not decided.done():
            decided.set_result(confirmed)

    def wake(self) -> None:
        """Read the ledger now."""
        self._wake.set()

    def are_decided(self, exchange: LiveExchange) -> bool:
        """Whether an exchange waits for nobody any more; a browser answers by itself."""
        for call_id in exchange.calls:
            row = self.rows.get(call_id)
            if row is None or row.state == "requested":
                return False
            if call_id in exchange.in_browser and row.state == "approved":
                return False
        return bool(exchange.calls)

    async def watch(self) -> None:
        """Follow the ledger for as long as this runs."""
        while True:
            if self._waiting:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(INTERVAL):
                        await self._wake.wait()
            else:
                await self._wake.wait()
            self._wake.clear()
            # A database that does not answer now is asked again.
            with contextlib.suppress(StoreError):
                await self.read()
                await self._look()

    async def read(self) -> None:
        """Read the ledger, and tell what was decided since."""
        ledger, chat = self._hold.parts.ledger, self._hold.chat
        await ledger.expire(chat)
        rows = await ledger.rows(chat)
        self.rows = {row.key.call: row for row in rows if row.key.call in self._asked}
        for row in self.rows.values():
            if row.state != "requested" and row.approval_id not in self._told:
                self._told.add(row.approval_id)
                _, reason = shown_answer(row)
                end = _ENDS.get(row.state, "approved")
                self._hold.out.frame(ApprovalFrame(row.approval_id, end, reason))


class LiveDesk:
    """Serves the gate of one run."""

    def __init__(
        self, sorter: EventRouter, line: ExchangeQueue, asks: PendingApprovals, listening: Listening
    ) -> None:
        self._sorter = sorter
        self._line = line
        self._asks = asks
        self._listening = listening
        self.run: LiveRun
        self.has_begun = asyncio.Event()

    def began(self, run: InvocationContext) -> None:
        """The run has begun."""
        self.run.began(run)
        self.has_begun.set()

    def meet(self, event: Event) -> EmissionNotes:
        """An event is about to be stored."""
        return self._sorter.meet(event)

    def connect(
        self, connected: Callable[[LlmRequest], Connecting], request: LlmRequest
    ) -> Connecting:
        """Open a connection to the model."""
        model = getattr(connected, "__self__", None)
        ears = Ears(self.run, self._listening, model, request.model)
        return listened_to(connected, request, ears)

    def began_call(self, call_id: str, run: InvocationContext) -> None:
        """A call is looked at, in that part of the run."""
        self.run.began_call(call_id, run)

    def owner(self, call_id: str) -> LiveExchange | None:
        """The exchange of a call."""
        return self._sorter.owner(call_id)

    def is_stopping(self, exchange: LiveExchange | None) -> bool:
        """Whether no call of an exchange may begin any more."""
        turn = self._line.running(exchange) if exchange is not None else None
        return turn is not None and turn.turn_gate.stopping

    def has_open_calls(self, call_id: str) -> bool:
        """Whether another call than this one is at work, or waits."""
        return any(name != call_id for each in self._line.exchanges for name in each.calls)

    async def ask(self, question: HeldCall) -> bool:
        """Ask and wait; whether the answer was yes.

        ADK itself asks nobody in a live run. With the request and its placeholder in the log a
        call can be answered later as any other, when this run is gone.
        """
        placeholder = _placeholder(question)
        context = invocation_of(question.context)
        asking = Event(
            author=context.agent.name if context.agent else "",
            content=types.Content(role="model", parts=[types.Part(function_call=question.call)]),
        )
        request = generate_request_confirmation_event(context, asking, placeholder)
        if request is not None:
            await self.run.store(request)
        await self.run.store(placeholder)
        return await self._asks.wait(question.call.id or "")


def _placeholder(question: HeldCall) -> Event:
    """What ADK would have answered in place of the tool."""
    context = invocation_of(question.context)
    call = question.call
    response = types.FunctionResponse(
        id=call.id, name=call.name, response=dict(question.placeholder)
    )
    return Event(
        invocation_id=context.invocation_id,
        author=context.agent.name if context.agent else "",
        branch=context.branch,
        content=types.Content(role="user", parts=[types.Part(function_response=response)]),
        actions=EventActions(
            skip_summarization=True,
            requested_tool_confirmations={call.id or "": question.confirmation},
        ),
    )


NOT_YET: Final = "Not run: another call has no result yet; do this again when it has one."

_LEAVING: Final = frozenset({"transfer_to_agent", "task_completed", "finish_task", "exit_loop"})
"""Tools of ADK after which another agent speaks, or none."""


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that asks; ``placeholder`` is what ADK answers until somebody has."""

    context: ToolContext
    call: types.FunctionCall
    confirmation: ToolConfirmation
    placeholder: dict[str, Any]


class Desk(Protocol):
    """Where a live gate asks, and who knows the run."""

    def began(self, run: InvocationContext) -> None:
        """The run has begun."""

    def meet(self, event: Event) -> EmissionNotes:
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

    async def ask(self, question: HeldCall) -> bool:
        """Ask and wait; whether the answer was yes."""


@dataclass
class LiveApprovalGuard(ApprovalGuard):
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
        self.desk.began_call(call_id, invocation_of(context))
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
        await self._ask(tool, context, await request_confirmation(tool, context))
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
        confirmed = await self.desk.ask(HeldCall(context, call, asked, placeholder))
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
