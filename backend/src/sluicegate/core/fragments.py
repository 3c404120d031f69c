"""A piece of a model's answer that did not come as an event of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluicegate.core.event_parts import attribute

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types


@dataclass(slots=True)
class Parts:
    """The parts of a fragment."""

    parts: list[types.Part]


@dataclass(slots=True)
class Fragment:
    """All that is read of a partial event; it goes on where an event of the same id began."""

    id: str
    author: str
    branch: str | None
    content: Parts
    node_info: Any
    isolation_scope: Any
    partial: bool = True


def continued(first: Event, part: types.Part) -> Fragment:
    """The next piece of the model call whose first piece came as a partial event."""
    return Fragment(
        first.id,
        first.author,
        first.branch,
        Parts([part]),
        attribute(first, "node_info"),
        attribute(first, "isolation_scope"),
    )
