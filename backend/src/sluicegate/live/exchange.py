"""One exchange of a live run, its turns, and the feed of events to each turn."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from sluicegate.core.stored_emission_order import EmissionOrder
from sluicegate.engine.turn.builder import new_turn_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from google.adk.events.event import Event

    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.core.turn_stamp import TurnStamp
    from sluicegate.engine.turn.running_turn import RunningTurn
    from sluicegate.wire.live_frames import TranscriptFrame

CallPhase: TypeAlias = Literal["running", "waiting"]
"""A call without a result: it runs, or waits for a decision or for the browser."""

Phase: TypeAlias = Literal["queued", "running", "waiting", "done"]
"""Behind another exchange; published by a running turn; between two turns; at its end."""

_END: Final = object()


class EventFeed:
    """The events of one turn."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event | Exception | object] = asyncio.Queue()
        self._stopped = False
        self._writes: set[asyncio.Task[None]] = set()
        self.ended = asyncio.Event()

    def put(self, event: Event) -> None:
        """Append an event; events after the end are dropped."""
        if not self.ended.is_set():
            self._queue.put_nowait(event)

    def end_after(self, write: asyncio.Task[None]) -> None:
        """Let `events` end after this task: who reads the end of the turn finds what it writes."""
        self._writes.add(write)
        write.add_done_callback(self._writes.discard)

    def end(self, *, stopped: bool = False) -> None:
        """End the feed, unless it has ended; ``stopped``: the turn was stopped."""
        if not self.ended.is_set():
            self._stopped = stopped
            self.ended.set()
            self._queue.put_nowait(_END)

    def fail(self, error: Exception) -> None:
        """End the feed with an error, which `events` raises."""
        if not self.ended.is_set():
            self.ended.set()
            self._queue.put_nowait(error)

    async def events(self, turn: RunningTurn) -> AsyncIterator[Event]:
        """Yield the events of the turn; a stopped turn has ``abort`` set before the end."""
        while True:
            item = await self._queue.get()
            if isinstance(item, Exception):
                raise item
            if item is _END:
                if self._stopped:
                    turn.abort.set()
                if self._writes:
                    await asyncio.wait(self._writes)
                return
            yield item  # type: ignore[misc]  # the other items are events


@dataclass(eq=False, slots=True)
class LiveTurn:
    """One turn: the stamp of its events, their feed and their emission order."""

    stamp: TurnStamp
    feed: EventFeed = field(default_factory=EventFeed)
    order: EmissionOrder = field(default_factory=EmissionOrder)


@dataclass(eq=False, slots=True)
class LiveExchange:
    """A message of the user, typed or spoken, and its answer; calls are named by ADK's ids."""

    current: LiveTurn
    """The turn that new events belong to."""
    release: ReleasePolicy
    spoken: bool
    phase: Phase = "queued"
    is_paused: bool = False
    """Whether ``current`` is not published before a call has its decision or result."""
    is_done: bool = False
    """Whether no further event is published."""
    is_stopping: bool = False
    """Whether it was stopped, and ends with the model's next interruption."""
    is_earlier: bool = False
    """Whether it has been waiting since before this run, and continues outside of it."""
    is_announced: bool = False
    """Whether the client has the `TurnFrame` of the turn."""
    has_user_message: bool = False
    """Whether the user's words are complete."""
    is_transcribed: bool = False
    """Whether the client has a final transcript of the user's words."""
    has_output: bool = False
    has_begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client gets the first audio of the answer, or its turn has an event to show."""
    open_calls: dict[str, CallPhase] = field(default_factory=dict)
    """The calls without a result."""
    callers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The calls of agents on whose branch a call was made, by that call."""
    approval_calls: set[str] = field(default_factory=set)
    """All calls that have requested approval."""
    earlier_approval_calls: set[str] = field(default_factory=set)
    """Those of them in earlier turns."""
    client_calls: set[str] = field(default_factory=set)
    """The calls that run in the browser."""
    unpublished: deque[LiveTurn] = field(default_factory=deque)
    """The turns that are not published yet."""
    transcripts: dict[str, list[str]] = field(default_factory=dict)
    """The texts of the transcripts by role; the last one is not final."""
    held_transcripts: list[TranscriptFrame] = field(default_factory=list)
    """The transcripts that the release policy holds."""

    def __post_init__(self) -> None:
        self.unpublished.append(self.current)

    @property
    def message(self) -> str:
        """The id of its assistant message."""
        return self.current.stamp.message

    @property
    def has_running_calls(self) -> bool:
        """Whether one of its calls runs; that of an agent waits for a call inside it."""
        waiting = [call for call, phase in self.open_calls.items() if phase == "waiting"]
        callers = {caller for call in waiting for caller in self.callers.get(call, ())}
        return any(
            phase == "running" and call not in callers for call, phase in self.open_calls.items()
        )

    def pause(self) -> LiveTurn:
        """End the current turn, which waits for a result; later events belong to the next one."""
        ended = self.current
        self.is_paused = True
        self.earlier_approval_calls |= self.approval_calls
        self.current = LiveTurn(replace(ended.stamp, turn=new_turn_id()))
        self.unpublished.append(self.current)
        return ended
