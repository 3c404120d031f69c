"""Partial events that bypass ADK: the further pieces of a model response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluicegate.core.event_reading import attribute

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.genai import types


@dataclass(slots=True)
class FragmentContent:
    """The parts of a fragment."""

    parts: list[types.Part]


@dataclass(slots=True)
class Fragment:
    """The attributes of a partial event that are read.

    It continues the model response that began with an event of the same id.
    """

    id: str
    author: str
    branch: str | None
    content: FragmentContent
    node_info: Any
    isolation_scope: Any
    partial: bool = True


def continued(first: Event, part: types.Part) -> Fragment:
    """The next piece of the model response whose first piece was the partial event ``first``."""
    return Fragment(
        first.id,
        first.author,
        first.branch,
        FragmentContent([part]),
        attribute(first, "node_info"),
        attribute(first, "isolation_scope"),
    )
