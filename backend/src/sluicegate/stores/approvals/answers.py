"""What people say of requests, as the ledger stores it (A4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.core.canonical import hash_arguments
from sluicegate.errors import StoreError
from sluicegate.stores.approvals.approval_rows import key_values, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.keys import CallKey
    from sluicegate.core.ledger import ApprovalRow, Decision, NewApproval


def requested(new: NewApproval) -> dict[str, Any]:
    """What binds the values of a new request."""
    return {
        **key_values(new.key),
        "its_args_hash": new.args_hash,
        "new_approval_id": new.approval_id,
        "new_tool": new.tool,
        "new_ttl": new.ttl,
        "new_arguments": to_json(new.arguments),
        "new_hint": new.hint,
    }


def answered(decision: Decision, by: str, via: str) -> dict[str, Any]:
    """What binds the values of an answer, ``by`` a person ``via`` a transport."""
    request, edits = decision.request, decision.edits
    return {
        **key_values(request.key),
        "its_args_hash": request.args_hash,
        "new_state": "approved" if decision.approved else "denied",
        "new_answer": decision.approved,
        "new_reason": decision.reason,
        "new_decided_by": by,
        "new_via": via or None,
        "new_edits": None if edits is None else to_json(edits),
        "new_edits_hash": None if edits is None else hash_arguments(edits),
    }


def without_contradictions(decisions: Sequence[Decision]) -> dict[CallKey, NewApproval]:
    """Return the requests that are decided, each once."""
    answers: dict[CallKey, Decision] = {}
    for decision in decisions:
        first = answers.setdefault(decision.request.key, decision)
        if first.approved != decision.approved:
            raise StoreError("one request was answered with both yes and no")
    return {key: decision.request for key, decision in answers.items()}


def has_lost(decision: Decision, row: ApprovalRow) -> bool:
    """Whether somebody said something else before, or took the question back (A4)."""
    is_contradicted = row.answer is not None and not decision.says_what(row)
    return is_contradicted or row.state == "superseded"
