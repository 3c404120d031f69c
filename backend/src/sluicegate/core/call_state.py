"""The state of a call in its exchange: its approval request, its answer and its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluicegate.core.signals import Answered, ApprovalRequest, Call, Outcome


@dataclass(slots=True)
class CallState:
    """A call of the exchange with its approval request, its answer and its outcome.

    ``request`` is the last one; ``earlier`` are those before it, all of them approved: the tool has
    asked again after each.
    ``announced``: its tool part is complete in the message. ``shown``: its outcome is in the
    message. ``closed``: style ``confirmation``, the part that carries the approval has ended.
    ``described``: the message of its result is text of the answer, if it has one.
    """

    call: Call
    request: ApprovalRequest | None = None
    answer: Answered | None = None
    outcome: Outcome | None = None
    announced: bool = False
    shown: bool = False
    closed: bool = False
    described: bool = False
    earlier: list[ApprovalRequest] = field(default_factory=list)

    @property
    def requests(self) -> list[ApprovalRequest]:
        """All approval requests of the call, the first one first."""
        return [*self.earlier, *([] if self.request is None else [self.request])]

    @property
    def is_client_side(self) -> bool:
        """Whether the browser runs it."""
        return self.call.facts.kind in ("client", "gated-client")

    @property
    def is_waiting(self) -> bool:
        """Whether a person or a browser still has to act on it."""
        if self.outcome is not None:
            return False
        if self.request is not None:
            return self.answer is None or (self.is_client_side and self.is_approved)
        # Beside a call in which something waits, ADK requests the approval later.
        return self.call.facts.kind == "client"

    @property
    def was_requested(self) -> bool:
        """Whether ADK waits, or waited, for a decision; not if a grant approved the call."""
        return self.request is not None and not self.request.automatic

    @property
    def belongs_last(self) -> bool:
        """Whether its part belongs in the last step of the turn that requests its approval.

        A call of the browser is announced again once it is approved, and a client looks for its
        part in the last step alone: any other would be doubled.
        """
        is_open = self.answer is None and self.outcome is None
        return self.call.facts.kind == "gated-client" and self.was_requested and is_open

    @property
    def is_approved(self) -> bool:
        """Whether a person or a grant approved its last request."""
        return self.answer is not None and self.answer.approved

    @property
    def is_provider_executed(self) -> bool:
        """Whether its part carries ``providerExecuted: true`` once it has settled (T7)."""
        if self.is_client_side:
            return self.request is None and not self.is_for_browser
        return self.call.facts.kind in ("free", "conditional") and self.request is None

    @property
    def is_for_browser(self) -> bool:
        """Whether a browser runs it; not if the server refused it, or if it was aborted."""
        ended_here = self.request is None and self.answer is None and self.outcome is not None
        return self.is_client_side and not ended_here
