"""Agents that run at once, told one after the other (T2).

A lane is a branch and the agent that speaks on it. A unit is what one event, or the fragments of
one model call, have to tell. Rule: units are told in the order in which each began; the first one
that has not ended holds back all that began later.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluicegate.core.model_call import ModelCall
    from sluicegate.core.signals import Item

Lane: TypeAlias = tuple[str | None, str]
"""Branch and author."""


@dataclass(slots=True, eq=False)
class Segment:
    """What is told without a break; ``call`` for a model call, which has a step of its own."""

    lane: Lane
    event_id: str
    call: ModelCall | None = None
    is_open: bool = True
    waiting: list[Item] = field(default_factory=list)


class SegmentConsumer(Protocol):
    """Who is told."""

    def begin(self, unit: Segment) -> None:
        """Its turn has come."""

    def tell(self, item: Item) -> None:
        """The next of its items."""

    def end(self) -> None:
        """It has told everything."""


class Interleaver:
    """The queue of units; the head of it is heard at once."""

    def __init__(self, listener: SegmentConsumer) -> None:
        self._listener = listener
        self._queue: deque[Segment] = deque()
        self._speaking: dict[Lane, Segment] = {}

    def speaking(self, lane: Lane) -> Segment | None:
        """The unit of a model call that is under way on this lane."""
        return self._speaking.get(lane)

    def unfinished(self) -> list[Segment]:
        """Every model call under way, in the order they began."""
        return [unit for unit in self._queue if unit.is_open]

    def open(self, lane: Lane, event_id: str, call: ModelCall) -> Segment:
        """Begin the unit of a model call."""
        unit = Segment(lane, event_id, call)
        self._speaking[lane] = unit
        self._add(unit)
        return unit

    def tell(self, unit: Segment, items: Iterable[Item]) -> None:
        """Tell now, or keep for when its turn comes."""
        if self._queue[0] is not unit:
            unit.waiting.extend(items)
            return
        for item in items:
            self._listener.tell(item)

    def close(self, unit: Segment) -> None:
        """End a unit; the next one's turn may come."""
        unit.is_open = False
        if self._speaking.get(unit.lane) is unit:
            del self._speaking[unit.lane]
        while self._queue and not self._queue[0].is_open:
            self._queue.popleft()
            self._listener.end()
            if self._queue:
                self._turn(self._queue[0])

    def pass_on(self, lane: Lane, event_id: str, items: Sequence[Item]) -> None:
        """Tell what an event has to tell that is no model call."""
        if items:
            unit = Segment(lane, event_id)
            self._add(unit)
            self.tell(unit, items)
            self.close(unit)

    def overtaken_by(self, unit: Segment) -> str | None:
        """The first unit that began after this one and has ended already, by its event id."""
        after = iter(self._queue)
        for other in after:
            if other is unit:
                break
        return next((other.event_id for other in after if not other.is_open), None)

    def _add(self, unit: Segment) -> None:
        self._queue.append(unit)
        if len(self._queue) == 1:
            self._turn(unit)

    def _turn(self, unit: Segment) -> None:
        self._listener.begin(unit)
        for item in unit.waiting:
            self._listener.tell(item)
        unit.waiting = []
