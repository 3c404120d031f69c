"""Routes the events of a live run to the turns of their exchanges.

Rule 1: the exchange of an event is chosen before the event is stored, so that its metadata name the
exchange. Rule 2: an event is published after it was stored, in the order in which events were
routed. Rule 3: a turn ends with the event after which its exchange waits or is done.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from google.genai import types

from sluicegate.core.event_reading import CONFIRMATION, CREDENTIAL, callers_of, notes_of, transcript
from sluicegate.core.stored_emission_order import EmissionOrder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from google.adk.events.event import Event
    from pydantic import JsonValue

    from sluicegate.core.fast_lane_fragments import Fragment
    from sluicegate.core.tool_facts import ToolLookup
    from sluicegate.live.assign_speech_to_exchanges import TurnTaking
    from sluicegate.live.exchange import EventFeed, LiveExchange

SILENT: Final = types.FunctionResponseScheduling.SILENT

_ENDED_CALLS: Final = 8
"""Calls of ended exchanges that are remembered: a result may be late."""


class _NoOrder(EmissionOrder):
    """The order of events that no turn publishes."""

    def note(self, event: Event | Fragment) -> dict[str, JsonValue]:
        return {}


_NO_ORDER: Final = _NoOrder()


@dataclass(frozen=True, slots=True)
class Route:
    """The destination of an event.

    ``feed`` is None for an event that no turn publishes. ``ends`` is the feed that ends with it,
    ``stopped`` if the exchange was stopped.
    """

    exchange: LiveExchange | None = None
    feed: EventFeed | None = None
    ends: EventFeed | None = None
    stopped: bool = False


class EventRouter:
    """The routes of one run; calls are named by ADK's ids.

    ``page_tools`` are names of tools that a page may bring along. A live model knows only the tools
    that it was connected with, so ADK answers such a call at once and no call of the page waits.
    """

    def __init__(
        self,
        utterances: TurnTaking,
        tools: ToolLookup,
        page_tools: Collection[str] = frozenset(),
    ) -> None:
        self._utterances = utterances
        self._tools = tools
        self._page_tools = page_tools
        self._exchanges: dict[str, LiveExchange] = {}
        self._routes: deque[tuple[str, Route]] = deque()
        self._stored: dict[str, Event] = {}

    def exchange_of(self, call_id: str) -> LiveExchange | None:
        """Return the exchange of a call."""
        return self._exchanges.get(call_id)

    def route(self, event: Event) -> EmissionOrder:
        """Route and stamp an event that is about to be stored; return the order of its turn."""
        # An event that has a stamp was created here and is not published.
        exchange = None if "message" in notes_of(event) else self._exchange_of(event)
        if exchange is None:
            self._routes.append((event.id, Route()))
            return _NO_ORDER
        turn = exchange.current
        event.custom_metadata = {**(event.custom_metadata or {}), **turn.stamp.as_metadata()}
        is_published = _is_published(event)
        feed = turn.feed if is_published and not exchange.is_done else None
        self._routes.append((event.id, self._follow(event, exchange, feed)))
        return turn.order if is_published else _NO_ORDER

    def stored(self, event: Event) -> Iterator[tuple[Event, Route]]:
        """Yield the events that can be published once this one was stored, in order."""
        self._stored[event.id] = event
        while self._routes and self._routes[0][0] in self._stored:
            event_id, route = self._routes.popleft()
            yield self._stored.pop(event_id), route

    def settle(self, exchange: LiveExchange, call_id: str, *, answered: bool = True) -> None:
        """Note the result of a call; the model answers the last one, if it is ``answered``."""
        phase = exchange.open_calls.pop(call_id, None)
        if phase is not None and not exchange.open_calls and answered and not exchange.is_done:
            self._utterances.expect_answer(exchange)

    def _remember(self, call_id: str, exchange: LiveExchange) -> None:
        self._exchanges[call_id] = exchange
        ended = [name for name, each in self._exchanges.items() if each.is_done]
        for name in ended[:-_ENDED_CALLS]:
            del self._exchanges[name]

    def _exchange_of(self, event: Event) -> LiveExchange | None:
        utterances = self._utterances
        speech = event.input_transcription
        if speech is not None:
            return utterances.user_spoke(final=bool(transcript(speech))) if speech.text else None
        for call_id in (*callers_of(event), *_named_calls(event)):
            return self._exchanges.get(call_id)
        if event.author != "user" and _is_output(event):
            return utterances.model_spoke()
        if event.interrupted or event.turn_complete:
            return self._end_answer(event)
        return utterances.speaking or utterances.latest if event.usage_metadata else None

    def _end_answer(self, event: Event) -> LiveExchange | None:
        if event.interrupted:
            expects_completion = not event.turn_complete
            return self._utterances.model_interrupted(expects_completion=expects_completion)
        return self._utterances.model_completed()

    def _follow(self, event: Event, exchange: LiveExchange, feed: EventFeed | None) -> Route:
        """Update the exchange; its turn may end with this event."""
        if _is_output(event) and (event.interrupted or event.turn_complete):
            self._end_answer(event)
        stopped = bool(event.interrupted)
        may_wait = self._note_calls(event, exchange)
        if exchange.is_done:
            return Route(exchange, feed)
        if (stopped and exchange.is_stopping) or self._is_answered(exchange):
            exchange.is_done = True
            return Route(exchange, feed, exchange.current.feed, stopped)
        if may_wait and not exchange.has_running_calls:
            return Route(exchange, feed, exchange.pause().feed)
        return Route(exchange, feed)

    def _is_answered(self, exchange: LiveExchange) -> bool:
        """Whether the model has answered and none of its calls is open."""
        return not (
            exchange.open_calls
            or self._utterances.is_unanswered(exchange)
            or self._utterances.speaking is exchange
        )

    def _note_calls(self, event: Event, exchange: LiveExchange) -> bool:
        """Note calls and results; return whether the exchange may have begun to wait."""
        changed = False
        for call in event.get_function_calls():
            call_id, name = call.id or "", call.name or ""
            if name in (CONFIRMATION, CREDENTIAL) or event.partial:
                continue
            self._remember(call_id, exchange)
            exchange.callers[call_id] = callers_of(event)
            is_of_page = name in self._page_tools
            kind = "free" if is_of_page else self._tools.facts(event.author, name).kind
            if kind in ("client", "gated-client"):
                exchange.client_calls.add(call_id)
            elif call_id in (event.long_running_tool_ids or ()):
                # ADK does not wait for its result, which may never come.
                continue
            exchange.open_calls[call_id] = "waiting" if kind == "client" else "running"
            changed = True
        requested = event.actions.requested_tool_confirmations or {}
        for response in event.get_function_responses():
            call_id = response.id or ""
            if call_id in requested:
                exchange.open_calls[call_id] = "waiting"
                exchange.approval_calls.add(call_id)
            else:
                self.settle(exchange, call_id, answered=response.scheduling is not SILENT)
            changed = True
        return changed and bool(exchange.open_calls) and (bool(requested) or not exchange.is_paused)


def _named_calls(event: Event) -> list[str]:
    """The calls that an event has a result of, or requests approval of."""
    requested: list[Any] = [
        (call.args or {}).get("originalFunctionCall")
        for call in event.get_function_calls()
        if call.name == CONFIRMATION
    ]
    responses = [response.id or "" for response in event.get_function_responses()]
    return [*responses, *(str(call.get("id")) for call in requested if isinstance(call, dict))]


def _is_output(event: Event) -> bool:
    """Whether an event holds output of the model, or a result."""
    parts = event.content.parts if event.content is not None else None
    return bool(parts or event.output_transcription or event.error_code)


def _is_published(event: Event) -> bool:
    """Whether the turn publishes an event: no audio or images, and only final transcripts.

    A final transcript may follow a call that was made in the middle of it.
    """
    parts = event.content.parts if event.content is not None else None
    if any(part.inline_data is not None for part in parts or ()):
        return False
    speech = event.output_transcription
    return not (event.input_transcription or (speech and not transcript(speech)))
