"""An exchange of a live run, and the events of its turns as they come."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from sluicegate.core.emission_order import EmissionOrder
from sluicegate.engine.resources import new_turn_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from google.adk.events.event import Event

    from sluicegate.core.exchanges import TurnStamp
    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.engine.turn.runner import RunningTurn
    from sluicegate.wire.live_frames import TranscriptFrame

CallPhase: TypeAlias = Literal["runs", "waits"]
"""A call without a result: at work, or waiting for a person or a browser."""

Phase: TypeAlias = Literal["queued", "runs", "waits", "over"]
"""Behind another exchange; told in a running turn; waiting for an answer; at its end."""

_END: Final = object()


class Feed:
    """The events of one turn; what ended it says whether it was stopped."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event | Exception | object] = asyncio.Queue()
        self._stopped = False
        self.ended = asyncio.Event()

    def put(self, event: Event) -> None:
        """The next event; nothing comes after the end."""
        if not self.ended.is_set():
            self._queue.put_nowait(event)

    def end(self, *, stopped: bool = False) -> None:
        """Nothing follows; the first end counts."""
        if not self.ended.is_set():
            self._stopped = stopped
            self.ended.set()
            self._queue.put_nowait(_END)

    def fail(self, error: Exception) -> None:
        """The run has failed; whoever reads raises it."""
        if not self.ended.is_set():
            self.ended.set()
            self._queue.put_nowait(error)

    async def events(self, turn: RunningTurn) -> AsyncIterator[Event]:
        """The events of the turn; a turn that was stopped learns it before it ends."""
        while True:
            found = await self._queue.get()
            if isinstance(found, Exception):
                raise found
            if found is _END:
                if self._stopped:
                    turn.abort.set()
                return
            yield found  # type: ignore[misc]  # what is left is an event


@dataclass(eq=False, slots=True)
class LiveTurn:
    """One turn: what marks its events, and where they go."""

    stamp: TurnStamp
    feed: Feed = field(default_factory=Feed)
    order: EmissionOrder = field(default_factory=EmissionOrder)


@dataclass(eq=False, slots=True)
class LiveExchange:
    """A message of the user, typed or spoken, and its answer.

    ``current`` is the turn that new events belong to, ``to_play`` the turns nobody has told yet.
    ``calls`` are its calls without a result by ADK's id, ``gated`` all that ever asked,
    ``asked_before`` those in earlier turns, ``in_browser`` those that run there. ``said`` are the
    transcripts by role, ``frames`` those of them that may not be told yet.
    """

    current: LiveTurn
    release: ReleasePolicy
    spoken: bool
    phase: Phase = "queued"
    is_paused: bool = False
    """Whether ``current`` waits for an answer before it is told."""
    is_done: bool = False
    """Whether nothing more will be told of it."""
    is_ending: bool = False
    """Whether it was stopped, and ends with what the model says now."""
    is_foreign: bool = False
    """Whether it waits since before this run; it goes on without it."""
    is_announced: bool = False
    has_question: bool = False
    is_heard: bool = False
    """Whether its question has been told to the client."""
    has_output: bool = False
    calls: dict[str, CallPhase] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    asked_before: set[str] = field(default_factory=set)
    in_browser: set[str] = field(default_factory=set)
    to_play: deque[LiveTurn] = field(default_factory=deque)
    said: dict[str, list[str]] = field(default_factory=dict)
    frames: list[TranscriptFrame] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.to_play.append(self.current)

    @property
    def message(self) -> str:
        """The id of its assistant message."""
        return self.current.stamp.message

    @property
    def runs_calls(self) -> bool:
        """Whether one of its calls is at work."""
        return "runs" in self.calls.values()

    def pause(self) -> LiveTurn:
        """End the current turn, since it waits; what follows belongs to the next one."""
        ended = self.current
        self.is_paused = True
        self.asked_before |= self.gated
        self.current = LiveTurn(replace(ended.stamp, turn=new_turn_id()))
        self.to_play.append(self.current)
        return ended
