"""The order in which events were emitted, recorded in the log of parallel agents."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from sluicegate.core.event_reading import attribute, notes_of
from sluicegate.core.tool_facts import UNKNOWN_TOOL, ToolFacts
from sluicegate.core.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.events.event import Event
    from google.genai import types
    from pydantic import JsonValue

    from sluicegate.core.fast_lane_fragments import Fragment


class EmissionOrder:
    """Follows a run and computes the notes that a stored event needs about its order.

    Parallel agents are stored in the order in which they end but emitted in the order in which
    they begin, and the aggregates of some models reorder what was streamed.

    The note must be on the event before ADK stores it, and the turn's own translator may take the
    event only after that. So this is a translator of its own; its signals are dropped.
    """

    def __init__(self) -> None:
        self._translator = Translator(_NoTools(), files_url="")
        self._pending: Event | Fragment | None = None
        """The first of the text fragments that the translator has not read yet."""
        self._texts: list[str] = []

    def note(self, event: Event | Fragment) -> dict[str, JsonValue]:
        """Process the next event of the run, including partial events.

        Returns what belongs under ``Event.custom_metadata["sluicegate"]`` before the event is
        stored, an empty dictionary for almost every event: ``blocks``
        (`ModelCall.emitted_order`) and ``aheadOf``, the id of a stored event before which this one
        was emitted.
        """
        part = _only_text(event) if event.partial else None
        if part is not None:
            if not self._continues(event, part):
                self._flush()
                self._pending = event
            self._texts.append(part.text or "")
            return {}
        self._flush()
        self._translator.feed(event)
        return self._translator.note

    def append_text(self, event_id: str, piece: str, *, thought: bool) -> bool:
        """Append text to the pending fragment; False if the text does not continue it."""
        pending = self._pending
        if pending is None or pending.id != event_id:
            return False
        part = _only_text(pending)
        if part is None or bool(part.thought) is not thought:
            return False
        self._texts.append(piece)
        return True

    def _continues(self, event: Event | Fragment, part: types.Part) -> bool:
        """Whether a fragment only continues the text of the pending one."""
        pending = self._pending
        if pending is None or pending.id != event.id or pending.author != event.author:
            return False
        first = _only_text(pending)
        return (
            first is not None and first.thought == part.thought and pending.branch == event.branch
        )

    def _flush(self) -> None:
        """Translate the pending fragments as one: where text is split changes no order."""
        event, self._pending = self._pending, None
        texts, self._texts = self._texts, []
        if event is None or event.content is None:
            return
        if len(texts) > 1 and event.content.parts:
            # Copies: the event is ADK's.
            part, content, event = copy(event.content.parts[0]), copy(event.content), copy(event)
            part.text = "".join(texts)
            content.parts = [part]
            event.content = content
        self._translator.feed(event)


def _only_text(event: Event | Fragment) -> types.Part | None:
    parts = event.content.parts if event.content is not None else None
    if (
        parts is None
        or len(parts) != 1
        or parts[0].text is None
        or attribute(event, "grounding_metadata")
    ):
        return None
    return parts[0]


def in_emission_order(events: Sequence[Event]) -> list[Event]:
    """Stored events in the order in which they were emitted."""
    ordered: list[Event] = []
    for event in events:
        ahead_of = notes_of(event).get("aheadOf")
        positions = (index for index, other in enumerate(ordered) if other.id == ahead_of)
        index = next(positions, None) if ahead_of is not None else None
        ordered.insert(len(ordered) if index is None else index, event)
    return ordered


class _NoTools:
    def facts(self, author: str, name: str) -> ToolFacts:
        return UNKNOWN_TOOL

    def is_hidden(self, author: str) -> bool:
        return False
