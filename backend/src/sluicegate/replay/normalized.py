"""A recording without chance and time: the same conversation is the same file, to the letter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from sluicegate.replay.recording import Entry, Recording

if TYPE_CHECKING:
    from sluicegate.replay.recording import Kind

MOMENT: Final = 1_767_225_600.0
"""Every moment, in seconds since the epoch: the beginning of 2026."""

DEADLINE: Final = MOMENT + 86_400
"""Every deadline: a day later."""

_ISO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_ISO_MOMENT: Final = "2026-01-01T00:00:00.000+00:00"
_ISO_DEADLINE: Final = "2026-01-02T00:00:00.000+00:00"
_MOMENTS: Final = frozenset(
    {"at", "claimedAt", "createdAt", "decidedAt", "finishedAt", "requestedAt", "timestamp"}
)
_DEADLINES: Final = frozenset({"deadline", "expiresAt"})

_CLIENTS: Final = frozenset({"id", "messageId", "userMessage"})
"""Keys under which the ids stand that a client chooses."""

_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_BY_CHANCE: Final = re.compile(
    rf"\b(?P<kind>adk|call|e|scripted)-{_UUID}|(?P<bare>{_UUID})|"
    r"\b(?P<message>msg|turn)-[0-9a-f]{16,24}|(?<=\(error )(?P<error>[0-9a-f]{8})(?=\))"
)
_ORDER: Final[tuple[Kind, ...]] = ("request", "event", "decision", "chunk", "frame")


class Names:
    """Gives ids that chance has made the names ``adk-1``, ``msg-1``, … in order of appearance."""

    def __init__(self, recording: Recording) -> None:
        """Learn what the client has named: its chat, its messages."""
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._given: dict[str, str] = {recording.header.chat: "chat"}
        for turn in recording.turns:
            message = turn.asked.get("message") or {}
            if message.get("role") == "user" and isinstance(message.get("id"), str):
                self._given.setdefault(message["id"], f"user-{len(self._given)}")
        self._chat = f"/chats/{recording.header.chat}/"

    def of(self, value: Any, key: str = "") -> Any:
        """A copy of a value with these names, and with the one moment and the one deadline."""
        if isinstance(value, dict):
            return {self.text(name): self.of(item, name) for name, item in value.items()}
        if isinstance(value, list):
            found = [self.of(item, key) for item in value]
            # ADK: a set, which has no order.
            return sorted(found) if key == "longRunningToolIds" else found
        if isinstance(value, str):
            if _ISO.fullmatch(value):
                return _ISO_DEADLINE if key in _DEADLINES else _ISO_MOMENT
            return self._given[value] if self._is_given(key, value) else self.text(value)
        if isinstance(value, float) and key in _DEADLINES:
            return DEADLINE
        return MOMENT if isinstance(value, float) and key in _MOMENTS else value

    def _is_given(self, key: str, value: str) -> bool:
        return key in _CLIENTS and value in self._given

    def text(self, text: str) -> str:
        """The same for ids that stand in a text."""
        return _BY_CHANCE.sub(self._name, text.replace(self._chat, "/chats/chat/"))

    def _name(self, found: re.Match[str]) -> str:
        if found[0] not in self._names:
            kind = found["kind"] or found["message"] or ("id" if found["bare"] else "")
            self._counts[kind] = count = self._counts.get(kind, 0) + 1
            self._names[found[0]] = f"{kind}-{count}" if kind else str(count)
        return self._names[found[0]]

    def back(self, value: Any) -> Any:
        """The ids again that names stand for; a name that nothing has is left as it is."""
        ids = {name: text for text, name in (self._names | self._given).items()}
        return _replaced(value, ids)


def normalized(recording: Recording, names: Names | None = None) -> Recording:
    """The recording with names for ids, one moment, and within a turn one order.

    How fast a reader is decides what stands before what, so requests come first, then events,
    decisions, chunks and frames, each in their own order. ``names`` are those that are used.
    """
    names = names or Names(recording)
    ordered = sorted(recording.entries, key=lambda each: (each.turn, _ORDER.index(each.kind)))
    entries = [
        Entry(
            seq=number,
            turn=entry.turn,
            dir=entry.dir,
            kind=entry.kind,
            delta_ms=0,
            body=names.of(entry.body),
        )
        for number, entry in enumerate(ordered, start=1)
    ]
    header = recording.header.model_copy(
        update={"created": _ISO_MOMENT, "chat": names.of(recording.header.chat, "id")}
    )
    return Recording(header, entries)


def _replaced(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {ids.get(key, key): _replaced(item, ids) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, ids) for item in value]
    return ids.get(value, value) if isinstance(value, str) else value
