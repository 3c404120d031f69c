"""Claims: the right to run an approved call once, taken before its effect (A1)."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from google.adk.tools.tool_confirmation import ToolConfirmation

from sluicegate.core.approval_previews import DRIFTED
from sluicegate.core.approvals import ClaimBasis, Grant
from sluicegate.core.call_keys import idempotency_key
from sluicegate.core.closed_approval_outcomes import OUTCOME_UNKNOWN
from sluicegate.core.exactly_shown_arguments import NotShowable, ShownArguments, shown_arguments
from sluicegate.core.json_values import json_safe
from sluicegate.engine.agents.tool_declarations import definition_of
from sluicegate.engine.entitlement import rule_of
from sluicegate.engine.guard.call_previews import CallPreviews
from sluicegate.engine.guard.call_responses import outcome_with_edits, with_edits
from sluicegate.engine.guard.outcome_lookup import look_up
from sluicegate.engine.guard.restore_event_actions import actions_of, restore_actions
from sluicegate.errors import AlreadyDecided
from sluicegate.tools.approval_terms import GatedCall, terms_of
from sluicegate.tools.current_approval import Approval, set_approval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow, Resolver
    from sluicegate.core.approvers import ApproverRule
    from sluicegate.core.call_keys import CallKey
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.core.tool_definition_changes import ToolDefinition
    from sluicegate.engine.entitlement import Entitlement
    from sluicegate.engine.guard.call_responses import Outcomes
    from sluicegate.engine.guard.compute_previews import Previews
    from sluicegate.engine.guard.running_claims import RunningClaims
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.tools.approval_terms import Policy

    Rows = Mapping[CallKey, ApprovalRow]

_FORBIDDEN: Final = "it is not allowed."
_GONE: Final = "the tool {} is no longer there."
_CHANGED: Final = (
    "its arguments are not those that the user approved. Call it again; the user is asked anew."
)
_OTHER_TOOL: Final = (
    "the tool has changed since its approval was requested. Call it again; the user is asked anew."
)

_OTHER_RULE: Final = (
    "other people have to approve it with these arguments. Call it again with them; they are asked."
)
_REVOKED: Final = "it needs {}, and of those who approved only {} may still do so."
_COUNTED_ANEW: Final = "of those who approved it, too few may still do so."
OUTCOME_KNOWN: Final = "The outcome of this call is not unknown; load the list again to see it."
OUT_OF_REACH: Final = "Not run: it needs the yes of {}, and fewer may approve it."
UNDETERMINED: Final = "Not run: who may approve it could not be determined (error {})."


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that ADK is about to run; ``name`` identifies it in the ledger and in notes."""

    name: str
    tool: BaseTool
    arguments: dict[str, Any]
    context: ToolContext

    def shown(self) -> ShownArguments:
        """Return a copy of the arguments as an approver sees them.

        Raises:
            NotShowable: They cannot be shown exactly.
        """
        definition = definition_of(self.tool)
        schema = None if definition is None else definition.parameters
        return shown_arguments(self.arguments, schema if isinstance(schema, dict) else None)


