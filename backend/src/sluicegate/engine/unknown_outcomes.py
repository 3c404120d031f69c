"""Calls whose outcome a crash has lost: found, and resolved by a person who has checked (A5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from sluicegate.core.approvals import RESOLVED
from sluicegate.core.call_keys import idempotency_key
from sluicegate.engine.guard.call_responses import outcome_with_edits
from sluicegate.engine.guard.claims import OUTCOME_KNOWN
from sluicegate.engine.run_call_again import RunAgain
from sluicegate.errors import AlreadyDecided, HeldByAnotherOwner, Malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow, Resolver
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.open_resources import EngineResources
    from sluicegate.engine.turn.chat_leases import ChatLeases
    from sluicegate.engine.turn.local_turns import LocalTurns
    from sluicegate.stores.approvals.inbox import ApprovalInbox
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.tools.approval_terms import ApprovalTerms

ResolvedOutcome = Literal["executed", "failed", "run-again"]
_OUTCOMES: Final[dict[str, ResolvedOutcome]] = {
    "executed": "executed",
    "failed": "failed",
    "run-again": "run-again",
}

_NOTES: Final = {
    "executed": "Its result was lost. A person has checked that the call took effect.",
    "failed": "Its result was lost. A person has checked that the call did not take effect.",
}
"""What the model reads of a resolved call, if it has not read that it is unknown."""


@dataclass(frozen=True, slots=True)
class UnknownOutcomes:
    """Finds and resolves the calls of an app whose outcome is not known.

    ``max_reason`` is the number of characters of a reason.
    """

    app: str
    survey: AgentSurvey
    inbox: ApprovalInbox
    ledger: Ledger
    leases: ChatLeases
    turns: LocalTurns
    run_again: RunAgain
    max_reason: int

    async def find(self, user: str) -> None:
        """Mark the calls that a user may see whose process has died as unknown.

        The sweep (`ApprovalSweep`) does the same for all chats, at longer intervals.
        """
        for chat in await self.inbox.chats_with_claims(self.app, user):
            await self._find_in(chat)

    def shown(self, row: ApprovalRow) -> dict[str, Any]:
        """Return what helps to find out what happened: the key, and what the tool declares."""
        terms = self._terms(row)
        return {
            "key": idempotency_key(row.key),
            "hasLookUp": terms.find is not None,
            "isIdempotent": terms.idempotent,
        }

    async def resolve(self, row: ApprovalRow, outcome: ResolvedOutcome, by: Resolver) -> None:
        """Resolve an outcome as a person says.

        Raises:
            AlreadyDecided: the outcome is known.
            NotIdempotent: the call is to run again, and its tool does not allow that.
            RequestError: the call cannot run again now; nothing has changed.
        """
        if row.state == "executing":
            await self._find_in(row.key.chat_key)
        if outcome == "run-again":
            await self.run_again(row, by)
            return
        stored = resolved_outcome(row, outcome, by.reason)
        if not await self.ledger.resolutions.store(row.key, outcome, stored, by=by):
            raise AlreadyDecided(OUTCOME_KNOWN)

    def parse(self, body: Mapping[str, JsonValue]) -> tuple[ResolvedOutcome, str]:
        """Parse ``{outcome, reason}``; raises Malformed."""
        outcome, reason = body.get("outcome"), body.get("reason")
        if not isinstance(outcome, str) or outcome not in _OUTCOMES:
            raise Malformed("The outcome must be executed, failed or run-again.")
        if not isinstance(reason, str) or not reason.strip() or len(reason) > self.max_reason:
            raise Malformed(f"The reason must be text of 1 to {self.max_reason} characters.")
        return _OUTCOMES[outcome], reason

    def _terms(self, row: ApprovalRow) -> ApprovalTerms:
        return self.survey.of_chat(row.key.chat_key).terms(row.agent or "", row.tool)

    async def _find_in(self, chat: ChatKey) -> None:
        try:
            async with self.leases.acquired(chat, after=None):
                await self.ledger.mark_unknown(chat, owners_alive=self.turns.claim_owners())
        except HeldByAnotherOwner:
            # Its process lives, or its lease has not ended yet.
            return


def open_unknown_outcomes(resources: EngineResources, *, patience: float) -> UnknownOutcomes:
    """Return what finds and resolves the unknown outcomes of an engine."""
    again = RunAgain(
        runner=resources.runner,
        ledger=resources.ledger,
        leases=resources.leases,
        log=resources.session_log,
        files=resources.files,
        policy=resources.policy,
        entitlement=resources.entitlement,
        previews=resources.previews,
        options=resources.options,
        patience=patience,
    )
    return UnknownOutcomes(
        app=resources.app,
        survey=resources.survey,
        inbox=resources.inbox,
        ledger=resources.ledger,
        leases=resources.leases,
        turns=resources.turns,
        run_again=again,
        max_reason=resources.options.request_limits.reason,
    )


def resolved_outcome(
    row: ApprovalRow, outcome: Literal["executed", "failed"], reason: str
) -> JsonValue:
    """Return the outcome that the ledger stores for a call that a person has resolved.

    The model reads it if the chat goes on after that, without the name of the person.
    """
    said: dict[str, JsonValue] = {"outcome": outcome, "reason": reason}
    stored: dict[str, JsonValue] = {"note": _NOTES[outcome], RESOLVED: said}
    if outcome == "failed":
        stored = {"error": f"{_NOTES[outcome]} {reason}", RESOLVED: said}
    return outcome_with_edits(stored, row.edits) if isinstance(row.edits, dict) else stored
