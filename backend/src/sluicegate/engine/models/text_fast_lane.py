"""The fast lane: plain partial text bypasses ADK's Runner, as fast as the readers allow.

ADK's Runner costs more per partial event than the rest of a turn together, so plain partial text
bypasses it where no plugin or callback of the user observes it. The backlog of the readers slows a
model down, because ADK puts partial events on an unbounded queue.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from sluicegate.core.signals import Speaker

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    from sluicegate.engine.models.reader_backpressure import ReaderBackpressure

CURRENT_FAST_LANE: Final[ContextVar[FastLane | None]] = ContextVar(
    "sluicegate_current_fast_lane", default=None
)
"""The fast lane of the turn, None outside turns and in live runs."""

UNOBSERVED: Final[ContextVar[bool]] = ContextVar("sluicegate_unobserved", default=False)
"""Whether no plugin or callback of the user sees partial responses of the agent in this context."""


MAX_IN_RUNNER: Final = 64
"""Partial responses of one model call that may be in the Runner at once."""

_TEXT_FIELDS: Final = frozenset({"text", "thought", "thought_signature"})

Emit = Callable[["FastLaneCall", "LlmResponse"], Awaitable[None]]
"""Emits a partial response of a model call whose first event has left the Runner."""


class FastLane:
    """The running model calls of one turn, and which of their events have left the Runner.

    ``emit`` gets the partial responses that bypass the Runner, until the fast lane is closed.
    """

    def __init__(self, backpressure: ReaderBackpressure, emit: Emit) -> None:
        self.backpressure = backpressure
        self.is_closed = False
        self._emit = emit
        self._by_content: dict[int, FastLaneCall] = {}
        self._by_event: dict[str, FastLaneCall] = {}

    def start_call(self) -> FastLaneCall:
        """Start a model call."""
        return FastLaneCall(self)

    async def emit(self, call: FastLaneCall, response: LlmResponse) -> None:
        """Emit a partial response; dropped once the fast lane is closed."""
        if not self.is_closed:
            await self._emit(call, response)

    def close(self) -> None:
        """Accept no more partial responses: the run has ended."""
        self.is_closed = True

    def left_runner(self, event: Event) -> None:
        """Record that a partial event has left the Runner and was emitted."""
        call = self._by_event.get(event.id)
        if call is None:
            call = self._by_content.get(id(event.content))
            if call is None:
                return
            self._by_event[event.id] = call
        call.left_runner(event)

    def register(self, content: types.Content, call: FastLaneCall) -> None:
        """Recognize an event by its content, the same object in the model and in the event."""
        self._by_content[id(content)] = call

    def unregister(self, content: types.Content | None, first: Event | None) -> None:
        """Forget an event that is complete."""
        if content is not None:
            del self._by_content[id(content)]
        if first is not None:
            del self._by_event[first.id]


class FastLaneCall:
    """One model call, and how many of its partial responses are in the Runner.

    ``first`` is the event of the first partial response, once it has left the Runner.
    """

    def __init__(self, fast_lane: FastLane) -> None:
        self._fast_lane = fast_lane
        self.first: Event | None = None
        self.speaker = Speaker(None, "")
        self._is_unobserved = UNOBSERVED.get()
        self._content: types.Content | None = None
        self._in_runner = 0
        self._room: asyncio.Event | None = None
        self._is_lossy = False

    def accepts(self, response: LlmResponse) -> bool:
        """Whether a partial response may go past the Runner."""
        return (
            self._is_unobserved
            and self._in_runner == 0
            and self.first is not None
            and not self._fast_lane.is_closed
            and is_plain_text(response)
        )

    async def emit(self, response: LlmResponse) -> None:
        """Emit a partial response that `accepts` has accepted."""
        await self._fast_lane.emit(self, response)

    def through_runner(self, response: LlmResponse) -> LlmResponse:
        """Return the response to give to the Runner in place of a partial response."""
        if self._content is None and response.content is not None:
            # A copy: models may yield one content again and again, and this one is recognized.
            self._content = copy.copy(response.content)
            self._fast_lane.register(self._content, self)
            response = response.model_copy(update={"content": self._content})
        if self._content is not None:
            self._in_runner += 1
        return response

    def left_runner(self, event: Event) -> None:
        """Record that one of the events has left the Runner."""
        self._in_runner -= 1
        if self.first is None:
            self.first, self.speaker = event, Speaker(event.branch or None, event.author)
        if self._room is not None and self._in_runner < MAX_IN_RUNNER:
            self._room.set()

    @property
    def is_wait_due(self) -> bool:
        """Whether to call `wait` before the next partial response."""
        return self._fast_lane.backpressure.is_due() or self._in_runner >= MAX_IN_RUNNER

    async def wait(self) -> None:
        """Wait while too many partial responses are in the Runner, or readers lag behind."""
        await self._fast_lane.backpressure.wait()
        if self._in_runner < MAX_IN_RUNNER or self.first is None or self._is_lossy:
            return
        self._room = asyncio.Event()
        try:
            async with asyncio.timeout(self._fast_lane.backpressure.patience):
                await self._room.wait()
        except TimeoutError:
            # A callback drops partial responses, so how many are in the Runner is not known.
            self._is_lossy = True
        self._room = None

    def end_event(self) -> None:
        """Record that the event is complete: later responses belong to another one."""
        self._fast_lane.unregister(self._content, self.first)
        self._content = self.first = None
        self._in_runner = 0


def is_plain_text(response: LlmResponse) -> bool:
    """Whether a partial response is text or thought and nothing else."""
    parts = response.content.parts if response.content is not None else None
    if not parts:
        return False
    for part in parts:
        if not part.text or not (part.model_fields_set <= _TEXT_FIELDS or _has_only_text(part)):
            return False
    return (
        response.error_code is None
        and response.error_message is None
        and response.grounding_metadata is None
        and response.citation_metadata is None
        and response.custom_metadata is None
        and response.interrupted is None
        and response.turn_complete is None
    )


def _has_only_text(part: types.Part) -> bool:
    """Whether every other field that was set is None."""
    return all(getattr(part, name) is None for name in part.model_fields_set - _TEXT_FIELDS)