@dataclass(slots=True)
class ApprovedCalls:
    """Claims the approved calls of one turn and stores their outcomes.

    ``report`` writes an error to the log and returns its id.
    """

    chat: ChatKey
    owner: str
    ledger: Ledger
    claims: RunningClaims
    outcomes: Outcomes
    policy: Policy | None
    report: Callable[[BaseException], str]
    entitlement: Entitlement | None = None
    previews: Previews | None = None
    previewed: CallPreviews = field(init=False)
    rules: dict[str, ApproverRule] = field(default_factory=dict)
    """The rules of the calls whose approval is requested, if other people decide."""
    stored: dict[CallKey, ApprovalRow] = field(default_factory=dict)
    """The rows with the outcomes of the calls that have run, except those other people decide."""
    _edits: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _arguments: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The arguments with which the claimed calls run, which their tools may change."""

    def __post_init__(self) -> None:
        self.previewed = CallPreviews(self.chat, self.previews, self.report)

    async def policy_refusal(
        self, call: ToolCall, row: ApprovalRow | None, user: str
    ) -> str | None:
        """Return why the policy refuses a call; None if it allows it."""
        if self.policy is None:
            return None
        gated = self._gated_call(call, row)
        try:
            answer = await self.policy(gated, user)
        except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
            return f"whether it is allowed could not be checked (error {self.report(error)})."
        if answer is True:
            return None
        return answer if isinstance(answer, str) and answer else _FORBIDDEN

    async def resolve_rule(self, call: ToolCall) -> str | None:
        """Determine who may approve a call; returns why they could not be asked, else None."""
        try:
            rule = await rule_of(terms_of(call.tool), self._gated_call(call, None))
        except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
            return UNDETERMINED.format(self.report(error))
        if rule is None:
            return None
        if not rule.can_reach_quorum(self.chat.user):
            return OUT_OF_REACH.format(_people(rule.quorum))
        self.rules[call.name] = rule
        return None

    def _gated_call(self, call: ToolCall, row: ApprovalRow | None) -> GatedCall:
        edits = None if row is None else row.edits
        arguments = edits if isinstance(edits, dict) else call.arguments
        return GatedCall(
            *self.chat,
            tool=call.tool.name,
            arguments=copy.deepcopy(arguments),
            approval=None if row is None else approval_from(row),
        )

    async def claim(self, call: ToolCall, row: ApprovalRow) -> dict[str, Any] | None:
        """Claim a call immediately before its effect; returns its response if it may not run.

        No callback follows. The arguments are replaced by a copy of those that were approved, which
        nothing else refers to (A7); others than the requested ones do not run.
        """
        shown = _shown(call, row)
        if row.state in ("approved", "asked_again"):
            refusal = await self._refusal(call, row, shown)
            drift = None if refusal is not None else await self.previewed.drift(call, row, shown)
            reason, has_drifted = refusal or drift, drift is not None
            if reason is not None:
                refused = await self.refuse(call.name, row, reason, has_drifted=has_drifted)
                if refused is not None:
                    return refused
        current = await self._claim(call, row, shown)
        if current is None and shown is not None:
            # A crash has lost the next request, and what ran before it runs again.
            self._prepare(call, row, shown, is_repeated=row.state == "asked_again")
            return None
        return await self._respond(call, current or row, shown)

    async def claim_again(self, call: ToolCall, row: ApprovalRow, resolver: Resolver) -> str | None:
        """Claim a call with an unknown outcome that a person wants to run again (A5).

        The conditions are those of every claim; the policy is evaluated for that person.

        Returns:
            Why it may not run; None if the claim won.

        Raises:
            AlreadyDecided: The outcome is known, or the call runs.
        """
        shown = _shown(call, row)
        refusal = await self._refusal(call, row, shown, resolver=resolver)
        if refusal is None:
            refusal = await self.previewed.drift(call, row, shown)
        if refusal is not None or shown is None:
            return refusal or _CHANGED
        current = await self._claim(call, row, shown, is_again=True, resolver=resolver)
        if current is None:
            self._prepare(call, row, shown, is_repeated=True)
            return None
        if current.state != "unknown":
            raise AlreadyDecided(OUTCOME_KNOWN)
        return _COUNTED_ANEW

    async def refuse(
        self, name: str, row: ApprovalRow, reason: str, *, has_drifted: bool = False
    ) -> dict[str, Any] | None:
        """Refuse an approved call; returns its response, None if it is not approved any more."""
        if not await self.ledger.refuse(row.key, reason, has_drifted=has_drifted):
            return None
        outcome: dict[str, JsonValue] = {"error": reason}
        if has_drifted:
            outcome[DRIFTED] = True
        refused = replace(row, state="refused", outcome=outcome)
        if has_drifted:
            self.previewed.drifted[row.key] = refused
        return self.outcomes.closed(name, refused)

    async def claim_answered(self, name: str, row: ApprovalRow) -> bool:
        """Claim a call that a callback has answered in place of its tool."""
        self.claims.start(name, row.key)
        current: ApprovalRow | None = row
        try:
            current = await self.ledger.claim(
                row.key,
                owner=self.owner,
                args_hash=row.args_hash,
                basis=ClaimBasis(await self._entitled(row), row.preview_hash),
            )
        finally:
            if current is not None:
                self.claims.end(name)
        return current is None

    async def _respond(
        self, call: ToolCall, current: ApprovalRow, shown: ShownArguments | None
    ) -> dict[str, Any] | None:
        """Respond to a call that another claim won, or that may not run."""
        if current.state in ("executed", "failed"):
            restore_actions(call.context, current.actions)
            return self.outcomes.stored(call.name, current)
        if current.state == "unknown":
            return await self._recover(call, current, shown)
        if current.state == "executing":
            return self.outcomes.not_run(call.name, OUTCOME_UNKNOWN)
        return self.outcomes.closed(call.name, current)

    def with_edits(
        self, name: str, outcome: JsonValue, shown: dict[str, Any] | None, result: object
    ) -> tuple[JsonValue, dict[str, Any] | None]:
        """Note in a result that the arguments of its call were changed, if they were (A7).

        ``outcome`` is what the ledger stores, ``shown`` replaces the result in ADK, if not None.
        """
        edits = self._edits.get(name)
        if edits is None:
            return outcome, shown
        annotated = with_edits(result if shown is None else shown, edits)
        return outcome_with_edits(outcome, edits), annotated

    async def store_outcome(self, name: str, outcome: JsonValue, context: ToolContext) -> None:
        """Store the outcome of a call that has run, with what it did beside it."""
        await self._store(name, "executed", outcome, actions_of(context))

    async def store_failure(
        self, name: str, response: dict[str, Any], context: ToolContext
    ) -> dict[str, Any]:
        """Store the failure of a call; returns the response for the model."""
        edits = self._edits.get(name)
        shown = response if edits is None else with_edits(response, edits)
        await self._store(name, "failed", json_safe(shown), actions_of(context))
        return shown

    def keep_earlier_edits(self, call: ToolCall, row: ApprovalRow, rows: Rows) -> None:
        """Give a call whose tool has asked again the arguments of its earlier approvals (A7)."""
        for number in range(row.key.request_number - 1, 0, -1):
            earlier = rows.get(row.key.with_request_number(number))
            if earlier is not None and isinstance(earlier.edits, dict):
                self._edits[call.name] = earlier.edits
                call.arguments.clear()
                call.arguments.update(copy.deepcopy(earlier.edits))
                return

    def approved_arguments(self, name: str) -> dict[str, Any]:
        """Return the arguments with which a claimed call began to run."""
        return self._arguments[name]

    async def release(self, name: str) -> bool:
        """Release the claim of a call whose tool has asked again; False if it was lost."""
        key = self.claims.key(name)
        try:
            released = await self.ledger.ask_again(key, owner=self.owner)
        except BaseException:
            self.claims.end(name, interrupted=True)
            raise
        self.claims.end(name, interrupted=not released)
        return released

    async def _refusal(
        self,
        call: ToolCall,
        row: ApprovalRow,
        shown: ShownArguments | None,
        *,
        resolver: Resolver | None = None,
    ) -> str | None:
        """Why an approved call does not run."""
        definition = definition_of(call.tool)
        if definition is None and row.definition_hash is not None:
            return _GONE.format(call.tool.name)
        if _has_changed(definition, row):
            return _OTHER_TOOL
        if shown is None or shown.digest != row.args_hash:
            return _CHANGED
        people = row.approved_by or [row.decided_by or ""]
        for user in people if resolver is None else [resolver.user]:
            refusal = await self.policy_refusal(call, row, user)
            if refusal is not None:
                return refusal
        return await self._quorum_refusal(call, row)

    async def _quorum_refusal(self, call: ToolCall, row: ApprovalRow) -> str | None:
        """Why the decisions of other people do not let a call run."""
        rule, terms = row.approvers, terms_of(call.tool)
        if terms.approvers is not None and (rule is None or row.edits is not None):
            # The rule of other arguments, or of a tool that has got one since, may be another.
            try:
                if await rule_of(terms, self._gated_call(call, row)) != rule:
                    return _OTHER_RULE
            except Exception as error:  # noqa: BLE001 - as in `resolve_rule`
                return UNDETERMINED.removeprefix("Not run: ").format(self.report(error))
        if rule is None:
            return None
        entitled = await self._entitled(row)
        if entitled is None or len(entitled) >= rule.quorum:
            return None
        return _REVOKED.format(_people(rule.quorum), len(entitled))

    async def _entitled(self, row: ApprovalRow) -> frozenset[str] | None:
        """Those of the people who approved a call who may do so now; None without a rule."""
        if row.approvers is None:
            return None
        if self.entitlement is None:
            return frozenset()
        return await self.entitlement.entitled_among(row, row.approved_by)

    async def _claim(
        self,
        call: ToolCall,
        row: ApprovalRow,
        shown: ShownArguments | None,
        *,
        is_again: bool = False,
        resolver: Resolver | None = None,
    ) -> ApprovalRow | None:
        """Claim a call; returns None if this claim won, else the row as it is."""
        digest = "" if shown is None else shown.digest
        # From here on a stop waits: whether an abandoned claim was stored could not be known.
        self.claims.start(call.name, row.key)
        try:
            current = await self.ledger.claim(
                row.key,
                owner=self.owner,
                args_hash=digest,
                grant=None if is_again else _grant_of(call, row, shown),
                is_again=is_again,
                basis=ClaimBasis(
                    await self._entitled(row), self.previewed.digests.get(call.name), resolver
                ),
            )
        except BaseException as error:
            self.claims.end(call.name, interrupted=isinstance(error, asyncio.CancelledError))
            raise
        if current is not None:
            self.claims.end(call.name)
        return current

    def _prepare(
        self,
        call: ToolCall,
        row: ApprovalRow,
        shown: ShownArguments,
        *,
        is_repeated: bool = False,
    ) -> None:
        approved = shown.arguments
        if isinstance(row.edits, dict):
            self._edits[call.name] = row.edits
            approved = copy.deepcopy(row.edits)
        call.arguments.clear()
        call.arguments.update(approved)
        self._arguments[call.name] = copy.deepcopy(approved)
        if row.payload is not None or row.key.request_number > 1:
            # A callback may have replaced what ADK read from the answer.
            call.context.tool_confirmation = ToolConfirmation(
                hint=row.hint or "", confirmed=True, payload=copy.deepcopy(row.approved_payload)
            )
        set_approval(call.context, replace(approval_from(row), is_repeated=is_repeated))

    async def _recover(
        self, call: ToolCall, row: ApprovalRow, shown: ShownArguments | None
    ) -> dict[str, Any] | None:
        """Look up the outcome of a call that a crash interrupted, or run it again (A5, A9)."""
        terms = terms_of(call.tool)
        known = await look_up(self.ledger, terms.find, row, owner=self.owner, report=self.report)
        if known is not None:
            return self.outcomes.stored(call.name, known)
        if shown is not None and terms.idempotent and await self._may_repeat(call, row, shown):
            current = await self._claim(call, row, shown, is_again=True)
            if current is None:
                self._prepare(call, row, shown, is_repeated=True)
                return None
        return self.outcomes.not_run(call.name, OUTCOME_UNKNOWN)

    async def _may_repeat(self, call: ToolCall, row: ApprovalRow, shown: ShownArguments) -> bool:
        if await self._refusal(call, row, shown) is not None:
            return False
        return await self.previewed.drift(call, row, shown) is None

    async def _store(
        self,
        name: str,
        state: Literal["executed", "failed"],
        outcome: JsonValue,
        actions: JsonValue,
    ) -> None:
        key = self.claims.key(name)
        try:
            row = await self.ledger.store_outcome(
                key, owner=self.owner, state=state, outcome=outcome, actions=actions
            )
        except BaseException:
            self.claims.end(name, interrupted=True)
            raise
        if row is not None and row.approvers is None:
            self.stored[key] = row
        self.claims.end(name)


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count} people"


def _shown(call: ToolCall, row: ApprovalRow) -> ShownArguments | None:
    """The arguments of a call as they are now, with the payload that its approval covers."""
    try:
        return replace(call.shown(), payload=row.payload)
    except NotShowable:
        return None


def _grant_of(call: ToolCall, row: ApprovalRow, shown: ShownArguments | None) -> Grant | None:
    """The grant that the decision of a call asks for, with the arguments that run (A8)."""
    scope, decided_at = row.remember, row.decided_at
    if scope is None or shown is None or row.agent is None or decided_at is None:
        return None
    definition = definition_of(call.tool)
    if definition is None or row.definition_hash is None:
        # Without the definition that the approver has seen, the next call asks again.
        return None
    arguments = row.edits if isinstance(row.edits, dict) else shown.arguments
    if not arguments.keys() >= set(scope.where):
        return None
    return Grant(
        tool=row.tool,
        agent=row.agent,
        definition=definition,
        where={name: arguments[name] for name in scope.where},
        approval_id=row.approval_id,
        granted_by=row.decided_by or "",
        granted_at=decided_at,
        expires_at=decided_at + scope.ttl,
    )


def _has_changed(definition: ToolDefinition | None, row: ApprovalRow) -> bool:
    """Whether a tool is declared otherwise than when its approval was requested."""
    if row.definition_hash is None:
        # Grants of schema 6 named a tool alone, and approve nothing any more.
        return row.is_automatic
    return definition is not None and definition.digest != row.definition_hash


def approval_from(row: ApprovalRow) -> Approval:
    """Return the approval under which a call runs, as its tool and the policy see it."""
    return Approval(
        key=idempotency_key(row.key),
        decided_by=row.decided_by or "",
        decided_at=row.decided_at or 0.0,
        reason=row.reason,
        is_edited=row.edits is not None or row.edited_payload is not None,
        is_automatic=row.is_automatic,
        approved_by=tuple(row.approved_by),
        preview=None if row.preview is None else row.preview.get("version", row.preview_hash),
    )
