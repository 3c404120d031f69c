"""How far a model may run ahead: no further than the fastest reader is behind by so many bytes.

ADK: it puts partial events on a queue without a bound, so a model that is never waited for fills
the memory with what nobody has read yet.
"""

from __future__ import annotations

import asyncio
import copy
import math
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from sluicegate.core.signals import Speaker

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    from sluicegate.stores.streams.base import StreamReader

PIECES: Final = 16
"""Partial responses after which whoever reads gets a chance to run."""


class ReaderBackpressure:
    """The readers of a turn as its models see them; without any, a model is not held up."""

    def __init__(self, window: float = math.inf, patience: float = 5.0) -> None:
        """Take the bytes that a model may be ahead, and the seconds it waits for one that moves."""
        self.patience = patience
        self._window = window
        self._readers: set[StreamReader] = set()
        self._moved = asyncio.Event()
        self._pieces = 0

    def join(self, reader: StreamReader) -> None:
        """Somebody begins to read."""
        self._readers.add(reader)

    def leave(self, reader: StreamReader) -> None:
        """Somebody reads no more."""
        self._readers.discard(reader)
        self._moved.set()

    def moved(self) -> None:
        """A reader has taken something."""
        self._moved.set()

    def is_due(self) -> bool:
        """A piece was said: whether it is time for a `step`."""
        self._pieces += 1
        return self._pieces % PIECES == 0

    async def step(self) -> None:
        """Let others run; wait where everybody is far behind."""
        await asyncio.sleep(0)
        if not self._is_ahead():
            return
        try:
            async with asyncio.timeout(self.patience):
                while self._is_ahead():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            # Nobody moves: whoever is stuck is dropped elsewhere, and the store has bounds.
            return

    def _is_ahead(self) -> bool:
        return bool(self._readers) and all(
            reader.backlog > self._window for reader in self._readers
        )


UNOBSERVED: Final[ContextVar[bool]] = ContextVar("sluicegate_unobserved", default=False)
"""Whether no plugin or callback of the user sees partial responses of the agent in this context."""

Say = Callable[["LaneCall", "LlmResponse"], Awaitable[None]]
"""Takes a partial response of a model call whose first piece has come out of the Runner."""

UNDER_WAY: Final = 64
"""Pieces of one model call that may be in the Runner at once."""

_PLAIN: Final = frozenset({"text", "thought", "thought_signature"})


class FastLanes:
    """The model calls of one turn that speak now, and what has come of them out of the Runner."""

    def __init__(self, pace: ReaderBackpressure | None = None) -> None:
        """Take how far ahead a model may run; without it, as far as it likes."""
        self.pace = pace or ReaderBackpressure()
        self.say: Say | None = None
        """Tells the turn; None while it does not listen."""
        self._marked: dict[int, LaneCall] = {}
        self._known: dict[str, LaneCall] = {}

    def enter(self) -> LaneCall:
        """A model call begins."""
        return LaneCall(self)

    def came_out(self, event: Event) -> None:
        """A partial event has come out of the Runner and was told."""
        call = self._known.get(event.id)
        if call is None:
            call = self._marked.get(id(event.content))
            if call is None:
                return
            self._known[event.id] = call
        call.came_out(event)

    def mark(self, content: types.Content, call: LaneCall) -> None:
        """Recognise an event by its content, the same object in the model and in the event."""
        self._marked[id(content)] = call

    def forget(self, content: types.Content | None, first: Event | None) -> None:
        """That event is complete."""
        if content is not None:
            del self._marked[id(content)]
        if first is not None:
            del self._known[first.id]


class LaneCall:
    """One model call: how many of its pieces are on their way through the Runner."""

    def __init__(self, lanes: FastLanes) -> None:
        self._lanes = lanes
        self.first: Event | None = None
        """The event of the first piece, once it has come out of the Runner."""
        self.lane = Speaker(None, "")
        self._may_skip = UNOBSERVED.get()
        self._mark: types.Content | None = None
        self._under_way = 0
        self._room: asyncio.Event | None = None
        self._is_lossy = False

    def takes(self, response: LlmResponse) -> bool:
        """Whether a partial response may take the lane."""
        return (
            self._may_skip
            and self._under_way == 0
            and self.first is not None
            and self._lanes.say is not None
            and is_plain_text(response)
        )

    async def say(self, response: LlmResponse) -> None:
        """Tell a piece that `takes` has let in."""
        if self._lanes.say is not None:
            await self._lanes.say(self, response)

    def hand(self, response: LlmResponse) -> LlmResponse:
        """Return what the Runner is handed in place of a partial response."""
        if self._mark is None and response.content is not None:
            # A copy: models may hand out one content again and again, and this one is looked for.
            self._mark = copy.copy(response.content)
            self._lanes.mark(self._mark, self)
            response = response.model_copy(update={"content": self._mark})
        if self._mark is not None:
            self._under_way += 1
        return response

    def came_out(self, event: Event) -> None:
        """One of the pieces has come out."""
        self._under_way -= 1
        if self.first is None:
            self.first, self.lane = event, Speaker(event.branch or None, event.author)
        if self._room is not None and self._under_way < UNDER_WAY:
            self._room.set()

    @property
    def is_to_pause(self) -> bool:
        """Whether `pace` has something to do before the next piece."""
        return self._lanes.pace.is_due() or self._under_way >= UNDER_WAY

    async def pace(self) -> None:
        """Wait where too many pieces are under way, or all readers far behind."""
        await self._lanes.pace.step()
        if self._under_way < UNDER_WAY or self.first is None or self._is_lossy:
            return
        self._room = asyncio.Event()
        try:
            async with asyncio.timeout(self._lanes.pace.patience):
                await self._room.wait()
        except TimeoutError:
            # Somebody drops what the model says; how much is under way cannot be known.
            self._is_lossy = True
        self._room = None

    def end(self) -> None:
        """The event is complete: what follows belongs to another one."""
        self._lanes.forget(self._mark, self.first)
        self._mark = self.first = None
        self._under_way = 0


def is_plain_text(response: LlmResponse) -> bool:
    """Whether a partial response is text or thought and nothing else."""
    parts = response.content.parts if response.content is not None else None
    if not parts:
        return False
    for part in parts:
        if not part.text or not (part.model_fields_set <= _PLAIN or _says_only_text(part)):
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


def _says_only_text(part: types.Part) -> bool:
    """Whether every other field that was given is empty."""
    return all(getattr(part, name) is None for name in part.model_fields_set - _PLAIN)
