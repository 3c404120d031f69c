"""The values that requests and decisions bind to the statements of the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.core.approval_previews import DRIFTED, digest_of
from sluicegate.core.json_values import hash_arguments
from sluicegate.errors import StoreError
from sluicegate.stores.approvals.ledger_rows import key_values, to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow, Decision, NewApproval, Resolver
    from sluicegate.core.call_keys import CallKey


def request_values(new: NewApproval) -> dict[str, Any]:
    """The values of an approval request."""
    return {
        **key_values(new.key),
        "its_args_hash": new.args_hash,
        "new_approval_id": new.approval_id,
        "new_tool": new.tool,
        "new_ttl": new.ttl,
        "new_arguments": to_json(new.arguments),
        "new_hint": new.hint,
        "new_agent": new.agent,
        "new_definition_hash": None if new.definition is None else new.definition.digest,
        "new_changed": None if new.changed is None else to_json(new.changed),
        "new_payload": None if new.payload is None else to_json(new.payload),
        "new_approvers": None if new.approvers is None else to_json(new.approvers.as_json()),
        "new_remind_after": new.remind_after,
        "new_at_expiry": new.at_expiry,
        **preview_values(new.preview),
    }


def decision_values(decision: Decision, by: str, via: str) -> dict[str, Any]:
    """The values of a decision."""
    request, edits, remember = decision.request, decision.edits, decision.remember
    payload, response = decision.payload, decision.response
    return {
        **key_values(request.key),
        "its_args_hash": request.args_hash,
        "new_state": "approved" if decision.approved else "denied",
        "new_answer": decision.approved,
        "new_reason": decision.reason,
        "new_decided_by": by,
        "new_via": via or None,
        "new_edits": None if edits is None else to_json(edits),
        "new_edits_hash": _edits_hash(decision),
        "new_edited_payload": None if payload is None else to_json(payload),
        "new_remember": None if remember is None else to_json(remember.as_json()),
        "new_response": None if response is None else to_json(response),
    }


def _edits_hash(decision: Decision) -> str | None:
    """The digest of what is approved, if it is not what was requested."""
    request, edits, payload = decision.request, decision.edits, decision.payload
    if edits is None and payload is None:
        return None
    return hash_arguments(
        request.arguments if edits is None else edits,
        payload=request.payload if payload is None else payload,
    )


def preview_values(preview: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values of a preview."""
    return {
        "new_preview": None if preview is None else to_json(dict(preview)),
        "new_preview_hash": None if preview is None else digest_of(preview),
    }


def proposed_values(decision: Decision, row: ApprovalRow) -> dict[str, Any]:
    """The edits of a call with a preview, which are stored before the decision on them."""
    if row.preview is None or decision.edits is not None or row.edits is None:
        return {}
    payload = row.payload if decision.payload is None else decision.payload
    edits_hash = hash_arguments(row.edits, payload=payload)
    return {"new_edits": to_json(row.edits), "new_edits_hash": edits_hash}


def resolver_values(resolver: Resolver | None) -> dict[str, Any]:
    """Whom the audit trail names in place of the approver; empty without a resolver."""
    return {} if resolver is None else {"audit_by": resolver.user, "audit_via": resolver.via}


def outcome_values(outcome: JsonValue, actions: JsonValue) -> dict[str, Any]:
    """The outcome of a call, and what it did beside it."""
    encoded = None if actions is None else to_json(actions)
    return {"new_outcome": to_json(outcome), "new_actions": encoded}


def error_in(outcome: JsonValue) -> str | None:
    """Why a call failed, for the audit trail."""
    return str(outcome.get("error") or "") or None if isinstance(outcome, dict) else None


def error_outcome(reason: str, *, has_drifted: bool = False) -> str:
    """Encode a refusal's outcome; the person's own reason has a column of its own.

    ``has_drifted``: the preview was another one.
    """
    return to_json({"error": reason} | ({DRIFTED: True} if has_drifted else {}))


def requests_of(decisions: Sequence[Decision]) -> dict[CallKey, NewApproval]:
    """Return the decided requests, each once; raises StoreError for a contradiction."""
    answers: dict[CallKey, Decision] = {}
    for decision in decisions:
        first = answers.setdefault(decision.request.key, decision)
        if first.approved != decision.approved:
            raise StoreError("one request was answered with both yes and no")
    return {key: decision.request for key, decision in answers.items()}
