"""What the gate plugin knows and does for one turn: claims, answers, notes (A1, A5, A6)."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sluicegate.core.canonical import hash_arguments
from sluicegate.core.event_parts import NODE_CONFIRMATION
from sluicegate.core.json_safe import json_safe
from sluicegate.core.keys import CallKey, ChatKey
from sluicegate.core.noted import closing_words
from sluicegate.core.spoken_order import SpokenOrder
from sluicegate.engine.call_ids import CallIds
from sluicegate.engine.claims import Claims
from sluicegate.engine.tool_results import storable
from sluicegate.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from typing import TypeAlias

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.base_llm_connection import BaseLlmConnection
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.core.ledger import ApprovalRow
    from sluicegate.stores.base import Ledger

    Connecting: TypeAlias = AbstractAsyncContextManager[BaseLlmConnection]

UNKNOWN = (
    "The outcome is unknown: the server stopped while this call ran, so it was not run again. "
    "Check whether it took effect."
)
REPEATED_AFTER_DENIAL = "Not run: the user denied the same call before."
TOO_MANY = "Not run: too many approvals were asked for at once; answer the user first."
NOT_APPROVED = "Not run: no approval of this call is known."
STOPPED = "Not run: the turn was stopped."

CURRENT: ContextVar[TurnGate | None] = ContextVar("sluicegate_turn_gate", default=None)
"""The gate of the turn that runs in this context; ADK's tasks inherit it."""


@dataclass(frozen=True, slots=True)
class Caps:
    """How many approvals may be asked for (A6, S2-R43)."""

    per_turn: int
    per_exchange: int
    per_chat: int


@dataclass(slots=True)
class TurnGate:
    """The gated calls of one turn.

    ``rows`` are the chat's ledger rows as of the start of the turn, which holds the lease.
    ``client_outputs`` are results of gated client-side calls by call id. ``outcomes`` are notes
    for the events of function responses: how a call ended when it is not a plain output (T8).
    """

    chat: ChatKey
    owner: str
    ledger: Ledger
    rows: Mapping[CallKey, ApprovalRow]
    caps: Caps
    new_error_id: Any
    report: Any
    client_outputs: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    outcomes: dict[str, dict[str, str]] = field(default_factory=dict)
    stopping: bool = False
    model_error: Exception | None = None
    """What a model raised; only its type and place are told, and only to the log."""
    claims: Claims = field(default_factory=lambda: Claims(60.0))
    order: SpokenOrder = field(default_factory=SpokenOrder)
    call_ids: CallIds = field(default_factory=CallIds)
    _asked: set[str] = field(default_factory=set)

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
            return self._answer_closed(call_id, row)
        if call_id in self.client_outputs:
            return self.client_outputs[call_id]
        return await self._claim(call_id, row, arguments)

    async def after(
        self, tool: BaseTool, context: ToolContext, result: object
    ) -> dict[str, Any] | None:
        """Store the outcome of a claimed call before ADK stores its event."""
        call_id = self._name(context)
        if call_id in self.claims:
            await self._finish(call_id, failed=False, outcome=json_safe(result))
        requested = context.actions.requested_tool_confirmations
        asks_for = context.function_call_id or ""
        if asks_for in requested and call_id not in self._asked:
            if self._over_cap(context):
                del requested[asks_for]
                return self._unrun(call_id, TOO_MANY)
            self._asked.add(call_id)
        return storable(result)

    async def failed(self, context: ToolContext, error: BaseException) -> dict[str, Any] | None:
        """Turn a tool's exception into one safe sentence for model and user (T8)."""
        if isinstance(error, asyncio.CancelledError):
            self.claims.let_go(self._name(context), cut=True)
            return None
        call_id = self._name(context)
        if isinstance(error, ToolError):
            sentence = str(error)
        else:
            error_id = self.new_error_id()
            self.report(error_id, error)
            sentence = f"The tool failed (error {error_id})."
        answer = self._unrun(call_id, sentence)
        if call_id in self.claims:
            await self._finish(call_id, failed=True, outcome=json_safe(answer))
        return answer

    def sealed(self, name: str) -> None:
        """A call was ended by the end of the turn; note what that means for it (A5, T8)."""
        text = UNKNOWN if name in self.claims.cut or name in self.claims else STOPPED
        self.outcomes.setdefault(name, {"kind": "error", "text": text})

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
            if self._over_cap(context):
                return self._unrun(call_id, TOO_MANY)
            self._asked.add(call_id)
        return None

    async def _will_ask(
        self, tool: BaseTool, arguments: dict[str, Any], context: ToolContext
    ) -> bool:
        try:
            return await tool.check_require_confirmation(arguments, context) is True
        except Exception:  # noqa: BLE001 - a predicate is the user's and may raise anything;
            # ADK asks it next and takes what it raises for a failure of the tool (T8).
            return False

    async def _claim(
        self, call_id: str, row: ApprovalRow, arguments: dict[str, Any]
    ) -> dict[str, Any] | None:
        digest = hash_arguments(json_safe(arguments))
        current = await self.ledger.claim(row.key, owner=self.owner, args_hash=digest)
        if current is None:
            self.claims.take(call_id, row.key)
            return None
        if current.state in ("executed", "failed"):
            outcome = current.outcome
            answer = dict(outcome) if isinstance(outcome, dict) else {"result": outcome}
            if current.state == "failed":
                self._note_error(call_id, str(answer.get("error", UNKNOWN)))
            return answer
        if current.state in ("executing", "unknown"):
            return self._unrun(call_id, UNKNOWN)
        return self._answer_closed(call_id, current)

    def _answer_closed(self, call_id: str, row: ApprovalRow) -> dict[str, Any]:
        """The model's answer for a call that may not run, from the row (A1, A5, A6)."""
        if row.state == "denied" or (row.state == "expired" and row.answer is False):
            self.outcomes[call_id] = {"kind": "denied", "text": "The user denied this call."}
            denied: dict[str, Any] = {"status": "denied", "error": "The user denied this call."}
            if row.state == "expired":
                denied["error"] = "The approval of this call expired."
            if row.reason:
                denied["reason"] = row.reason
            return denied
        if row.state in ("approved", "requested"):
            return self._unrun(call_id, NOT_APPROVED)
        approved, sentence = closing_words(row)
        answer = self._unrun(call_id, sentence)
        if not approved:
            self.outcomes[call_id] = {"kind": "denied", "text": sentence}
        return answer

    def _unrun(self, call_id: str, sentence: str) -> dict[str, Any]:
        self._note_error(call_id, sentence)
        return {"status": "error", "error": sentence}

    def _note_error(self, call_id: str, sentence: str) -> None:
        self.outcomes[call_id] = {"kind": "error", "text": sentence}

    async def _finish(self, call_id: str, *, failed: bool, outcome: Any) -> None:
        key = self.claims.key(call_id)
        state: Literal["executed", "failed"] = "failed" if failed else "executed"
        try:
            await self.ledger.finish(key, owner=self.owner, state=state, outcome=outcome)
        except BaseException:
            self.claims.let_go(call_id, cut=True)
            raise
        self.claims.let_go(call_id)

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
        exchange = sum(self._is_here(row, context) for row in rows)
        asked = len(self._asked)
        return (
            asked >= self.caps.per_turn
            or exchange + asked >= self.caps.per_exchange
            or waiting + asked >= self.caps.per_chat
        )
