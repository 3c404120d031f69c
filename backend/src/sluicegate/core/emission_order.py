"""The order in which a log was told, where the log alone does not say it."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from sluicegate.core.events import attribute, notes_of
from sluicegate.core.signals import ToolFacts
from sluicegate.core.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.events.event import Event
    from google.genai import types
    from pydantic import JsonValue

    from sluicegate.core.events import Fragment


class EmissionOrder:
    """Follows a run and says what each event must remember.

    Agents that run at once are stored in the order in which they end but told in the order in
    which they begin, and some models' aggregates reorder what was streamed.
    """

    def __init__(self) -> None:
        self._translator = Translator(_NoTools(), files_url="")
        self._pending: Event | Fragment | None = None
        self._texts: list[str] = []

    def note(self, event: Event | Fragment) -> dict[str, JsonValue]:
        """Take the next event of the run, fragments too.

        Returns what belongs under ``Event.custom_metadata["sluicegate"]`` before the event is
        stored, an empty dictionary for almost every event: ``blocks`` (`ModelCall.order`) and
        ``aheadOf``, the id of a stored event before which this one was told.
        """
        said = _only_text(event) if event.partial else None
        if said is not None:
            if not self._goes_on(event, said):
                self._tell_pending()
                self._pending = event
            self._texts.append(said.text or "")
            return {}
        self._tell_pending()
        self._translator.feed(event)
        return self._translator.note

    def lengthen(self, event_id: str, words: str, *, thought: bool) -> bool:
        """Take more text that only lengthens the fragment before; False if it does not."""
        before = self._pending
        if before is None or before.id != event_id:
            return False
        part = _only_text(before)
        if part is None or bool(part.thought) is not thought:
            return False
        self._texts.append(words)
        return True

    def _goes_on(self, event: Event | Fragment, said: types.Part) -> bool:
        """Whether a fragment only lengthens the text of the one before."""
        before = self._pending
        if before is None or before.id != event.id or before.author != event.author:
            return False
        part = _only_text(before)
        return part is not None and part.thought == said.thought and before.branch == event.branch

    def _tell_pending(self) -> None:
        """Tell fragments that follow each other as one: where text is cut changes no order."""
        event, self._pending = self._pending, None
        texts, self._texts = self._texts, []
        if event is None or event.content is None:
            return
        if len(texts) > 1 and event.content.parts:
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
