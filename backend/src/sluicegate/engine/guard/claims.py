"""The claimed calls that run now: how long they may, and what waits for their end (A1)."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from sluicegate.core.json_values import hash_arguments, json_safe
from sluicegate.core.ledger_overlay import OUTCOME_UNKNOWN
from sluicegate.engine.guard.recovery import approval, look_up, noted_outcome, with_edits
from sluicegate.tools.gated import GatedCall, set_approval, terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.keys import CallKey, ChatKey
    from sluicegate.engine.guard.recovery import Outcomes
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.tools.gated import Policy


class RunningClaims:
    """Claimed calls by name, from the claim to the stored outcome.

    A call that runs longer than ``seconds`` calls ``overtime``, which ends the turn.
    """

    def __init__(self, seconds: float) -> None:
        """No call runs yet."""
        self.overtime: Callable[[], None] = lambda: None
        self.cut: set[str] = set()
        """Calls that were cancelled in the middle: nobody knows what they did."""
        self._seconds = seconds
        self._keys: dict[str, CallKey] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._afterwards: list[Callable[[], None]] = []

    def __contains__(self, name: str) -> bool:
        return name in self._keys

    def __bool__(self) -> bool:
        return bool(self._keys)

    def names(self) -> list[str]:
        """The calls that run."""
        return list(self._keys)

    def key(self, name: str) -> CallKey:
        """The ledger's key of a call that runs."""
        return self._keys[name]

    def take(self, name: str, key: CallKey) -> None:
        """A call was claimed and runs from now on."""
        self._keys[name] = key
        self._idle.clear()
        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(self._seconds, self.overtime)

    def let_go(self, name: str, *, cut: bool = False) -> None:
        """A call has ended; ``cut``: it was cancelled."""
        if self._keys.pop(name, None) is None:
            return
        self._timers.pop(name).cancel()
        if cut:
            self.cut.add(name)
        if not self._keys:
            self._idle.set()
            while self._afterwards:
                self._afterwards.pop()()

    def give_up(self) -> None:
        """The run is over: what has not ended will not be heard of."""
        for name in list(self._keys):
            self.let_go(name, cut=True)

    async def done(self) -> None:
        """Wait until no claimed call runs."""
        await self._idle.wait()

    def when_done(self, then: Callable[[], None]) -> None:
        """Call ``then`` as soon as no claimed call runs, perhaps now."""
        if self._keys:
            self._afterwards.append(then)
        else:
            then()


_FORBIDDEN = "it is not allowed."


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call in ADK's hands; ``name`` is what it is called in the ledger and in notes."""

    name: str
    tool: BaseTool
    arguments: dict[str, Any]
    context: ToolContext


