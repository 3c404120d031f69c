"""What clients read of an approval beside its call: people, edits, times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.core.confirmation_payload_form import seen_payload

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.release.base import ReleaseBuffer


def approvals_in(
    buffer: ReleaseBuffer, rows: Iterable[ApprovalRow], *, settled: bool = False
) -> dict[str, dict[str, Any]]:
    """The traces of the approvals of an exchange, by approval id.

    ``settled``: only of those that are decided or closed.
    """
    by_id = {row.approval_id: row for row in rows}
    requests = (request for state in buffer.calls.values() for request in state.requests)
    found = (by_id.get(request.approval_id) for request in requests)
    return {
        row.approval_id: _trace(row)
        for row in found
        if row is not None and not (settled and row.state == "requested")
    }


def edits_of(row: ApprovalRow) -> dict[str, JsonValue]:
    """The edited arguments and payload (A7), and a person's answer in place of the tool."""
    edited = {
        "edits": row.edits,
        "editedPayload": seen_payload(row.edited_payload),
        "response": row.response,
    }
    return {name: value for name, value in edited.items() if value is not None}


def _trace(row: ApprovalRow) -> dict[str, Any]:
    """Decision, approver and state of an approval; times in seconds since the epoch."""
    columns = {
        "state": row.state,
        "requestedAt": row.requested_at,
        "decidedAt": row.decided_at,
        "decidedBy": row.decided_by,
        "tool": row.tool,
        "agent": row.agent,
        "changed": row.changed,
    }
    trace: dict[str, Any] = {name: value for name, value in columns.items() if value is not None}
    if row.is_automatic:
        trace["automatic"] = True
        trace["grantId"] = row.grant_id
    if row.resolution is not None:
        trace["resolution"] = dict(row.resolution)
    if row.preview is not None:
        trace["digest"] = row.digest
    return trace | edits_of(row) | people_of(row)


def people_of(row: ApprovalRow) -> dict[str, Any]:
    """Who decides an approval, what they have decided and how many are missing, with a rule."""
    if row.approvers is None:
        return {}
    return {
        "approvers": row.approvers.as_json(),
        "digest": row.digest,
        "decisions": [each.as_json() for each in row.decisions],
        "missing": max(0, row.approvers.quorum - len(row.approved_by)),
    }
