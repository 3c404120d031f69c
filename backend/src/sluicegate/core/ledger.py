"""The states of an approval as a table, and the row that remembers who decided what and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pydantic import JsonValue

    from sluicegate.core.keys import CallKey

ApprovalState = Literal[
    "requested",
    "approved",
    "denied",
    "expired",
    "superseded",
    "refused",
    "executing",
    "executed",
    "failed",
    "unknown",
]

TRANSITIONS: dict[ApprovalState, frozenset[ApprovalState]] = {
    "requested": frozenset({"approved", "denied", "expired", "superseded"}),
    "approved": frozenset({"executing", "expired", "superseded", "refused"}),
    "executing": frozenset({"executed", "failed", "unknown"}),
    "unknown": frozenset({"executed", "failed"}),
    "denied": frozenset(),
    "expired": frozenset(),
    "superseded": frozenset(),
    "refused": frozenset(),
    "executed": frozenset(),
    "failed": frozenset(),
}
"""Which state may follow which; a move that is not listed never happens."""

EFFECTFUL: frozenset[ApprovalState] = frozenset({"executing", "executed", "failed", "unknown"})
"""States in which the effect happened or may have happened; such a call is never forgotten."""


def sources(target: ApprovalState) -> tuple[ApprovalState, ...]:
    """The states from which ``target`` may be reached, for a compare-and-set."""
    return tuple(state for state, targets in TRANSITIONS.items() if target in targets)


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """One gated call in the ledger (A1). Times are seconds since the epoch, database clock.

    ``answer`` is what the person said, also when it came too late; ``owner`` names the process
    and turn that claimed the call; ``outcome`` is the result handed to the model, once known.
    """

    key: CallKey
    approval_id: str
    tool: str
    args_hash: str
    requested_at: float
    deadline: float
    state: ApprovalState = "requested"
    answer: bool | None = None
    reason: str | None = None
    decided_by: str | None = None
    decided_at: float | None = None
    owner: str | None = None
    claimed_at: float | None = None
    outcome: JsonValue = None
    finished_at: float | None = None


@dataclass(frozen=True, slots=True)
class NewApproval:
    """A request to be remembered; ``ttl`` in seconds counts from the database's now."""

    key: CallKey
    approval_id: str
    tool: str
    args_hash: str
    ttl: float


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's answer to one request."""

    request: NewApproval
    approved: bool
    reason: str | None