@dataclass(slots=True)
class ApprovedCalls:
    """Begins and ends the calls of one turn that were approved."""

    chat: ChatKey
    owner: str
    ledger: Ledger
    claims: RunningClaims
    outcomes: Outcomes
    policy: Policy | None
    report: Callable[[BaseException], str]
    """Writes an error to the log and returns its id."""
    _edits: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    async def forbidden(self, call: ToolCall, row: ApprovalRow | None, user: str) -> str | None:
        """Why the policy does not let a call run; None if it does."""
        if self.policy is None:
            return None
        edits = None if row is None else row.edits
        arguments = edits if isinstance(edits, dict) else call.arguments
        asked = GatedCall(
            *self.chat,
            tool=call.tool.name,
            arguments=copy.deepcopy(arguments),
            approval=None if row is None else approval(row),
        )
        try:
            said = await self.policy(asked, user)
        except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
            return f"whether it is allowed could not be checked (error {self.report(error)})."
        if said is True:
            return None
        return said if isinstance(said, str) and said else _FORBIDDEN

    async def begin(self, call: ToolCall, row: ApprovalRow) -> dict[str, Any] | None:
        """Claim a call immediately before its effect; returns what answers it if it may not run.

        Its arguments are replaced by those that were approved (A7).
        """
        if row.state == "approved":
            why = await self.forbidden(call, row, row.decided_by or "")
            if why is not None and await self.ledger.refuse(row.key, why):
                refused = replace(row, state="refused", outcome={"error": why})
                return self.outcomes.closed(call.name, refused)
        current = await self._claim(call, row)
        if current is None:
            self._run(call, row)
            return None
        if current.state in ("executed", "failed"):
            return self.outcomes.stored(call.name, current)
        if current.state == "unknown":
            return await self._recover(call, current)
        if current.state == "executing":
            return self.outcomes.unrun(call.name, OUTCOME_UNKNOWN)
        return self.outcomes.closed(call.name, current)

    def noted(
        self, name: str, outcome: JsonValue, shown: dict[str, Any] | None, result: object
    ) -> tuple[JsonValue, dict[str, Any] | None]:
        """Say in a result that its arguments were changed (A7).

        ``outcome`` is what the ledger keeps of it, ``shown`` what ADK gets in its place, if
        anything.
        """
        edits = self._edits.get(name)
        if edits is None:
            return outcome, shown
        return noted_outcome(outcome, edits), with_edits(result if shown is None else shown, edits)

    async def end(self, name: str, outcome: JsonValue) -> None:
        """Store the outcome of a call."""
        await self._finish(name, "executed", outcome)

    async def fail(self, name: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Store the failure of a call; returns what the model is told."""
        edits = self._edits.get(name)
        told = answer if edits is None else with_edits(answer, edits)
        await self._finish(name, "failed", json_safe(told))
        return told

    async def _claim(
        self, call: ToolCall, row: ApprovalRow, *, is_again: bool = False
    ) -> ApprovalRow | None:
        """Claim a call; None to the one who won, else the row as it is."""
        digest = hash_arguments(json_safe(call.arguments))
        # From here on a stop waits: of a claim that is given up, nobody knows whether it was made.
        self.claims.take(call.name, row.key)
        try:
            current = await self.ledger.claim(
                row.key, owner=self.owner, args_hash=digest, is_again=is_again
            )
        except BaseException as error:
            self.claims.let_go(call.name, cut=isinstance(error, asyncio.CancelledError))
            raise
        if current is not None:
            self.claims.let_go(call.name)
        return current

    def _run(self, call: ToolCall, row: ApprovalRow, *, is_repeated: bool = False) -> None:
        if isinstance(row.edits, dict):
            self._edits[call.name] = row.edits
            edited = copy.deepcopy(row.edits)
            call.arguments.clear()
            call.arguments.update(edited)
        set_approval(call.context, replace(approval(row), is_repeated=is_repeated))

    async def _recover(self, call: ToolCall, row: ApprovalRow) -> dict[str, Any] | None:
        """Look up what became of a call that a crash cut off, or run it again (A5, A9)."""
        terms = terms_of(call.tool)
        found = await look_up(self.ledger, terms.find, row, owner=self.owner, report=self.report)
        if found is not None:
            return self.outcomes.stored(call.name, found)
        if terms.idempotent and await self._may_repeat(call, row):
            self._run(call, row, is_repeated=True)
            return None
        return self.outcomes.unrun(call.name, OUTCOME_UNKNOWN)

    async def _may_repeat(self, call: ToolCall, row: ApprovalRow) -> bool:
        if await self.forbidden(call, row, row.decided_by or "") is not None:
            return False
        return await self._claim(call, row, is_again=True) is None

    async def _finish(
        self, name: str, state: Literal["executed", "failed"], outcome: JsonValue
    ) -> None:
        key = self.claims.key(name)
        try:
            await self.ledger.store_outcome(key, owner=self.owner, state=state, outcome=outcome)
        except BaseException:
            self.claims.let_go(name, cut=True)
            raise
        self.claims.let_go(name)
