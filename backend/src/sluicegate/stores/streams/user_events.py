"""The events of each user, kept for connections that resume; the port and the store in memory."""

from __future__ import annotations

import re
import time
from asyncio import Future, get_running_loop
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from sluicegate.wire.user_events import READY, RESET, encode_user_event

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from sluicegate.wire.user_events import UserEvent

_LAST_NUMBER: Final = 10**15 - 1
_ID: Final = re.compile(r"([0-9]{1,15})-([0-9]{1,15})")


class Cursor(NamedTuple):
    """The position of an event among those of all users, by the time of its store."""

    milliseconds: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Cursor | None:
        """Parse the id of an event; None for any other text."""
        match = _ID.fullmatch(text)
        return None if match is None else cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        """Return the id of the event."""
        return f"{self.milliseconds}-{self.number}"

    def later(self) -> Cursor:
        """Return the next position."""
        return Cursor(self.milliseconds, self.number + 1)

    def earlier(self) -> Cursor:
        """Return a position before this one and after every event before it."""
        if self.number:
            return Cursor(self.milliseconds, self.number - 1)
        return Cursor(self.milliseconds - 1, _LAST_NUMBER)


class StoredEvent(NamedTuple):
    """The encoded event at a position; ``topic`` is the user or the topic of a role, if any."""

    cursor: Cursor
    data: str
    topic: str = ""

    @property
    def is_of_role(self) -> bool:
        """Whether it was published to the holders of a role."""
        return self.topic.startswith(_ROLE_TOPICS)


_ROLE_TOPICS: Final = "/roles/"
"""What the topics of roles begin with; no user id has a slash."""


def role_topic(role: str) -> str:
    """Return the topic, in place of a user, of the events for the holders of a role."""
    return f"{_ROLE_TOPICS}{role}"


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """How many events are kept, of one user and of all, and for how many seconds."""

    per_user: int = 500
    total: int = 20_000
    seconds: float = 600.0


class UserEventReader(Protocol):
    """The events of one user and of roles, from a position on."""

    async def read(self) -> Sequence[StoredEvent]:
        """Wait for events and return those available."""

    def close(self) -> None:
        """Stop reading. Idempotent."""


class UserEvents(Protocol):
    """The events of the users of one application, and of the holders of roles."""

    def publish(self, user: str, event: UserEvent) -> None:
        """Publish an event to the connections of a user; never waits and never raises.

        ``user`` may be a `role_topic`.
        """

    def read(self, user: str, after: str | None, roles: Collection[str] = ()) -> UserEventReader:
        """Return a reader of the events after the id ``after``, by default of future ones.

        They are those of the user and of these roles. The first event is ``ready``, or ``reset`` if
        events after that id may be missing.
        """

    async def aclose(self) -> None:
        """Deliver what was published and release all resources."""


@dataclass(slots=True, eq=False)
class _UserLog:
    """The events of one user; every event up to ``dropped`` is forgotten."""

    dropped: Cursor
    touched: float
    entries: deque[StoredEvent] = field(default_factory=deque)
    readers: int = 0
    waiting: list[Future[None]] = field(default_factory=list)

    def wake(self) -> None:
        waiting, self.waiting = self.waiting, []
        for waiter in waiting:
            # The waiter of a cancelled reader is done already.
            if not waiter.done():
                waiter.set_result(None)


