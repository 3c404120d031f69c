"""What the model gets in response to a gated call, and the approval that its tool reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.closed_approval_outcomes import OUTCOME_UNKNOWN, closing_sentence
from sluicegate.core.json_values import storable_text
from sluicegate.media.storable_results import FILES_KEY, from_outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow

REPEATED_AFTER_DENIAL: Final = "Not run: the user denied the same call before."
TOO_MANY: Final = "Not run: too many approvals were asked for at once; answer the user first."
NOT_APPROVED: Final = "Not run: no approval of this call is known."
WAITING: Final = {"status": "waiting", "result": "The user has been asked to approve this call."}
"""The placeholder of a call whose approval a callback has requested; no model reads it."""
STOPPED: Final = "Not run: the turn was stopped."

EDITED: Final = "edited_by_user"
"""The key in a result under which the model reads that the arguments were changed (A7)."""

ANSWERED_BY_PERSON: Final = "answered_by_person"
"""The key under which the model reads what a person answered in place of a tool."""

_ANSWERED: Final = "The tool did not run. A person has answered in its place."
_EDITED_NOTE: Final = "The user changed the arguments before approving; the call ran with these."


class Outcomes(dict[str, dict[str, str]]):
    """Notes on calls that ended without a plain output, by the name of the call.

    The methods note an outcome and return the function response that the model gets.
    """

    def not_run(self, name: str, sentence: str) -> dict[str, Any]:
        """Respond to a call that did not run, or whose tool failed."""
        sentence = storable_text(sentence)
        self[name] = {"kind": "error", "text": sentence}
        return {"status": "error", "error": sentence}

    def stored(self, name: str, row: ApprovalRow) -> dict[str, Any]:
        """Respond with the outcome that the ledger holds of an earlier run."""
        outcome = row.outcome
        response = from_outcome(outcome) if isinstance(outcome, dict) else {"result": outcome}
        if row.state == "failed":
            self[name] = {"kind": "error", "text": str(response.get("error", OUTCOME_UNKNOWN))}
        return response

    def closed(self, name: str, row: ApprovalRow) -> dict[str, Any]:
        """Respond to a call whose row does not let it run (A1, A5, A6)."""
        if row.state == "denied" or (row.state == "expired" and row.answer is False):
            self[name] = {"kind": "denied", "text": "The user denied this call."}
            if row.response is not None:
                return {"status": "answered", "note": _ANSWERED, ANSWERED_BY_PERSON: row.response}
            denied: dict[str, Any] = {"status": "denied", "error": "The user denied this call."}
            if row.state == "expired":
                denied["error"] = "The approval of this call expired."
            if row.reason:
                denied["reason"] = row.reason
            return denied
        if row.state in ("approved", "requested"):
            return self.not_run(name, NOT_APPROVED)
        approved, sentence = closing_sentence(row)
        response = self.not_run(name, sentence)
        if not approved:
            self[name] = {"kind": "denied", "text": sentence}
        return response


def with_edits(result: object, edits: Mapping[str, Any]) -> dict[str, Any]:
    """Add to a result the note from which the model learns the arguments of the call."""
    note = {"note": _EDITED_NOTE, "arguments": dict(edits)}
    if isinstance(result, dict) and EDITED not in result:
        return {**result, EDITED: note}
    return {"result": result, EDITED: note}


def outcome_with_edits(outcome: JsonValue, edits: Mapping[str, Any]) -> JsonValue:
    """As `with_edits`, for the outcome that the ledger stores."""
    if isinstance(outcome, dict) and FILES_KEY in outcome:
        return {**outcome, "response": with_edits(outcome["response"], edits)}
    return with_edits(outcome, edits)
