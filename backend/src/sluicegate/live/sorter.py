"""Sorts the events of a live run: each is marked with its exchange, then told in its turn.

Rule 1: where an event belongs is decided before it is stored, so that the log says it. Rule 2: it
is told after it was stored, in the order in which it was decided. Rule 3: a turn ends with the
event after which there is nothing to tell until somebody answers, or at all.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from google.genai import types

from sluicegate.core.events import CONFIRMATION, CREDENTIAL
from sluicegate.core.exchanges import notes, transcript

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from google.adk.events.event import Event
    from pydantic import JsonValue

    from sluicegate.core.signals import ToolLookup
    from sluicegate.live.exchange import Feed, LiveExchange
    from sluicegate.live.floor import Floor

SILENT = types.FunctionResponseScheduling.SILENT


class Orders(Protocol):
    """Says what a stored event must remember of the order in which it was told."""

    def note(self, event: Event) -> dict[str, JsonValue]:
        """Take the next event of the run."""


class NoOrder:
    """For events whose order says nothing."""

    def note(self, event: Event) -> dict[str, JsonValue]:
        """Nothing is to be remembered."""
        return {}


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event goes.

    ``feed`` is None for what no turn tells; ``ends`` is the feed that ends with it, ``stopped`` if
    it was cut.
    """

    exchange: LiveExchange | None = None
    feed: Feed | None = None
    ends: Feed | None = None
    stopped: bool = False


class Sorter:
    """Follows one run; calls are known by ADK's ids.

    ``absent`` are tools that pages may bring: a live model knows those that it connected with,
    so ADK answers such a call at once and nobody waits for the page.
    """

    def __init__(
        self, floor: Floor, tools: ToolLookup, absent: Collection[str] = frozenset()
    ) -> None:
        self._floor = floor
        self._tools = tools
        self._absent = absent
        self._owners: dict[str, LiveExchange] = {}
        self._order: deque[tuple[str, Place]] = deque()
        self._arrived: dict[str, Event] = {}

    def owner(self, call_id: str) -> LiveExchange | None:
        """The exchange of a call."""
        return self._owners.get(call_id)

    def meet(self, event: Event) -> Orders:
        """Mark an event that is about to be stored; returns who follows the order of its turn."""
        if "message" in notes(event):
            # Ours: whoever made it has marked it, and nobody need be told of it.
            self._order.append((event.id, Place()))
            return NoOrder()
        exchange = self._exchange_of(event)
        if exchange is None:
            self._order.append((event.id, Place()))
            return NoOrder()
        turn = exchange.current
        event.custom_metadata = {**(event.custom_metadata or {}), **turn.stamp.as_metadata()}
        is_told = not exchange.is_done and _is_told(event)
        self._order.append(
            (event.id, self._follow(event, exchange, turn.feed if is_told else None))
        )
        return turn.order if _is_told(event) else NoOrder()

    def arrived(self, event: Event) -> Iterator[tuple[Event, Place]]:
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

    def _follow(self, event: Event, exchange: LiveExchange, feed: Feed | None) -> Place:
        """Note what an event changes, and whether its turn ends with it."""
        if _says(event) and (event.interrupted or event.turn_complete):
            self._ended(event)
        stopped = bool(event.interrupted)
        waits = self._note_calls(event, exchange)
        if exchange.is_done:
            return Place(exchange, feed)
        if (stopped and exchange.is_ending) or self._is_over(exchange):
            exchange.is_done = True
            return Place(exchange, feed, exchange.current.feed, stopped)
        if waits and not exchange.runs_calls:
            return Place(exchange, feed, exchange.pause().feed)
        return Place(exchange, feed)

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
