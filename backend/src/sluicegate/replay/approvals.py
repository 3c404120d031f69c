"""Rows of the ledger as decisions of a recording, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.keys import CallKey, ChatKey
from sluicegate.core.ledger import ApprovalRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluicegate.core.ledger import ApprovalState
    from sluicegate.replay.recording import Direction

_CLIENT: Final[frozenset[ApprovalState]] = frozenset({"approved", "denied"})
_TOOL: Final[frozenset[ApprovalState]] = frozenset({"executing", "executed", "failed", "unknown"})

_TOLD: Final = {
    "approvalId": "approval_id",
    "tool": "tool",
    "requestedAt": "requested_at",
    "deadline": "deadline",
    "state": "state",
    "answer": "answer",
    "reason": "reason",
    "edits": "edits",
    "grantId": "grant_id",
    "decidedAt": "decided_at",
    "claimedAt": "claimed_at",
    "outcome": "outcome",
    "finishedAt": "finished_at",
}
"""Not who decided and who claimed; nor the hash, which would tell of redacted arguments."""


def direction_of(row: ApprovalRow) -> Direction:
    """From whom the state of a row comes."""
    return "client" if row.state in _CLIENT else "tool" if row.state in _TOOL else "server"


def body_of(row: ApprovalRow) -> dict[str, Any]:
    """A row without who decided and who claimed; what is not known is left out."""
    told = {key: getattr(row, name) for key, name in _TOLD.items()}
    known = {key: value for key, value in told.items() if value is not None}
    return {"invocation": row.key.invocation, "call": row.key.call, **known}


def row_of(body: Mapping[str, Any], chat: ChatKey) -> ApprovalRow:
    """The row that a decision tells of."""
    key = CallKey(*chat, str(body["invocation"]), str(body["call"]))
    known = {name: body[key] for key, name in _TOLD.items() if key in body}
    return ApprovalRow(key=key, args_hash="", **known)
