"""Signals with what only the ledger holds: deadlines, decisions, and the ends of closed calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.closed_approval_outcomes import closed_outcome, shown_decision
from sluicegate.core.signals import (
    Answered,
    ApprovalRequested,
    Outcome,
    Settled,
    Signal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluicegate.core.approvals import Rows
    from sluicegate.core.call_state import CallState
    from sluicegate.core.release.base import ReleaseBuffer

_FINAL: Final = frozenset({"denied", "executed", "expired", "failed", "unknown"})


# Signals of an event.


def annotated(signal: Signal, rows: Rows, note: Mapping[str, Any]) -> Signal:
    """Add what only the ledger or a note on the event holds.

    The deadline of a request and what has changed in its tool, the reason of a decision, the
    shape that a browser's output had.
    """
    match signal:
        case ApprovalRequested(request=request) if request.approval_id in rows:
            row = rows[request.approval_id]
            stored = replace(request, expires_at=row.deadline, changed=row.changed)
            if row.approvers is not None:
                rule = row.approvers.as_json()
                stored = replace(stored, approvers=rule, digest=row.args_hash)
            if row.preview is not None:
                stored = replace(stored, preview=row.preview, digest=row.digest)
            return replace(signal, request=stored)
        case Answered(approval_id=str(approval_id)) if approval_id in rows:
            approved, reason = shown_decision(rows[approval_id])
            return replace(signal, approved=approved, reason=reason)
        case Answered(outcome=Outcome() as outcome) | Settled(outcome=outcome):
            shape = note.get("outputs", {}).get(signal.call_id)
            return replace(signal, outcome=_in_shape(outcome, shape)) if shape else signal
        case _:
            return signal


def _in_shape(outcome: Outcome, shape: str) -> Outcome:
    """The output that a browser sent, from the object that ADK got.

    ``shape`` is `core.function_responses_for_adk.shape_of`: a word, and for ``error`` possibly the
    error text after a space. Stored sessions hold it as one string.
    """
    output = outcome.output
    if outcome.kind != "output" or not isinstance(output, dict):
        return outcome
    kind, _, error_text = shape.partition(" ")
    if kind == "error":
        return Outcome("error", text=error_text or str(output.get("error")))
    return Outcome("output", output=output.get("result"))


def closing_decision(signal: Signal, buffer: ReleaseBuffer, rows: Rows) -> list[Signal]:
    """The decision of a request that was superseded when the end of the turn ended its call.

    It is emitted before that end. Rows in another state than ``superseded`` are ignored.
    """
    state = buffer.calls.get(signal.call_id) if isinstance(signal, Settled) else None
    if state is None or state.request is None or state.answer or state.outcome:
        return []
    row = rows.get(state.request.approval_id)
    if row is None or row.state != "superseded":
        return []
    approved, reason = shown_decision(row)
    return [Answered(state.call.id, row.approval_id, approved=approved, reason=reason)]


# Decisions and ends that only the ledger holds.


def undelivered_decision(state: CallState, rows: Rows) -> Answered | None:
    """A decision that is recorded in the ledger and not in the session."""
    row = rows.get(state.request.approval_id) if state.request else None
    if row is None or row.state == "requested":
        return None
    approved, reason = shown_decision(row)
    return Answered(
        state.call.id, row.approval_id, approved=approved, reason=reason, delivered=False
    )


def is_superseded(buffer: ReleaseBuffer, rows: Rows) -> bool:
    """Whether the ledger has closed the exchange: all its open calls are superseded at once."""
    requests = (state.request for state in buffer.calls.values())
    found = (rows.get(request.approval_id) for request in requests if request is not None)
    return any(row is not None and row.state == "superseded" for row in found)


def closed_call(state: CallState, rows: Rows, *, is_over: bool) -> list[Signal]:
    """The end of a call that will not run any more, if the ledger has closed it.

    ``is_over``: the exchange was closed in the ledger, and its calls with it; else only a
    superseded call has ended.
    """
    row = rows.get(state.request.approval_id) if state.request else None
    if row is None or not (row.state == "superseded" or (is_over and row.state in _FINAL)):
        return []
    return [Settled(state.call.id, closed_outcome(row))]
