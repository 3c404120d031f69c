"""A session log as exchanges: one user message, its answer and every approval in between.

Rule 1: rewound events are dropped before anything else is read; they are the earlier versions of
the exchange that follows in their place. Rule 2: an exchange is named by the message id that each
run stamps on its events (`TurnStamp`); events without one belong to the exchange of their
invocation.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sluicegate.core.event_reading import is_user_message, notes_of, parts_of
from sluicegate.core.turn_stamp import ASIDE, ENDED, FAILED, STOPPED, TurnStamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from google.adk.events.event import Event

    from sluicegate.core.release.base import ApprovalStyle
    from sluicegate.core.release.policies import ReleasePolicy


_TRANSFER: Final = "transfer_to_agent"


@dataclass(frozen=True, slots=True)
class VersionedLog:
    """Events without the rewound ones, and what was rewound, oldest first.

    Each of ``replaced`` is the position from which events were rewound, with these events.
    """

    events: list[Event] = field(default_factory=list)
    replaced: list[tuple[int, VersionedLog]] = field(default_factory=list)

    def rewind(self, position: int) -> None:
        """Move the events from ``position`` on to the replaced ones, with their own versions."""
        nested = [(at - position, log) for at, log in self.replaced if at >= position]
        self.replaced[:] = [each for each in self.replaced if each[0] <= position]
        self.replaced.append((position, VersionedLog(self.events[position:], nested)))
        del self.events[position:]


@dataclass(slots=True)
class Exchange:
    """One user message and its answer so far.

    ``earlier`` are the logs that an edit or another answer replaced by this exchange, oldest first:
    each begins with an earlier version of it and ends with what then was the end of the chat.
    """

    message_id: str
    user_message_id: str
    invocation: str
    release: ReleasePolicy
    style: ApprovalStyle
    created_at: float
    model: str | None
    events: list[Event] = field(default_factory=list)
    is_live: bool = False
    after: str | None = None
    earlier: Sequence[VersionedLog] = ()
    text_from_results: bool = False

    @property
    def version(self) -> int:
        """The number of this version, 1 if it replaced nothing."""
        return len(self.earlier) + 1

    @property
    def user_event(self) -> Event | None:
        """The event that holds the user's message."""
        return next(iter(self.user_events), None)

    @property
    def user_events(self) -> list[Event]:
        """The events that hold the user's message; a spoken one may have several."""
        return [event for event in self.events if is_user_message(event)]

    @property
    def was_stopped(self) -> bool:
        """Whether a turn of it was stopped before its end."""
        return any(notes_of(event).get(STOPPED) for event in reversed(self.events))

    @property
    def was_cut(self) -> bool:
        """Whether its last run failed, was stopped or crashed before an answer."""
        last = next(e for e in reversed(self.events) if not _is_end_note(e))
        return last.author == "user" or self._was_ended_by(last)

    @property
    def was_abandoned(self) -> bool:
        """Whether its process died in the middle of its last turn, so that ADK can run on.

        ADK stores the end of each agent and Workflow; one that transferred has ended before the
        agent that it transferred to. A turn that ends in another way ends with a note.
        """
        last = self.events[-1]
        if self.is_live or _is_end_note(last) or is_user_message(last) or self._was_ended_by(last):
            return False
        answered = {reply.id for event in self.events for reply in event.get_function_responses()}
        for event in self.events:
            if not answered.issuperset(event.long_running_tool_ids or ()):
                # ADK runs on when the browser has answered, which it does not for a refused call.
                return False
        return not _have_ended([event for event in self.events if event.author != "user"])

    def _was_ended_by(self, event: Event) -> bool:
        """Whether a run that failed, was stopped or was closed has ended with this event."""
        return bool(
            event.interrupted
            or (event.error_code and not event.partial)
            or notes_of(event).get("turn") == closed_turn(self.message_id)
        )


_RUN_NUMBER: Final = re.compile(r"@\d+(?=/|$)")


def _is_end_note(event: Event) -> bool:
    notes = notes_of(event)
    return any(notes.get(end) for end in (STOPPED, FAILED, ENDED))


def _have_ended(events: Sequence[Event]) -> bool:
    """Whether every agent and Workflow that has written these events has ended since."""
    writers = [_writer(event) for event in events]
    ends = [number for number, event in enumerate(events) if event.actions.end_of_agent]
    if not ends:
        return False
    last = next((event for event in reversed(events) if parts_of(event)), None)
    if last is not None and any(r.name == _TRANSFER for r in last.get_function_responses()):
        return False
    if ends[-1] == len(events) - 1 and writers[-1] == writers[0]:
        return True
    others = sorted(set(range(len(events))) - set(ends))
    last_written = {writers[number]: number for number in others}
    return all(
        any(end > number and _is_within(writer, writers[end]) for end in ends)
        for writer, number in last_written.items()
    )


