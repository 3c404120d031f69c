"""ADK events in, signals out: what happened, in natural order, the same live and replayed.

Rule 1: one model call is one step; its fragments are told as they come, its aggregate adds what
they lacked. Rule 2: of agents that run at once the first to speak is heard, the others wait (T2).
Rule 3: nothing here depends on the release, on time or on chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sluicegate.core.call_chunks import notice_chunk
from sluicegate.core.event_parts import (
    ABORTED,
    attribute,
    calls_of,
    code_of,
    contents_of,
    notes_of,
    notices_in,
    parts_of,
    text,
)
from sluicegate.core.exchange_events import answers_in, progress_in, requests_in
from sluicegate.core.fragments import Fragment
from sluicegate.core.items import CallMade
from sluicegate.core.lanes import Lane, Lanes, Unit
from sluicegate.core.model_call import ModelCall
from sluicegate.core.node_results import NodeResults
from sluicegate.core.signals import Failed, Neutral, Signal, ToolLookup, TurnFacts
from sluicegate.core.sources import cited_in
from sluicegate.core.telling import Telling
from sluicegate.core.turn_facts import is_failure, note_facts

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What was told of a model call that never ended; the log does not hold it.

    ``calls`` are function calls whose arguments were not complete, by ADK's id and with the
    arguments so far; they were told as calls that did not finish. ``ahead_of`` is the id of the
    event before which all this was told, None if it was told last.
    """

    author: str
    branch: str | None
    parts: list[tuple[Literal["text", "thought"], str]]
    calls: list[CallMade]
    ahead_of: str | None = None


