"""The notes that a run writes on each of its events, and on the event that a turn ends with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.event_reading import (
    METADATA_KEY,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from sluicegate.core.release.base import ApprovalStyle
    from sluicegate.core.release.policies import ReleasePolicy

ASIDE: Final = "aside"
"""The note on events of a live run that belong to no exchange."""

STOPPED: Final = "stopped"
"""The note on the event that a stopped turn ends with."""

FAILED: Final = "failed"
"""The note on the event that a failed turn ends with."""

ENDED: Final = "ended"
"""The note on the event that a turn ends with if ADK stores no end, as after an empty answer."""


@dataclass(frozen=True, slots=True)
class TurnStamp:
    """The notes on every event of a run, in ``Event.custom_metadata``.

    ``created_at`` is the time of the exchange in seconds since the epoch, ``model`` the name of
    the model that answers unless a response has another (T3).
    ``outputs`` are the shapes of client-side outputs that ADK got in another shape than the browser
    sent, by call id: ``result`` for one that is not an object, ``error`` for a failure, with its
    text where the log does not hold it.
    ``live`` marks an exchange of a live run. ``after`` is the message before it: this exchange is
    hidden until that one is over. ``version`` is that of the `Exchange`; the log itself shows it.
    ``text_from_results``: the messages of results are text of the answer.
    """

    message: str
    turn: str
    user_message: str
    release: ReleasePolicy
    style: ApprovalStyle
    created_at: float
    model: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    live: bool = False
    after: str | None = None
    version: int = 1
    text_from_results: bool = False

    def as_metadata(self) -> dict[str, Any]:
        """The value of ``RunConfig.custom_metadata``."""
        stamp: dict[str, JsonValue] = {
            "message": self.message,
            "turn": self.turn,
            "userMessage": self.user_message,
            "release": self.release,
            "style": self.style,
            "createdAt": self.created_at,
            "model": self.model,
        }
        if self.outputs:
            stamp["outputs"] = dict(self.outputs)
        if self.live:
            stamp["live"] = True
        if self.after is not None:
            stamp["after"] = self.after
        if self.text_from_results:
            stamp["textFromResults"] = True
        return {METADATA_KEY: stamp}
