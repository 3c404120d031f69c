"""Normalizes recordings: the same conversation gives the same file, byte by byte."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from sluicegate.replay.recording import Entry, Recording

if TYPE_CHECKING:
    from sluicegate.replay.recording import Kind

MOMENT: Final = 1_767_225_600.0
"""The value of every timestamp, in seconds since the epoch: the beginning of 2026."""

DEADLINE: Final = MOMENT + 86_400
"""The value of every deadline: a day later."""

_ISO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_ISO_MOMENT: Final = "2026-01-01T00:00:00.000+00:00"
_ISO_DEADLINE: Final = "2026-01-02T00:00:00.000+00:00"
_TIMESTAMP_KEYS: Final = frozenset(
    {"at", "claimedAt", "createdAt", "decidedAt", "finishedAt", "requestedAt", "timestamp"}
)
_DEADLINE_KEYS: Final = frozenset({"deadline", "expiresAt"})

_CLIENT_ID_KEYS: Final = frozenset({"id", "messageId", "userMessage"})
"""The keys of ids that the client chooses."""

_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_GENERATED_ID: Final = re.compile(
    rf"\b(?P<kind>adk|call|e|scripted)-{_UUID}|(?P<bare>{_UUID})|"
    r"\b(?P<message>msg|turn)-[0-9a-f]{16,24}|(?<=\(error )(?P<error>[0-9a-f]{8})(?=\))"
)
_ORDER: Final[tuple[Kind, ...]] = ("request", "event", "decision", "chunk", "frame")


class Names:
    """Replaces generated ids by ``adk-1``, ``msg-1``, … in order of appearance."""

    def __init__(self, recording: Recording) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._client_names: dict[str, str] = {recording.header.chat: "chat"}
        for turn in recording.turns:
            message = turn.request.get("message") or {}
            if message.get("role") == "user" and isinstance(message.get("id"), str):
                self._client_names.setdefault(message["id"], f"user-{len(self._client_names)}")
        self._chat = f"/chats/{recording.header.chat}/"

    def of(self, value: Any, key: str = "") -> Any:
        """Return a copy of a value with names, constant timestamps and constant deadlines."""
        if isinstance(value, dict):
            return {self.text(name): self.of(item, name) for name, item in value.items()}
        if isinstance(value, list):
            items = [self.of(item, key) for item in value]
            # ADK: this is a set, which has no order.
            return sorted(items) if key == "longRunningToolIds" else items
        if isinstance(value, str):
            if _ISO.fullmatch(value):
                return _ISO_DEADLINE if key in _DEADLINE_KEYS else _ISO_MOMENT
            return self._client_names[value] if self._is_client_id(key, value) else self.text(value)
        if isinstance(value, float) and key in _DEADLINE_KEYS:
            return DEADLINE
        return MOMENT if isinstance(value, float) and key in _TIMESTAMP_KEYS else value

    def _is_client_id(self, key: str, value: str) -> bool:
        return key in _CLIENT_ID_KEYS and value in self._client_names

    def text(self, text: str) -> str:
        """Return a text with names in place of generated ids."""
        return _GENERATED_ID.sub(self._name, text.replace(self._chat, "/chats/chat/"))

    def _name(self, found: re.Match[str]) -> str:
        if found[0] not in self._names:
            kind = found["kind"] or found["message"] or ("id" if found["bare"] else "")
            self._counts[kind] = count = self._counts.get(kind, 0) + 1
            self._names[found[0]] = f"{kind}-{count}" if kind else str(count)
        return self._names[found[0]]

    def resolve(self, value: Any) -> Any:
        """Return a copy of a value with the original ids; unknown names stay."""
        ids = {name: text for text, name in (self._names | self._client_names).items()}
        return _replaced(value, ids)


def normalized(recording: Recording, names: Names | None = None) -> Recording:
    """Return a recording with names for ids, constant times, and a fixed order within a turn.

    The recorded order depends on the speed of the reader. Here requests come first, then events,
    decisions, chunks and frames, each in their own order. ``names`` are the names to use.
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
