"""What becomes of the gated tool nodes of a Workflow.

ADK: a node's result is no function response but an event of its own, with the node's path and the
result as ``Event.output``. A tool that returned None leaves an event without one; that it is over
stands in the Workflow's next checkpoint. A node that raised leaves an error event, and may be
tried again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from sluicegate.core.calls import notice_chunk
from sluicegate.core.event_signals import answers_in, cited_in, noted, progress_in, requests_in
from sluicegate.core.events import (
    ABORTED,
    NODE_CONFIRMATION,
    Fragment,
    attribute,
    calls_of,
    code_of,
    contents_of,
    media_in_output,
    notes_of,
    notices_in,
    parts_of,
    text,
)
from sluicegate.core.finish_metadata import is_failure, note_facts
from sluicegate.core.interleaving import Interleaver, Lane, Segment
from sluicegate.core.json_values import json_safe
from sluicegate.core.model_call import ModelCall
from sluicegate.core.release.base import NOT_FINISHED
from sluicegate.core.signal_builder import SignalBuilder
from sluicegate.core.signals import (
    CallCompleted,
    ConfirmationRequest,
    Failed,
    NodeEnded,
    Outcome,
    Signal,
    ToolLookup,
    TurnFacts,
    UnheldChunk,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.adk.events.event import Event
    from pydantic import JsonValue

    from sluicegate.core.events import Media
    from sluicegate.core.signals import Item

_COMPLETED: Final = 3
"""ADK's ``NodeStatus.COMPLETED``, as checkpoints store it."""


class NodeResults:
    """The tool nodes that were asked about, by their path."""

    def __init__(self, files_url: str = "") -> None:
        self._files_url = files_url
        self._asked: set[str] = set()
        self._failed: set[str] = set()
        self._silent: set[str] = set()

    def note(self, items: Iterable[Item]) -> None:
        """Take what an event asks."""
        for item in items:
            if isinstance(item, ConfirmationRequest) and item.id.startswith(NODE_CONFIRMATION):
                self._asked.add(item.id.removeprefix(NODE_CONFIRMATION))

    def read(self, event: object) -> list[NodeEnded]:
        """Whatever this event says of a node that was asked about."""
        path = text(attribute(event, "node_info"), "path")
        if path not in self._asked:
            return self._completed(event)
        outcomes = attribute(notes_of(event), "outcomes")
        interrupt = NODE_CONFIRMATION + path
        wire_id = f"{text(event, 'invocation_id')}:{interrupt}"
        outcome = noted(outcomes, interrupt, wire_id)
        output = attribute(event, "output")
        if outcome is None and output is not None:
            rest, files = media_in_output(json_safe(output), self._files_url)
            return [self._end(path, Outcome("output", rest), files)]
        if outcome is not None:
            return [self._end(path, outcome)]
        if code_of(event):
            self._failed.add(path)
        elif attribute(event, "node_info", "message_as_output"):
            said = "".join(text(part, "text") for part in parts_of(event))
            return [self._end(path, Outcome("output", said))]
        elif not parts_of(event):
            self._silent.add(path)
        return []

    def end(self) -> list[NodeEnded]:
        """Nothing follows: what failed was not tried again."""
        return [self._end(path, NOT_FINISHED) for path in sorted(self._failed)]

    def _completed(self, event: object) -> list[NodeEnded]:
        if not self._silent:
            return []
        nodes = attribute(event, "actions", "agent_state", "nodes")
        over = [
            path for path in self._silent if attribute(nodes, _node(path), "status") == _COMPLETED
        ]
        return [self._end(path, Outcome("output", None)) for path in sorted(over)]

    def _end(self, path: str, outcome: Outcome, files: Sequence[Media] = ()) -> NodeEnded:
        self._asked.discard(path)
        self._failed.discard(path)
        self._silent.discard(path)
        return NodeEnded(NODE_CONFIRMATION + path, outcome, tuple(files))


def _node(path: str) -> str:
    return path.rpartition("/")[2].partition("@")[0]


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
    calls: list[CallCompleted]
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
        self._telling = SignalBuilder(tools)
        self._lanes = Interleaver(self._telling)
        self._nodes = NodeResults(files_url)
        self._made: dict[str, str] = {}
        self._cut: list[Unfinished] = []
        self._failures: dict[str, str] = {}

    def feed(self, event: Event | Fragment) -> list[Signal]:
        """Take the next event, live or from the log; return what it says."""
        self.note = {}
        notices = [UnheldChunk(notice_chunk(sentence)) for sentence in notices_in(event)]
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

    def _complete(self, unit: Segment, event: Event, contents: list[Any], cited: list[Any]) -> None:
        call = unit.call or ModelCall(self._files_url)
        items = call.complete(contents, cited, notes_of(event).get("blocks"))
        self._made.update({item.id: item.name for item in items if isinstance(item, CallCompleted)})
        self._lanes.tell(unit, items)
        if call.order is not None:
            self.note["blocks"] = call.order
        ahead_of = self._lanes.overtaken_by(unit)
        if ahead_of is not None:
            self.note["aheadOf"] = ahead_of
        self._lanes.close(unit)

    def _abandon(self, unit: Segment, event_id: str | None) -> None:
        """End a model call whose aggregate does not come."""
        piece = self._unfinished(unit, event_id)
        if piece is not None:
            self._cut.append(piece)
        if unit.call is not None:
            self._lanes.tell(unit, unit.call.cut())
        self._lanes.close(unit)

    def _unfinished(self, unit: Segment, event_id: str | None) -> Unfinished | None:
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
