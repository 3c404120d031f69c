"""What the ledger and the notes on events add to signals: deadlines, answers, shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluicegate.core.approvals import ApprovalRow
from sluicegate.core.release.base import NOT_FINISHED
from sluicegate.core.signals import (
    Answered,
    ApprovalRequest,
    ApprovalRequested,
    InputAvailable,
    Outcome,
    Settled,
    Signal,
)

if TYPE_CHECKING:
    from sluicegate.core.calls import CallState
    from sluicegate.core.release.base import ReleaseBuffer

Rows = Mapping[str, ApprovalRow]
"""Ledger rows by approval id."""

UNKNOWN = (
    "The outcome is unknown: the server stopped while this call ran, so it was not run again. "
    "Check whether it took effect."
)

_FINAL = frozenset({"denied", "executed", "expired", "failed", "unknown"})

REASONS: dict[str, str] = {
    "expired": "This approval expired.",
    "superseded": "Superseded before it was answered.",
}


def enriched(signal: Signal, rows: Rows, note: Mapping[str, Any]) -> Signal:
    """Add what only the ledger or a note on the event knows.

    The deadline of a request, the words of an answer, the shape a browser's output had.
    """
    match signal:
        case ApprovalRequested(ask=ask):
            row = rows.get(ask.approval_id)
            return (
                signal if row is None else ApprovalRequested(replace(ask, expires_at=row.deadline))
            )
        case Answered(approval_id=str(approval_id)) if approval_id in rows:
            approved, reason = shown_answer(rows[approval_id])
            return replace(signal, approved=approved, reason=reason)
        case Answered(outcome=Outcome() as outcome) | Settled(outcome=outcome):
            shape = note.get("outputs", {}).get(signal.call_id)
            return replace(signal, outcome=_in_shape(outcome, shape)) if shape else signal
        case _:
            return signal


def cut_short(signals: Sequence[Signal], note: Mapping[str, Any]) -> list[Signal]:
    """End the calls that the note says were cut, before their step ends, as it was told live."""
    outcomes = note.get("outcomes", {})
    found: list[Signal] = []
    for signal in signals:
        found.append(signal)
        if isinstance(signal, InputAvailable) and signal.call.id_in_adk in outcomes:
            found.append(Settled(signal.call.id, NOT_FINISHED))
    return found


def by_browser(signal: Signal, gate: ReleaseBuffer, note: Mapping[str, Any]) -> Signal:
    """Say that the output of a gated client-side call came from the browser.

    ADK's log has it from the tool, as that of any call that was approved.
    """
    if not isinstance(signal, Settled) or signal.call_id in note.get("outcomes", {}):
        return signal
    state = gate.calls.get(signal.call_id)
    if state is None or not state.is_client_side or not state.is_approved:
        return signal
    return Answered(signal.call_id, outcome=signal.outcome)


def _in_shape(outcome: Outcome, shape: str) -> Outcome:
    output = outcome.output
    if outcome.kind != "output" or not isinstance(output, dict):
        return outcome
    kind, _, words = shape.partition(" ")
    if kind == "error":
        return Outcome("error", text=words or str(output.get("error")))
    return Outcome("output", output=output.get("result"))


def closed_in(rows: Rows, state: CallState, *, is_over: bool) -> list[Signal]:
    """The end of a call that nobody runs any more, whatever the log holds.

    ``is_over``: the exchange was closed in the ledger, and its calls with it; else only a call
    that was superseded has ended.
    """
    row = rows.get(state.ask.approval_id) if state.ask else None
    if row is None or not (row.state == "superseded" or (is_over and row.state in _FINAL)):
        return []
    return [Settled(state.call.id, ended_as(row))]


def is_closed_in(rows: Rows, gate: ReleaseBuffer) -> bool:
    """Whether the ledger has closed the exchange: all its open calls are superseded at once."""
    asks = (state.ask for state in gate.calls.values())
    found = (rows.get(ask.approval_id) for ask in asks if ask is not None)
    return any(row is not None and row.state == "superseded" for row in found)


def ended_as(row: ApprovalRow) -> Outcome:
    """How a call ends that nobody will run any more (T8)."""
    if row.state in ("executing", "unknown"):
        return Outcome("error", text=UNKNOWN)
    if row.state == "failed" and isinstance(row.outcome, dict):
        return Outcome("error", text=str(row.outcome.get("error")))
    if row.state == "executed":
        return Outcome("output", output=row.outcome)
    approved, sentence = closing_words(row)
    return Outcome("error" if approved else "denied", text=sentence)


def closed_by_end(signal: Signal, gate: ReleaseBuffer, rows: Rows) -> list[Signal]:
    """What the ledger says to a question that nobody answered before the turn ended its call.

    It is told before that end; ``rows`` are those of questions that were closed.
    """
    state = gate.calls.get(signal.call_id) if isinstance(signal, Settled) else None
    if state is None or state.ask is None or state.answer is not None or state.outcome is not None:
        return []
    row = rows.get(state.ask.approval_id)
    if row is None or row.state != "superseded":
        return []
    approved, reason = shown_answer(row)
    return [Answered(state.call.id, row.approval_id, approved=approved, reason=reason)]


def decision_in(rows: Rows, state: CallState) -> Answered | None:
    """A decision that lies in the ledger and of which ADK has not been told."""
    row = rows.get(state.ask.approval_id) if state.ask else None
    if row is None or row.state == "requested":
        return None
    approved, reason = shown_answer(row)
    return Answered(
        state.call.id, row.approval_id, approved=approved, reason=reason, delivered=False
    )


def shown_answer(row: ApprovalRow) -> tuple[bool, str | None]:
    """What the message says of a decision: a yes stays a yes even when nothing ran (T8).

    The words are the person's own, who has them already; where nobody answered they say why.
    """
    reason = row.reason if row.answer is not None else REASONS.get(row.state, row.reason)
    return row.answer is True, reason


def closing_words(row: ApprovalRow | None) -> tuple[bool, str]:
    """What the model is told of a call that was closed without running: (said yes, sentence)."""
    if row is None:
        return False, "Not run: it was superseded."
    reason = REASONS.get(row.state) or _refusal(row) or "it was refused."
    if row.state == "superseded" and row.answer is True:
        reason = "the turn ended before it began."
    return row.answer is True, f"Not run: {reason}"


def _refusal(row: ApprovalRow) -> str:
    """Why the server did not run an approved call."""
    return str(row.outcome.get("error") or "") if isinstance(row.outcome, dict) else ""


def remembered_in(rows: Rows) -> dict[str, ApprovalRow]:
    """The rows of calls that were approved without asking."""
    return {row.key.call: row for row in rows.values() if row.is_automatic}


def with_remembered(
    signals: Sequence[Signal], gate: ReleaseBuffer, remembered: Mapping[str, ApprovalRow]
) -> list[Signal]:
    """Tell of a remembered approval before the first outcome of its call."""
    if not remembered:
        return list(signals)
    told: set[str] = set()
    found: list[Signal] = []
    for signal in signals:
        if isinstance(signal, Settled) and signal.call_id not in told:
            told.add(signal.call_id)
            state = gate.calls.get(signal.call_id)
            found.extend([] if state is None else _asked(state, remembered))
        found.append(signal)
    return found


def remembered_open(gate: ReleaseBuffer, remembered: Mapping[str, ApprovalRow]) -> list[Signal]:
    """Tell of the remembered approvals of calls that have no outcome yet, or will have none."""
    return [s for state in gate.calls.values() for s in _asked(state, remembered)]


def _asked(state: CallState, remembered: Mapping[str, ApprovalRow]) -> list[Signal]:
    row = remembered.get(state.call.id_in_adk)
    if row is None or state.ask is not None or state.outcome is not None:
        return []
    ask = ApprovalRequest(
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
    return [ApprovalRequested(ask)]
