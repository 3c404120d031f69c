"""What the model is told of calls that did not run, or ran before, and the notes of it (T8)."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluicegate.core.json_values import json_safe, storable_text
from sluicegate.core.keys import idempotency_key
from sluicegate.core.ledger_overlay import OUTCOME_UNKNOWN, closing_sentence
from sluicegate.engine.files.result_files import FILES_KEY, restored
from sluicegate.tools.gated import Approval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.tools.gated import OutcomeLookup

REPEATED_AFTER_DENIAL = "Not run: the user denied the same call before."
TOO_MANY = "Not run: too many approvals were asked for at once; answer the user first."
NOT_APPROVED = "Not run: no approval of this call is known."
STOPPED = "Not run: the turn was stopped."


class Outcomes(dict[str, dict[str, str]]):
    """How calls ended where that is not a plain output, by the name of the call."""

    def unrun(self, call_id: str, sentence: str) -> dict[str, Any]:
        """The answer of a call that did not run, or whose tool failed."""
        sentence = storable_text(sentence)
        self[call_id] = {"kind": "error", "text": sentence}
        return {"status": "error", "error": sentence}

    def stored(self, call_id: str, row: ApprovalRow) -> dict[str, Any]:
        """The answer of a call that ran before, from its row."""
        outcome = row.outcome
        answer = restored(outcome) if isinstance(outcome, dict) else {"result": outcome}
        if row.state == "failed":
            self[call_id] = {"kind": "error", "text": str(answer.get("error", OUTCOME_UNKNOWN))}
        return answer

    def closed(self, call_id: str, row: ApprovalRow) -> dict[str, Any]:
        """The answer of a call that may not run, from its row (A1, A5, A6)."""
        if row.state == "denied" or (row.state == "expired" and row.answer is False):
            self[call_id] = {"kind": "denied", "text": "The user denied this call."}
            denied: dict[str, Any] = {"status": "denied", "error": "The user denied this call."}
            if row.state == "expired":
                denied["error"] = "The approval of this call expired."
            if row.reason:
                denied["reason"] = row.reason
            return denied
        if row.state in ("approved", "requested"):
            return self.unrun(call_id, NOT_APPROVED)
        approved, sentence = closing_sentence(row)
        answer = self.unrun(call_id, sentence)
        if not approved:
            self[call_id] = {"kind": "denied", "text": sentence}
        return answer


EDITED = "edited_by_user"
"""The key in a result under which the model reads that the arguments were changed (A7)."""

_EDITED_NOTE = "The user changed the arguments before approving; the call ran with these."
_PATIENCE = 10.0
"""Seconds that a look-up may take."""


def approval(row: ApprovalRow) -> Approval:
    """The approval under which a call runs, as its tool and the policy see it."""
    return Approval(
        key=idempotency_key(row.key),
        decided_by=row.decided_by or "",
        decided_at=row.decided_at or 0.0,
        reason=row.reason,
        is_edited=row.edits is not None,
        is_automatic=row.is_automatic,
    )


async def look_up(
    ledger: Ledger,
    find: OutcomeLookup | None,
    row: ApprovalRow,
    *,
    owner: str,
    report: Callable[[BaseException], str],
) -> ApprovalRow | None:
    """Ask a tool what became of a call that a crash cut off, and store what it says.

    Returns the row as it is then; None when the tool cannot tell.
    """
    if find is None:
        return None
    try:
        async with asyncio.timeout(_PATIENCE):
            found = await _called(find, idempotency_key(row.key))
    except Exception as error:  # noqa: BLE001 - it is the user's and may raise anything
        report(error)
        return None
    if found is None:
        return None
    outcome = json_safe(found)
    if isinstance(row.edits, dict):
        outcome = noted_outcome(outcome, row.edits)
    await ledger.store_outcome(row.key, owner=owner, state="executed", outcome=outcome)
    return replace(row, state="executed", outcome=outcome)


def with_edits(result: object, edits: Mapping[str, Any]) -> dict[str, Any]:
    """A result from which the model learns with which arguments the call ran."""
    note = {"note": _EDITED_NOTE, "arguments": dict(edits)}
    if isinstance(result, dict) and EDITED not in result:
        return {**result, EDITED: note}
    return {"result": result, EDITED: note}


def noted_outcome(outcome: JsonValue, edits: Mapping[str, Any]) -> JsonValue:
    """The same for what the ledger keeps of a result."""
    if isinstance(outcome, dict) and FILES_KEY in outcome:
        return {**outcome, "response": with_edits(outcome["response"], edits)}
    return with_edits(outcome, edits)


async def _called(find: OutcomeLookup, key: str) -> Any:
    if inspect.iscoroutinefunction(find):
        return await find(key)
    found = await asyncio.to_thread(find, key)
    return await found if inspect.isawaitable(found) else found
