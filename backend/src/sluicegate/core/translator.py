"""ADK events to signals, in natural order, the same live and replayed.

`Translator` turns the events of one exchange into signals. Agents that run in parallel are emitted
one after the other (T2): a `Segment` is emitted without interruption, and the first open segment
holds back all that began later. `EmissionOrder` notes on stored events the order in which a run
emitted them, where the log alone does not determine it.

Reading never raises, for any content that a plugin or a custom agent put into an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sluicegate.core.call_chunks import notice_chunk
from sluicegate.core.event_reading import (
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
from sluicegate.core.fast_lane_fragments import Fragment
from sluicegate.core.finish_metadata import TurnFacts, add_facts, is_failure
from sluicegate.core.grounding_sources import sources_in
from sluicegate.core.interleaving import Interleaver, Segment
from sluicegate.core.node_outcomes import NodeOutcomes
from sluicegate.core.request_and_answer_signals import answers_in, progress_in, requests_in
from sluicegate.core.signal_builder import SignalBuilder
from sluicegate.core.signals import Call, Failed, ImmediateSignal, InputAvailable, Signal, Speaker
from sluicegate.core.streamed_model_call import ModelCall

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from pydantic import JsonValue

    from sluicegate.core.signals import Content, Source
    from sluicegate.core.tool_facts import ToolLookup


@dataclass(frozen=True, slots=True)
class UnfinishedModelCall:
    """The emitted content of a model call that never ended, which the log does not hold.

    ``calls`` are function calls whose arguments were not complete, by ADK's id and with the
    arguments so far; they were emitted as calls that did not finish. ``ahead_of`` is the id of the
    event before which all this was emitted, None if it was emitted last.
    """

    author: str
    branch: str | None
    parts: list[tuple[Literal["text", "thought"], str]]
    calls: list[Call]
    ahead_of: str | None = None


class Translator:
    """Translates the events of one exchange, from its first one on.

    ``files_url`` is the prefix of the URL of produced media, ``/api/chats/{id}/files/``.
    ``facts`` is what ``finish`` reports, up to the last event. ``note`` is what the log must hold
    of that event so that a replay emits the same: an empty dictionary for almost every event; its
    keys belong under ``Event.custom_metadata["sluicegate"]``.
    """

    def __init__(self, tools: ToolLookup, *, files_url: str) -> None:
        self.facts = TurnFacts()
        self.note: dict[str, JsonValue] = {}
        self._tools = tools
        self._files_url = files_url
        self._builder = SignalBuilder(tools)
        self._interleaver = Interleaver(self._builder)
        self._nodes = NodeOutcomes(files_url)
        self._call_names: dict[str, str] = {}
        self._unfinished: list[UnfinishedModelCall] = []
        self._failures: dict[str, str] = {}
        """Error codes by the path of the node, or of the agent, that failed."""

    def feed(self, event: Event | Fragment) -> list[Signal]:
        """Process the next event, live or from the log; return its signals."""
        self.note = {}
        notices: list[Signal] = [
            ImmediateSignal(notice_chunk(sentence)) for sentence in notices_in(event)
        ]
        if isinstance(event, Fragment) or event.partial:
            self._feed_partial(event)
            return [*notices, *self._builder.drain()]
        failures = self._feed_complete(event)
        return [*notices, *self._builder.drain(), *failures]

    def append_text(self, speaker: Speaker, piece: str, *, thought: bool) -> list[Signal] | None:
        """Append text to a speaker's current model call, as a partial event would bring it.

        None where the speaker has no model call; then only an event says what the text belongs to.
        """
        segment = self._interleaver.model_call(speaker)
        if segment is None or segment.call is None:
            return None
        self._interleaver.emit(segment, (segment.call.append_text(piece, thought=thought),))
        return self._builder.drain()

    def end(self) -> list[Signal]:
        """End the turn: close what is open, emit what is held; the exchange may continue."""
        for segment in self._interleaver.open_segments():
            self._abandon(segment, None)
        self._interleaver.emit_event(Speaker(None, ""), "", self._nodes.end())
        self._builder.settle_code()
        failures, self._failures = self._failures, {}
        return [*self._builder.drain(), *(Failed(code) for code in list(failures.values())[:1])]

    def unfinished(self) -> list[UnfinishedModelCall]:
        """The model calls that never ended, in the order in which they were emitted."""
        current = (
            self._unfinished_call(segment, None) for segment in self._interleaver.open_segments()
        )
        return [*self._unfinished, *(call for call in current if call is not None)]

    def _feed_partial(self, event: Event | Fragment) -> None:
        parts = parts_of(event)
        author = text(event, "author")
        if not parts or author == "user":
            return
        speaker = Speaker(text(event, "branch") or None, author)
        if speaker.branch is not None and "@" in speaker.branch:
            progress = progress_in(event, self._call_names)
            if progress is not None:
                self._interleaver.emit_event(speaker, text(event, "id"), [progress])
                return
        segment = self._interleaver.model_call(speaker)
        call = segment.call if segment is not None else None
        call = call or ModelCall(self._files_url)
        signals = call.stream(parts)
        if signals:
            segment = segment or self._interleaver.open(speaker, text(event, "id"), call)
            self._interleaver.emit(segment, signals)

    def _feed_complete(self, event: Event) -> list[Signal]:
        speaker = Speaker(text(event, "branch") or None, text(event, "author"))
        code, event_id = code_of(event), text(event, "id")
        if speaker.agent != "user":
            add_facts(self.facts, event)
            progress = progress_in(event, self._call_names)
            if progress is not None:
                self._interleaver.emit_event(speaker, event_id, [progress])
            elif code != ABORTED:
                self._feed_model_response(event, speaker)
        outcomes = self._nodes.read(event)
        requests = list(requests_in(event))
        self._nodes.add_requests(requests)
        answers = answers_in(event, self._files_url)
        self._interleaver.emit_event(speaker, event_id, [*requests, *answers, *outcomes])
        return self._failed(event, speaker, code)

    def _feed_model_response(self, event: Event, speaker: Speaker) -> None:
        """Complete a model call, or abandon one that failed."""
        event_id = text(event, "id")
        contents = contents_of(event, self._files_url)
        sources = sources_in(event)
        segment = self._interleaver.model_call(speaker)
        is_response = bool(contents or sources or calls_of(event))
        if segment is not None and segment.call is not None:
            is_same_event = segment.event_id == event_id
            if is_response and (is_same_event or segment.call.is_aggregated_by(contents)):
                self._complete(segment, segment.call, event, contents, sources)
                return
            if not (is_response or is_same_event or is_failure(code_of(event))):
                return
            self._abandon(segment, event_id)
        if is_response:
            call = ModelCall(self._files_url)
            segment = self._interleaver.open(speaker, event_id, call)
            self._complete(segment, call, event, contents, sources)

    def _complete(
        self,
        segment: Segment,
        call: ModelCall,
        event: Event,
        contents: list[Content],
        sources: list[Source],
    ) -> None:
        signals = call.complete(contents, sources, notes_of(event).get("blocks"))
        self._call_names.update(
            {
                signal.call.id: signal.call.name
                for signal in signals
                if isinstance(signal, InputAvailable)
            }
        )
        self._interleaver.emit(segment, signals)
        if call.emitted_order is not None:
            self.note["blocks"] = call.emitted_order
        ahead_of = self._interleaver.overtaken_by(segment)
        if ahead_of is not None:
            self.note["aheadOf"] = ahead_of
        self._interleaver.close(segment)

    def _abandon(self, segment: Segment, event_id: str | None) -> None:
        """End a model call whose aggregate does not come."""
        unfinished = self._unfinished_call(segment, event_id)
        if unfinished is not None:
            self._unfinished.append(unfinished)
        if segment.call is not None:
            self._interleaver.emit(segment, segment.call.abort_calls())
        self._interleaver.close(segment)

    def _unfinished_call(
        self, segment: Segment, event_id: str | None
    ) -> UnfinishedModelCall | None:
        call = segment.call
        if call is None or not call.blocks:
            return None
        return UnfinishedModelCall(
            segment.speaker.agent,
            segment.speaker.branch,
            call.texts(),
            call.incomplete_calls(),
            self._interleaver.overtaken_by(segment) or event_id,
        )

    def _failed(self, event: Event, speaker: Speaker, code: str) -> list[Signal]:
        """A model's own error counts at once; that of a node only if the run did not continue.

        ADK: a node that raises leaves an error event before it is retried, and so does a tool
        whose failure a plugin then answers.
        """
        if self._tools.is_hidden(speaker.agent):
            return []
        path = text(attribute(event, "node_info"), "path") or f"{speaker.branch}/{speaker.agent}"
        if not is_failure(code) or code == ABORTED:
            if speaker.agent != "user":
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
