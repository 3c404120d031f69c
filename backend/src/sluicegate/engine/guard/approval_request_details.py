"""What the ledger records of an approval request beside its call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import JsonValue

    from sluicegate.core.approvals import AtExpiry, NewApproval
    from sluicegate.core.approvers import ApproverRule
    from sluicegate.core.tool_definition_changes import ToolDefinition


@dataclass(frozen=True, slots=True)
class ApprovalRequestDetails:
    """What a request says of its tool.

    ``changed`` is what differs from the definition of an earlier grant. ``approvers`` is the rule
    if other people decide; they are reminded after ``remind_after`` seconds. ``preview`` is what
    the call would do.
    """

    definition: ToolDefinition | None
    changed: JsonValue = None
    approvers: ApproverRule | None = None
    remind_after: float | None = None
    at_expiry: AtExpiry | None = None
    preview: dict[str, Any] | None = None

    def added_to(self, approval: NewApproval) -> NewApproval:
        """The request as the ledger records it."""
        return replace(
            approval,
            definition=self.definition,
            changed=self.changed,
            approvers=self.approvers,
            remind_after=self.remind_after,
            at_expiry=self.at_expiry,
            preview=self.preview,
        )