class UserEventLog:
    """The latest events of each user, in memory, with the connections that read them.

    A position is known if no event after it can be missing: it is neither before one of its user
    that is forgotten, nor in the future.

    Args:
        first: The position from which on this log sees every event.
        limits: How many events are kept, and for how long.
        clock: Returns seconds.
    """

    def __init__(
        self,
        first: Cursor,
        limits: RetentionLimits,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.latest = first
        """The position of the newest event."""
        self._forgotten = first
        self._limits = limits
        self._clock = clock
        self._logs: OrderedDict[str, _UserLog] = OrderedDict()
        self._total = 0

    @property
    def size(self) -> int:
        """The number of events that are kept."""
        return self._total

    def append(self, cursor: Cursor, user: str, data: str) -> None:
        """Append the event at a position; one before the newest is moved behind it."""
        self.latest = max(cursor, self.latest.later())
        log = self._log(user)
        log.entries.append(StoredEvent(self.latest, data, user))
        self._total += 1
        if len(log.entries) > self._limits.per_user:
            log.dropped = log.entries.popleft().cursor
            self._total -= 1
        log.touched = self._clock()
        self._logs.move_to_end(user)
        log.wake()
        self._forget()

    def append_next(self, user: str, data: str) -> None:
        """Append an event at the next position."""
        self.append(self.latest.later(), user, data)

    def reset(self, cursor: Cursor) -> None:
        """Forget every event: others may be missing before this position."""
        self.latest = self._forgotten = max(cursor, self.latest.later())
        for user, log in list(self._logs.items()):
            self._clear(user, log)
            log.dropped = self._forgotten
            log.wake()

    def read(self, user: str, after: str | None, roles: Collection[str] = ()) -> _Reader:
        """Return a reader; see `UserEvents.read`."""
        logs = [self._log(topic) for topic in (user, *map(role_topic, roles))]
        for log in logs:
            log.readers += 1
        cursor = self.latest if after is None else Cursor.parse(after)
        dropped = max(log.dropped for log in logs)
        if cursor is None or not dropped <= cursor <= self.latest:
            return _Reader(self, logs, self.latest, StoredEvent(self.latest, _RESET))
        return _Reader(self, logs, cursor, StoredEvent(cursor, _READY))

    def closed(self, logs: Sequence[_UserLog]) -> None:
        """Count a reader of logs that has closed; its client may resume for a while."""
        for log in logs:
            log.readers -= 1
            log.touched = self._clock()

    def _log(self, user: str) -> _UserLog:
        log = self._logs.get(user)
        if log is None:
            log = self._logs[user] = _UserLog(self._forgotten, self._clock())
        return log

    def _forget(self) -> None:
        """Forget the events of the users for whom nothing has happened for the longest time."""
        due = self._clock() - self._limits.seconds
        while self._logs:
            user, log = next(iter(self._logs.items()))
            if log.touched > due and self._total <= self._limits.total:
                return
            if log.entries:
                log.dropped = log.entries[-1].cursor
                self._forgotten = max(self._forgotten, log.dropped)
            self._clear(user, log)

    def _clear(self, user: str, log: _UserLog) -> None:
        self._total -= len(log.entries)
        log.entries.clear()
        log.touched = self._clock()
        if log.readers:
            self._logs.move_to_end(user)
        else:
            del self._logs[user]


class _Reader:
    """A position in the logs of a user and of roles (implements `UserEventReader`)."""

    def __init__(
        self, events: UserEventLog, logs: Sequence[_UserLog], cursor: Cursor, first: StoredEvent
    ) -> None:
        self._events = events
        self._logs = logs
        self._cursor = cursor
        self._first: StoredEvent | None = first
        self._is_open = True

    async def read(self) -> Sequence[StoredEvent]:
        """Wait for events and return those available."""
        first, self._first = self._first, None
        if first is not None:
            return [first, *self._take()]
        while not (ready := self._take()):
            waiter: Future[None] = get_running_loop().create_future()
            for log in self._logs:
                log.waiting.append(waiter)
            try:
                await waiter
            finally:
                for log in self._logs:
                    if waiter in log.waiting:
                        log.waiting.remove(waiter)
        return ready

    def close(self) -> None:
        """Stop reading. Idempotent."""
        if self._is_open:
            self._is_open = False
            self._events.closed(self._logs)

    def _take(self) -> list[StoredEvent]:
        if any(self._cursor < log.dropped for log in self._logs):
            self._cursor = self._events.latest
            return [StoredEvent(self._cursor, _RESET)]
        new = (
            takewhile(lambda entry: entry.cursor > self._cursor, reversed(log.entries))
            for log in self._logs
        )
        ready = sorted(chain.from_iterable(new))
        if ready:
            self._cursor = ready[-1].cursor
        return ready


_READY: Final = encode_user_event(READY)
_RESET: Final = encode_user_event(RESET)


class MemoryUserEvents:
    """The events of the users of a single process (implements `UserEvents`).

    Args:
        limits: How many events are kept, and for how long.
        clock: Returns seconds.
        started_at: The time of the start in seconds; an id from an earlier process is unknown.
    """

    def __init__(
        self,
        limits: RetentionLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        started_at: Callable[[], float] = time.time,
    ) -> None:
        first = Cursor(int(started_at() * 1000), 0)
        self._log = UserEventLog(first, limits or RetentionLimits(), clock=clock)

    def publish(self, user: str, event: UserEvent) -> None:
        """Publish an event to the connections of a user."""
        self._log.append_next(user, encode_user_event(event))

    def read(self, user: str, after: str | None, roles: Collection[str] = ()) -> UserEventReader:
        """Return a reader of the events after the id ``after``, by default of future ones."""
        return self._log.read(user, after, roles)

    @property
    def kept(self) -> int:
        """The number of events that are kept."""
        return self._log.size

    async def aclose(self) -> None:
        """Do nothing: no resource is open."""
