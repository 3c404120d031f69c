"""Adds what only the ledger and the notes on events hold: deadlines, decisions, shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.approvals import ApprovalRow
from sluicegate.core.closed_approvals import closed_outcome, shown_decision
from sluicegate.core.signals import (
    NOT_FINISHED,
    Answered,
    ApprovalRequest,
    ApprovalRequested,
    InputAvailable,
    Outcome,
    Settled,
    Signal,
)

if TYPE_CHECKING:
    from sluicegate.core.call_state import CallState
    from sluicegate.core.release.buffer import ReleaseBuffer

Rows = Mapping[str, ApprovalRow]
"""Ledger rows by approval id."""


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

    ``shape`` is `sluicegate.core.function_responses.shape_of`: a word, and for ``error`` possibly
    the error text after a space. Stored sessions hold it as one string.
    """
    output = outcome.output
    if outcome.kind != "output" or not isinstance(output, dict):
        return outcome
    kind, _, error_text = shape.partition(" ")
    if kind == "error":
        return Outcome("error", text=error_text or str(output.get("error")))
    return Outcome("output", output=output.get("result"))


def with_aborted_calls(signals: Sequence[Signal], note: Mapping[str, Any]) -> list[Signal]:
    """Settle the calls that the note marks as not finished, before their step ends, as live."""
    outcomes = note.get("outcomes", {})
    settled: list[Signal] = []
    for signal in signals:
        settled.append(signal)
        if isinstance(signal, InputAvailable) and signal.call.id_in_adk in outcomes:
            settled.append(Settled(signal.call.id, NOT_FINISHED))
    return settled


def as_client_output(signal: Signal, buffer: ReleaseBuffer, note: Mapping[str, Any]) -> Signal:
    """Mark the output of an approved client-side call as the browser's.

    In ADK's log it is the tool's, as that of any approved call.
    """
    if not isinstance(signal, Settled) or signal.call_id in note.get("outcomes", {}):
        return signal
    state = buffer.calls.get(signal.call_id)
    if state is None or not state.is_client_side or not state.is_approved:
        return signal
    return Answered(signal.call_id, outcome=signal.outcome)


def closing_decision(signal: Signal, buffer: ReleaseBuffer, rows: Rows) -> list[Signal]:
    """The decision of a request that was superseded when the end of the turn ended its call.

    It is emitted before that end; ``rows`` are those of superseded requests.
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


# Grants.


def granted_rows(rows: Rows) -> dict[str, ApprovalRow]:
    """The rows of calls that a grant approved, by ADK's id of the call."""
    return {row.key.call: row for row in rows.values() if row.is_automatic}


def with_granted_requests(
    signals: Sequence[Signal], buffer: ReleaseBuffer, granted: Mapping[str, ApprovalRow]
) -> list[Signal]:
    """Add the request of a granted call before its first outcome or other request."""
    if not granted:
        return list(signals)
    settled: set[str] = set()
    added: list[Signal] = []
    for signal in signals:
        for call_id in _before_which_granted(signal, granted):
            state = None if call_id in settled else buffer.calls.get(call_id)
            settled.add(call_id)
            added.extend([] if state is None else _granted_request(state, granted))
        added.append(signal)
    return added


def _before_which_granted(signal: Signal, granted: Mapping[str, ApprovalRow]) -> list[str]:
    """The call before whose outcome, or next request, a signal stands."""
    if isinstance(signal, Settled):
        return [signal.call_id]
    if isinstance(signal, ApprovalRequested):
        own = signal.request.approval_id
        is_granted = all(row.approval_id != own for row in granted.values())
        return [signal.request.call_id] if is_granted else []
    return []


def open_granted_requests(
    buffer: ReleaseBuffer, granted: Mapping[str, ApprovalRow]
) -> list[Signal]:
    """The requests of granted calls that have no outcome, at the end of a turn."""
    return [
        request for state in buffer.calls.values() for request in _granted_request(state, granted)
    ]


def _granted_request(state: CallState, granted: Mapping[str, ApprovalRow]) -> list[Signal]:
    row = granted.get(state.call.id_in_adk)
    if row is None or state.request is not None or state.outcome is not None:
        return []
    request = ApprovalRequest(
        approval_id=row.approval_id,
        call_id=state.call.id,
        confirmation_id="",
        answer_name="adk_request_confirmation",
        hint="",
        payload=None,
        branch=state.call.branch,
        invocation=row.key.invocation,
        automatic=True,
    )
    return [ApprovalRequested(request)]
