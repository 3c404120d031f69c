"""One call of an exchange: what it is, who was asked, how it ended, what of it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluicegate.core.signals import Answered, Ask, Call, Outcome


@dataclass(slots=True)
class CallState:
    """All that is known of one call of the exchange.

    ``announced``: its tool part is complete in the message. ``shown``: its outcome was written.
    ``closed``: style ``confirmation``, the part that carries the approval has ended.
    """

    call: Call
    ask: Ask | None = None
    answer: Answered | None = None
    outcome: Outcome | None = None
    announced: bool = False
    shown: bool = False
    closed: bool = False

    @property
    def is_client_side(self) -> bool:
        """Whether the browser runs it."""
        return self.call.facts.kind in ("client", "gated-client")

    @property
    def waits(self) -> bool:
        """Whether a person or a browser still has to act on it."""
        if self.outcome is not None:
            return False
        if self.ask is not None:
            undecided = self.answer is None
            return undecided or (self.is_client_side and self.is_approved)
        return self.is_client_side

    @property
    def was_asked(self) -> bool:
        """Whether ADK waits, or has waited, for a person's answer; not if one was remembered."""
        return self.ask is not None and not self.ask.automatic

    @property
    def is_approved(self) -> bool:
        """Whether a person said yes."""
        return self.answer is not None and self.answer.approved

    @property
    def runs_unasked(self) -> bool:
        """Whether it carries ``providerExecuted: true`` once it has settled (T7)."""
        if self.is_client_side:
            return self.ask is None and not self.is_for_browser
        return self.call.facts.kind in ("free", "conditional") and self.ask is None

    @property
    def is_for_browser(self) -> bool:
        """Whether a browser runs it; not if the server refused it, or if it was cut short."""
        ended_here = self.ask is None and self.answer is None and self.outcome is not None
        return self.is_client_side and not ended_here
