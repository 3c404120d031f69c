"""What the model is told of calls that did not run, or ran before, and the notes of it (T8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.core.noted import UNKNOWN, closing_words
from sluicegate.core.storable import storable_text
from sluicegate.engine.files.result_files import restored

if TYPE_CHECKING:
    from sluicegate.core.ledger import ApprovalRow

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
            self[call_id] = {"kind": "error", "text": str(answer.get("error", UNKNOWN))}
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
        approved, sentence = closing_words(row)
        answer = self.unrun(call_id, sentence)
        if not approved:
            self[call_id] = {"kind": "denied", "text": sentence}
        return answer
