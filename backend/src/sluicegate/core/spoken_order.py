"""The order in which a log was told, where the log alone does not say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.event_parts import notes_of
from sluicegate.core.signals import ToolFacts
from sluicegate.core.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.events.event import Event
    from pydantic import JsonValue


class SpokenOrder:
    """Follows a run and says what each event must remember.

    Agents that run at once are stored in the order in which they end but told in the order in
    which they begin, and some models' aggregates reorder what was streamed.
    """

    def __init__(self) -> None:
        self._translator = Translator(_NoTools(), files_url="")

    def note(self, event: Event) -> dict[str, JsonValue]:
        """Take the next event of the run, fragments too.

        Returns what belongs under ``Event.custom_metadata["sluicegate"]`` before the event is
        stored, an empty dictionary for almost every event: ``blocks`` (`ModelCall.order`) and
        ``aheadOf``, the id of a stored event before which this one was told.
        """
        self._translator.feed(event)
        return self._translator.note


def in_spoken_order(events: Sequence[Event]) -> list[Event]:
    """Stored events in the order in which they are to be told again."""
    ordered: list[Event] = []
    for event in events:
        ahead_of = notes_of(event).get("aheadOf")
        places = (at for at, other in enumerate(ordered) if other.id == ahead_of)
        at = next(places, None) if ahead_of is not None else None
        ordered.insert(len(ordered) if at is None else at, event)
    return ordered


class _NoTools:
    def facts(self, author: str, name: str) -> ToolFacts:
        return ToolFacts()
