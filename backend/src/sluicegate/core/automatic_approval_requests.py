"""The requests of calls that a grant approved: shown before the outcome of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.signals import (
    ApprovalRequest,
    ApprovalRequested,
    Settled,
    Signal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluicegate.core.approvals import ApprovalRow, Rows
    from sluicegate.core.call_state import CallState
    from sluicegate.core.release.base import ReleaseBuffer


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
