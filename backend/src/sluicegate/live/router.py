"""Sorts the events of a live run: each is marked with its exchange, then told in its turn.

Rule 1: where an event belongs is decided before it is stored, so that the log says it. Rule 2: it
is told after it was stored, in the order in which it was decided. Rule 3: a turn ends with the
event after which there is nothing to tell until somebody answers, or at all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.genai import types

from sluicegate.core.events import CONFIRMATION, CREDENTIAL
from sluicegate.core.exchanges import notes, transcript
from sluicegate.engine.start_turn import title_of
from sluicegate.wire.live_frames import InterruptedFrame, TranscriptFrame, TurnCompleteFrame

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Literal

    from google.adk.events.event import Event
    from pydantic import JsonValue

    from sluicegate.core.signals import ToolLookup
    from sluicegate.live.context import LiveContext
    from sluicegate.live.exchange import Feed, LiveExchange
    from sluicegate.live.exchange_queue import ExchangeQueue
    from sluicegate.live.turn_taking import TurnTaking

SILENT = types.FunctionResponseScheduling.SILENT


class EmissionNotes(Protocol):
    """Says what a stored event must remember of the order in which it was told."""

    def note(self, event: Event) -> dict[str, JsonValue]:
        """Take the next event of the run."""


class NoEmissionNotes:
    """For events whose order says nothing."""

    def note(self, event: Event) -> dict[str, JsonValue]:
        """Nothing is to be remembered."""
        return {}


@dataclass(frozen=True, slots=True)
class RoutedEvent:
    """Where an event goes.

    ``feed`` is None for what no turn tells; ``ends`` is the feed that ends with it, ``stopped`` if
    it was cut.
    """

    exchange: LiveExchange | None = None
    feed: Feed | None = None
    ends: Feed | None = None
    stopped: bool = False


class EventRouter:
    """Follows one run; calls are known by ADK's ids.

    ``absent`` are tools that pages may bring: a live model knows those that it connected with,
    so ADK answers such a call at once and nobody waits for the page.
    """

    def __init__(
        self, floor: TurnTaking, tools: ToolLookup, absent: Collection[str] = frozenset()
    ) -> None:
        self._floor = floor
        self._tools = tools
        self._absent = absent
        self._owners: dict[str, LiveExchange] = {}
        self._order: deque[tuple[str, RoutedEvent]] = deque()
        self._arrived: dict[str, Event] = {}

    def owner(self, call_id: str) -> LiveExchange | None:
        """The exchange of a call."""
        return self._owners.get(call_id)

    def meet(self, event: Event) -> EmissionNotes:
        """Mark an event that is about to be stored; returns who follows the order of its turn."""
        if "message" in notes(event):
            # Ours: whoever made it has marked it, and nobody need be told of it.
            self._order.append((event.id, RoutedEvent()))
            return NoEmissionNotes()
        exchange = self._exchange_of(event)
        if exchange is None:
            self._order.append((event.id, RoutedEvent()))
            return NoEmissionNotes()
        turn = exchange.current
        event.custom_metadata = {**(event.custom_metadata or {}), **turn.stamp.as_metadata()}
        is_told = not exchange.is_done and _is_told(event)
        self._order.append(
            (event.id, self._follow(event, exchange, turn.feed if is_told else None))
        )
        return turn.order if _is_told(event) else NoEmissionNotes()

    def arrived(self, event: Event) -> Iterator[tuple[Event, RoutedEvent]]:
        """An event has been stored; returns all whose turn has come, in order."""
        self._arrived[event.id] = event
        while self._order and self._order[0][0] in self._arrived:
            event_id, place = self._order.popleft()
            yield self._arrived.pop(event_id), place

    def _exchange_of(self, event: Event) -> LiveExchange | None:
        spoken = event.input_transcription
        if spoken is not None:
            return self._floor.heard(final=bool(transcript(spoken))) if spoken.text else None
        for name in _named_calls(event):
            return self._owners.get(name)
        if event.author != "user" and _says(event):
            return self._floor.output()
        if event.interrupted or event.turn_complete:
            return self._ended(event)
        return self._floor.speaking or self._floor.latest if event.usage_metadata else None

    def _ended(self, event: Event) -> LiveExchange | None:
        """The exchange whose answer an event ends that says nothing else."""
        if event.interrupted:
            trails = not event.turn_complete
            return self._floor.interrupted(trails=trails)
        return self._floor.completed()

    def _follow(self, event: Event, exchange: LiveExchange, feed: Feed | None) -> RoutedEvent:
        """Note what an event changes, and whether its turn ends with it."""
        if _says(event) and (event.interrupted or event.turn_complete):
            self._ended(event)
        stopped = bool(event.interrupted)
        waits = self._note_calls(event, exchange)
        if exchange.is_done:
            return RoutedEvent(exchange, feed)
        if (stopped and exchange.is_ending) or self._is_over(exchange):
            exchange.is_done = True
            return RoutedEvent(exchange, feed, exchange.current.feed, stopped)
        if waits and not exchange.runs_calls:
            return RoutedEvent(exchange, feed, exchange.pause().feed)
        return RoutedEvent(exchange, feed)

    def _is_over(self, exchange: LiveExchange) -> bool:
        """Whether the model has answered, and nothing it wanted is open."""
        floor = self._floor
        return not (exchange.calls or floor.owes(exchange) or floor.speaking is exchange)

    def _note_calls(self, event: Event, exchange: LiveExchange) -> bool:
        """Note calls and results; whether the exchange may have come to wait for somebody."""
        changed = False
        for call in event.get_function_calls():
            call_id, name = call.id or "", call.name or ""
            if name in (CONFIRMATION, CREDENTIAL) or event.partial:
                continue
            self._owners[call_id] = exchange
            kind = "free" if name in self._absent else self._tools.facts(event.author, name).kind
            is_client = kind == "client"
            if kind in ("client", "gated-client"):
                exchange.in_browser.add(call_id)
            if is_client or kind == "gated-client" or call_id not in _long(event):
                exchange.calls[call_id] = "waits" if is_client else "runs"
                changed = True
        waiting = event.actions.requested_tool_confirmations or {}
        for response in event.get_function_responses():
            call_id = response.id or ""
            if call_id in waiting:
                exchange.calls[call_id] = "waits"
                exchange.gated.add(call_id)
            else:
                self.settled(exchange, call_id, answered=response.scheduling is not SILENT)
            changed = True
        return changed and bool(exchange.calls) and (bool(waiting) or not exchange.is_paused)

    def settled(self, exchange: LiveExchange, call_id: str, *, answered: bool = True) -> None:
        """A call has its result; the model answers the last one, unless it was told not to."""
        known = exchange.calls.pop(call_id, None)
        if known is not None and not exchange.calls and answered and not exchange.is_done:
            self._floor.asked(exchange)


def _named_calls(event: Event) -> list[str]:
    """The calls that an event answers or asks about."""
    asked: list[Any] = [
        (call.args or {}).get("originalFunctionCall")
        for call in event.get_function_calls()
        if call.name == CONFIRMATION
    ]
    answered = [response.id or "" for response in event.get_function_responses()]
    return [*answered, *(str(call.get("id")) for call in asked if isinstance(call, dict))]


def _long(event: Event) -> set[str]:
    """Calls that ADK does not wait for: nobody knows when they have a result."""
    return event.long_running_tool_ids or set()


def _says(event: Event) -> bool:
    """Whether the model says or does something in an event."""
    parts = event.content.parts if event.content is not None else None
    return bool(parts or event.output_transcription or event.error_code)


def has_media(event: Event) -> bool:
    """Whether an event carries audio or pictures, which are played and not stored."""
    parts = event.content.parts if event.content is not None else None
    return any(part.inline_data is not None for part in parts or ())


def _is_told(event: Event) -> bool:
    """Whether a turn tells an event; transcripts are told when they are whole.

    The whole of a transcript may come after a call that was made in the middle of it.
    """
    if has_media(event):
        return False
    spoken = event.output_transcription
    return not (event.input_transcription or (spoken and not transcript(spoken)))


DOUBT: Final = 5.0
"""Seconds after which a model that may have answered by its silence is taken to have done so."""


class EventPublisher:
    """Takes the events of a run in the order in which they are stored."""

    def __init__(
        self, hold: LiveContext, sorter: EventRouter, floor: TurnTaking, line: ExchangeQueue
    ) -> None:
        self._hold = hold
        self._sorter = sorter
        self._floor = floor
        self._line = line
        self._out = hold.out
        self._doubt: asyncio.TimerHandle | None = None

    def take(self, event: Event) -> None:
        """Tell an event, and those that waited for it."""
        for stored, place in self._sorter.arrived(event):
            self._tell(stored, place)

    def _tell(self, event: Event, place: RoutedEvent) -> None:
        if has_media(event):
            self._play(event)
        exchange = place.exchange
        if exchange is not None:
            self._transcribe(exchange, "user", event.input_transcription)
            self._transcribe(exchange, "assistant", event.output_transcription)
        if place.feed is not None:
            place.feed.put(event)
        if event.interrupted:
            self._out.cut()
            self._out.frame(InterruptedFrame())
        if event.turn_complete:
            self._out.frame(TurnCompleteFrame())
        if place.ends is not None:
            place.ends.end(stopped=place.stopped)
        if exchange is not None:
            self._line.announce(exchange)
        self._wonder()

    def flush(self, exchange: LiveExchange) -> None:
        """Send what may be told by now."""
        kept: list[TranscriptFrame] = []
        for frame in exchange.frames:
            if self._may_tell(exchange, frame.role):
                self._out.frame(frame)
            else:
                kept.append(frame)
        exchange.frames = kept

    def close(self) -> None:
        """Nothing follows."""
        if self._doubt is not None:
            self._doubt.cancel()

    def _play(self, event: Event) -> None:
        for part in (event.content and event.content.parts) or ():
            blob = part.inline_data
            if blob is not None and blob.data and (blob.mime_type or "").startswith("audio/"):
                self._out.audio(blob.data)

    def _transcribe(
        self,
        exchange: LiveExchange,
        role: Literal["user", "assistant"],
        said: types.Transcription | None,
    ) -> None:
        if said is None or not said.text:
            return
        pieces = exchange.said.setdefault(role, [""])
        if said.finished:
            pieces[-1:] = [said.text, ""]
        else:
            pieces[-1] += said.text
        whole = "\n".join(piece for piece in pieces if piece)
        stamp = exchange.current.stamp
        name = stamp.user_message if role == "user" else stamp.message
        frame = TranscriptFrame(name, role, whole, bool(said.finished))
        exchange.frames = [each for each in exchange.frames if each.role != role or each.final]
        exchange.frames.append(frame)
        if frame.final and role == "user":
            exchange.is_heard = True
            title = title_of(types.Content(parts=[types.Part(text=whole)]))
            self._hold.soon(self._hold.parts.chats.touch(self._hold.chat, title=title))
        self.flush(exchange)

    def _may_tell(self, exchange: LiveExchange, role: str) -> bool:
        """Whether what was said in an exchange may be known: the model's words are text (D1)."""
        if exchange.phase == "over":
            return True
        if self._line.head is not exchange:
            return False
        if role == "user":
            return True
        return exchange.current.stamp.release == "progressive" and not exchange.is_paused

    def _wonder(self) -> None:
        """Some models say nothing to a result, and not even that they say nothing."""
        if self._doubt is not None:
            self._doubt.cancel()
            self._doubt = None
        if self._floor.is_doubtful:
            loop = asyncio.get_running_loop()
            self._doubt = loop.call_later(DOUBT, self._give_up)

    def _give_up(self) -> None:
        exchange = self._floor.give_up()
        if exchange is not None and not exchange.calls and not exchange.is_done:
            exchange.is_done = True
            exchange.current.feed.end()
