"""Chunks that show approvals that ended without a person's decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.closed_approval_outcomes import (
    closing_sentence,
    shown_decision,
)
from sluicegate.wire.chunks import BaseChunk, DataChunk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.approvals import ApprovalRow


def closed_cards(rows: Sequence[ApprovalRow], message_id: str) -> list[BaseChunk]:
    """A transient ``data-approval`` per approval that can no longer be given."""
    return [
        DataChunk(
            type="data-approval",
            data={
                "approvalId": row.approval_id,
                "messageId": message_id,
                "state": row.state,
                "reason": _shown_end(row),
                "tool": row.tool,
                "agent": row.agent or "",
            },
            transient=True,
        )
        for row in rows
        if row.state in ("superseded", "expired") and not row.is_automatic
    ]


def _shown_end(row: ApprovalRow) -> str:
    """The text of the stored message: the error of an approval without effect, else the reason."""
    approved, sentence = closing_sentence(row)
    if approved:
        return sentence
    return shown_decision(row)[1] or sentence
