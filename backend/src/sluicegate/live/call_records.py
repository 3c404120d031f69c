"""What is known of the calls of a live run, by ADK's id."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sluicegate.engine.guard.call_responses import Outcomes

if TYPE_CHECKING:
    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.engine.guard.approval_request_details import ApprovalRequestDetails
    from sluicegate.engine.guard.running_claims import RunningClaims


@dataclass(slots=True)
class CallRecords:
    """The state of a run's calls, which the approval guard and the turns share."""

    claims: RunningClaims
    outcomes: Outcomes = field(default_factory=Outcomes)
    granted: dict[str, ApprovalRow] = field(default_factory=dict)
    """Calls that a grant has approved, by ADK's id (A8)."""
    requested: dict[str, ApprovalRequestDetails] = field(default_factory=dict)
    """Calls that request an approval, by ADK's id."""
    client_outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Results of gated client-side calls, by ADK's id."""