def _writer(event: Event) -> str:
    """The path of the agent that has written an event, without the numbers of its runs."""
    # ADK: nodes write their path; other agents, and a Workflow itself, only their name. What runs
    # in a shell agent that is a node writes the path of that node. A node with which a Runner
    # begins has another number than before.
    path = _RUN_NUMBER.sub("", event.node_info.path or "")
    if path.rpartition("/")[2].partition("@")[0] == event.author:
        return path
    return f"{path}/{event.author}" if path else event.author


def _is_within(writer: str, ended: str) -> bool:
    return writer == ended or writer.startswith((f"{ended}/", f"{ended}@"))


def versioned(events: Sequence[Event]) -> VersionedLog:
    """Separate the rewound events (ADK: ``actions.rewind_before_invocation_id``)."""
    log = VersionedLog()
    for event in events:
        target = event.actions.rewind_before_invocation_id if event.actions else None
        if target is None:
            log.events.append(event)
            continue
        kept = log.events
        first = next((i for i, e in enumerate(kept) if e.invocation_id == target), len(kept))
        if first < len(kept):
            log.rewind(first)
    return log


def exchanges(events: Sequence[Event]) -> list[Exchange]:
    """The exchanges of a session, oldest first."""
    return exchanges_of(versioned(events))


def exchanges_of(log: VersionedLog) -> list[Exchange]:
    """The exchanges of a log, oldest first."""
    found: dict[str, Exchange] = {}
    by_invocation: dict[str, str] = {}
    replaced = deque(log.replaced)
    for position, event in enumerate(log.events):
        note = notes_of(event)
        if note.get(ASIDE):
            continue
        invocation = event.invocation_id
        name = note.get("message") or by_invocation.get(invocation) or invocation
        by_invocation[invocation] = name
        if name not in found:
            earlier: list[VersionedLog] = []
            while replaced and replaced[0][0] <= position:
                earlier.append(replaced.popleft()[1])
            found[name] = Exchange(
                message_id=name,
                user_message_id=note.get("userMessage") or event.id,
                invocation=invocation,
                release=note.get("release") or "progressive",
                style=note.get("style") or "call",
                created_at=note.get("createdAt") or event.timestamp,
                model=note.get("model"),
                is_live=note.get("live") is True,
                after=note.get("after"),
                earlier=earlier,
                text_from_results=note.get("textFromResults") is True,
            )
        found[name].events.append(event)
    return list(found.values())


def was_replaced(events: Sequence[Event], message_id: str) -> bool:
    """Whether an edit or another answer replaces an exchange; the other one may not have begun."""
    written = exchanges_of(VersionedLog(list(events)))
    kept = {exchange.message_id for exchange in exchanges(events)}
    return message_id in {exchange.message_id for exchange in written} - kept


def earlier_version(
    found: Sequence[Exchange], message_id: str, version: int
) -> list[Exchange] | None:
    """Return an earlier version of an exchange, and the exchanges that then followed it.

    The exchange may itself have been replaced. None: there is no such exchange or version.
    """
    for exchange in _with_replaced(found):
        if exchange.message_id == message_id and 1 <= version < exchange.version:
            return exchanges_of(exchange.earlier[version - 1])
    return None


def _with_replaced(found: Sequence[Exchange]) -> Iterator[Exchange]:
    for exchange in found:
        yield exchange
        for log in exchange.earlier:
            replaced = exchanges_of(log)
            # The first one has the versions before it, which this loop reads as well.
            yield from replaced[:1]
            yield from _with_replaced(replaced[1:])


def in_view(found: Sequence[Exchange], is_over: Callable[[Exchange], bool]) -> list[Exchange]:
    """The exchanges that are shown; one after an exchange that is not over is hidden."""
    by_name = {exchange.message_id: exchange for exchange in found}
    hidden: set[str] = set()
    for exchange in found:
        before = by_name.get(exchange.after or "")
        if before is not None and (before.message_id in hidden or not is_over(before)):
            hidden.add(exchange.message_id)
    return [exchange for exchange in found if exchange.message_id not in hidden]


def closed_turn(message_id: str) -> str:
    """The id of the turn in which an exchange that waited was closed (A5)."""
    return f"{message_id}-closed"


def closing_stamp(exchange: Exchange) -> TurnStamp:
    """The stamp of events that close calls of this exchange."""
    return TurnStamp(
        message=exchange.message_id,
        turn=closed_turn(exchange.message_id),
        user_message=exchange.user_message_id,
        release=exchange.release,
        style=exchange.style,
        created_at=exchange.created_at,
        model=exchange.model or "",
        text_from_results=exchange.text_from_results,
    )
