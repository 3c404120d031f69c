"""The states of an approval as a table, and the ledger's row with its decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sluicegate.core.json_values import canonical_json

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
    "unknown": frozenset({"executing", "executed", "failed"}),
    "denied": frozenset(),
    "expired": frozenset(),
    "superseded": frozenset(),
    "refused": frozenset(),
    "executed": frozenset(),
    "failed": frozenset(),
}
"""Which state may follow which; any other transition is refused."""

EFFECTFUL: frozenset[ApprovalState] = frozenset({"executing", "executed", "failed", "unknown"})
"""States in which the effect happened or may have happened; such a call is never forgotten."""


def sources(target: ApprovalState) -> tuple[ApprovalState, ...]:
    """The states from which ``target`` may be reached, for a compare-and-set."""
    return tuple(state for state, targets in TRANSITIONS.items() if target in targets)


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """One gated call in the ledger (A1). Times are seconds since the epoch, database clock.

    ``answer`` is the decision, also when it came too late; ``owner`` names the process and turn
    that claimed the call; ``outcome`` is the result for the model, once known.
    ``arguments`` are the requested ones, ``edits`` those that were approved in their place.
    ``grant_id`` is the approval whose grant approved this call (A8). ``via`` is the transport that
    brought the decision (A10).
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
    arguments: JsonValue = None
    edits: JsonValue = None
    hint: str | None = None
    grant_id: str | None = None
    via: str | None = None

    @property
    def is_automatic(self) -> bool:
        """Whether a grant approved the call (A8)."""
        return self.grant_id is not None


@dataclass(frozen=True, slots=True)
class NewApproval:
    """An approval request to record; ``ttl`` in seconds counts from the database's now."""

    key: CallKey
    approval_id: str
    tool: str
    args_hash: str
    ttl: float
    arguments: JsonValue = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision on one approval request.

    ``edits`` are the arguments to run with in place of the requested ones; ``is_remembered``:
    the decision grants the tool's later calls in the chat too (A8).
    """

    request: NewApproval
    approved: bool
    reason: str | None
    edits: JsonValue = None
    is_remembered: bool = False

    def equals(self, row: ApprovalRow) -> bool:
        """Whether the row holds the same decision: approving other arguments is another one."""
        return row.answer is self.approved and canonical_json(row.edits) == canonical_json(
            self.edits
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """An approval of every call of ``tool`` in the chat (A8)."""

    tool: str
    approval_id: str
    granted_by: str
    granted_at: float
