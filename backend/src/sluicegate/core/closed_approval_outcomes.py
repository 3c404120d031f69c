"""What the user and the model read of an approval that is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluicegate.core.signals import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluicegate.core.approvals import ApprovalRow

OUTCOME_UNKNOWN: Final = (
    "The outcome is unknown: the server stopped while this call ran, so it was not run again. "
    "Check whether it took effect."
)


CLOSING_REASONS: Final[Mapping[str, str]] = {
    "expired": "This approval expired.",
    "superseded": "Superseded before it was answered.",
}
"""Reasons of rows that were closed without a decision, by state."""


def shown_decision(row: ApprovalRow) -> tuple[bool, str | None]:
    """Whether the message shows the request as approved, and the reason that it shows.

    An approval stays one even when nothing ran (T8). The reason is the approver's own; without a
    decision it says why the request was closed.
    """
    reason = row.reason if row.answer is not None else CLOSING_REASONS.get(row.state, row.reason)
    return row.answer is True, reason


def closed_outcome(row: ApprovalRow) -> Outcome:
    """The outcome of a call that will not run any more (T8)."""
    if row.state in ("executing", "unknown"):
        return Outcome("error", text=OUTCOME_UNKNOWN)
    if row.state == "failed" and isinstance(row.outcome, dict):
        return Outcome("error", text=str(row.outcome.get("error")))
    if row.state == "executed":
        return Outcome("output", output=row.outcome)
    approved, sentence = closing_sentence(row)
    return Outcome("error" if approved else "denied", text=sentence)


def closing_sentence(row: ApprovalRow | None) -> tuple[bool, str]:
    """Whether a call that was closed without running was approved, and its result for the model."""
    if row is None:
        return False, "Not run: it was superseded."
    reason = CLOSING_REASONS.get(row.state) or _refusal(row) or "it was refused."
    if row.state == "expired" and row.answer is None and row.at_expiry == "deny":
        reason = "it was not approved in time, so it is denied."
    if row.state == "superseded" and row.answer is True:
        reason = "the turn ended before it began."
    return row.answer is True, f"Not run: {reason}"


def _refusal(row: ApprovalRow) -> str:
    """Why the server did not run an approved call."""
    return str(row.outcome.get("error") or "") if isinstance(row.outcome, dict) else ""