class Translator:
    """Translates the events of one exchange, from its first one on.

    ``files_url`` is the prefix of the URL of produced media, ``/api/chats/{id}/files/``.
    ``facts`` is what ``finish`` reports, up to the event that was fed last. ``note`` is what the
    log must remember of that event so that a replay tells the same: an empty dictionary for
    almost every event; the keys belong under ``Event.custom_metadata["sluicegate"]``.
    """

    def __init__(self, tools: ToolLookup, *, files_url: str) -> None:
        self.facts = TurnFacts()
        self.note: dict[str, JsonValue] = {}
        self._files_url = files_url
        self._telling = Telling(tools)
        self._lanes = Lanes(self._telling)
        self._nodes = NodeResults(files_url)
        self._made: dict[str, str] = {}
        self._cut: list[Unfinished] = []
        self._failures: dict[str, str] = {}

    def feed(self, event: Event | Fragment) -> list[Signal]:
        """Take the next event, live or from the log; return what it says."""
        self.note = {}
        notices = [Neutral(notice_chunk(sentence)) for sentence in notices_in(event)]
        if isinstance(event, Fragment) or event.partial:
            self._fragment(event)
            return [*notices, *self._telling.take()]
        failed = self._whole(event)
        return [*notices, *self._telling.take(), *failed]

    def lengthen(self, lane: Lane, words: str, *, thought: bool) -> list[Signal] | None:
        """Take more text of the model call that speaks on a lane, as a fragment of it would say.

        None where no model call speaks there; then only a fragment tells what it belongs to.
        """
        unit = self._lanes.speaking(lane)
        if unit is None or unit.call is None:
            return None
        self._lanes.tell(unit, (unit.call.lengthen(words, thought=thought),))
        return self._telling.take()

    def end(self) -> list[Signal]:
        """Say that nothing follows for now: what is open ends, what waits is told."""
        for unit in self._lanes.unfinished():
            self._abandon(unit, None)
        self._lanes.pass_on((None, ""), "", self._nodes.end())
        self._telling.give_up_code()
        failures, self._failures = self._failures, {}
        return [*self._telling.take(), *(Failed(code) for code in list(failures.values())[:1])]

    def unfinished(self) -> list[Unfinished]:
        """What was told of model calls that never ended, in the order it was told."""
        under_way = [self._unfinished(unit, None) for unit in self._lanes.unfinished()]
        return [*self._cut, *(piece for piece in under_way if piece is not None)]

    def _fragment(self, event: Event | Fragment) -> None:
        parts = parts_of(event)
        author = text(event, "author")
        if not parts or author == "user":
            return
        lane: Lane = (text(event, "branch") or None, author)
        if lane[0] is not None and "@" in lane[0]:
            progress = progress_in(event, self._made)
            if progress is not None:
                self._lanes.pass_on(lane, text(event, "id"), [progress])
                return
        unit = self._lanes.speaking(lane)
        call = ModelCall(self._files_url) if unit is None or unit.call is None else unit.call
        items = call.stream(parts)
        if items:
            unit = unit or self._lanes.open(lane, text(event, "id"), call)
            self._lanes.tell(unit, items)

    def _whole(self, event: Event) -> list[Signal]:
        lane: Lane = (text(event, "branch") or None, text(event, "author"))
        code, event_id = code_of(event), text(event, "id")
        if lane[1] != "user":
            note_facts(self.facts, event)
            progress = progress_in(event, self._made)
            if progress is not None:
                self._lanes.pass_on(lane, event_id, [progress])
            elif code != ABORTED:
                self._spoken(event, lane)
        results = self._nodes.read(event)
        requests = list(requests_in(event))
        self._nodes.note(requests)
        answers = answers_in(event, self._files_url)
        self._lanes.pass_on(lane, event_id, [*requests, *answers, *results])
        return self._failed(event, lane, code)

    def _spoken(self, event: Event, lane: Lane) -> None:
        """The whole of a model call, or the failure of one."""
        event_id = text(event, "id")
        contents = contents_of(event, self._files_url)
        cited = cited_in(event)
        unit = self._lanes.speaking(lane)
        is_model = bool(contents or cited or calls_of(event))
        if unit is not None and unit.call is not None:
            known = unit.event_id == event_id
            if is_model and (known or unit.call.belongs(contents)):
                self._complete(unit, event, contents, cited)
                return
            if not (is_model or known or is_failure(code_of(event))):
                return
            self._abandon(unit, event_id)
        if is_model:
            unit = self._lanes.open(lane, event_id, ModelCall(self._files_url))
            self._complete(unit, event, contents, cited)

    def _complete(self, unit: Unit, event: Event, contents: list[Any], cited: list[Any]) -> None:
        call = unit.call or ModelCall(self._files_url)
        items = call.complete(contents, cited, notes_of(event).get("blocks"))
        self._made.update({item.id: item.name for item in items if isinstance(item, CallMade)})
        self._lanes.tell(unit, items)
        if call.order is not None:
            self.note["blocks"] = call.order
        ahead_of = self._lanes.overtaken_by(unit)
        if ahead_of is not None:
            self.note["aheadOf"] = ahead_of
        self._lanes.close(unit)

    def _abandon(self, unit: Unit, event_id: str | None) -> None:
        """End a model call whose aggregate does not come."""
        piece = self._unfinished(unit, event_id)
        if piece is not None:
            self._cut.append(piece)
        if unit.call is not None:
            self._lanes.tell(unit, unit.call.cut())
        self._lanes.close(unit)

    def _unfinished(self, unit: Unit, event_id: str | None) -> Unfinished | None:
        call = unit.call
        if call is None or not call.told:
            return None
        ahead_of = self._lanes.overtaken_by(unit) or event_id
        return Unfinished(unit.lane[1], unit.lane[0], call.texts(), call.unmade(), ahead_of)

    def _failed(self, event: Event, lane: Lane, code: str) -> list[Signal]:
        """A model's own error counts at once; that of a node only if the run did not go on.

        ADK: a node that raises leaves an error event before it is tried again, and so does a
        tool whose failure a plugin then answers.
        """
        path = text(attribute(event, "node_info"), "path") or f"{lane[0]}/{lane[1]}"
        if not is_failure(code) or code == ABORTED:
            if lane[1] != "user":
                self._failures = {
                    at: failure
                    for at, failure in self._failures.items()
                    if at != path and not at.startswith(f"{path}/")
                }
            return []
        by_model = ("finish_reason", "model_version", "usage_metadata")
        if any(attribute(event, name) is not None for name in by_model):
            return [Failed(code)]
        self._failures[path] = code
        return []
