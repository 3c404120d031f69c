"""Recordings: JSON Lines, a header and then what happened in one chat, in order.

Every line after the header is an entry ``{seq, turn, dir, kind, delta_ms, body}``: ``seq`` counts
from 1 without gaps, ``turn`` is the number of the client's request that it belongs to, ``dir`` says
from whom it comes, ``delta_ms`` are whole milliseconds since the entry before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sluicegate.core.approvals import ApprovalRow
from sluicegate.core.keys import CallKey, ChatKey
from sluicegate.errors import RecordingError
from sluicegate.replay.scenario import predicate
from sluicegate.wire.live_frames import LIVE_ID

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from sluicegate.core.approvals import ApprovalState

FORMAT: Final = "sluicegate-recording"
VERSION: Final = 1

Direction = Literal["client", "server", "model", "tool"]
Kind = Literal["request", "chunk", "frame", "decision", "event"]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


_Found = TypeVar("_Found", bound=_Line)


class Header(_Line):
    """The first line: which format, when it was made, of what, and which fields were taken out."""

    format: Literal["sluicegate-recording"] = FORMAT
    version: Literal[1] = VERSION
    created: str
    redaction: list[str] = []
    app: str
    chat: str


class Entry(_Line):
    """One thing that happened."""

    seq: int = Field(ge=1)
    turn: int = Field(ge=0)
    dir: Direction
    kind: Kind
    delta_ms: int = Field(ge=0)
    body: dict[str, Any]


@dataclass(slots=True)
class RecordedTurn:
    """A request, and what the client was sent for it.

    ``asked`` is the body of the request, ``chunks`` those of the response as JSON objects with the
    milliseconds each came after the one before, ``refusal`` the error frame in their place.
    """

    number: int
    asked: dict[str, Any]
    chunks: list[dict[str, Any]] = field(default_factory=list)
    pauses: list[int] = field(default_factory=list)
    refusal: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """``send``, ``resume`` or ``stop``."""
        return str(self.asked.get("type"))


@dataclass(frozen=True, slots=True)
class Recording:
    """A whole file."""

    header: Header
    entries: Sequence[Entry]

    @property
    def turns(self) -> list[RecordedTurn]:
        """The requests in order, each with its response."""
        found: dict[int, RecordedTurn] = {}
        for entry in self.entries:
            if entry.kind == "request":
                found[entry.turn] = RecordedTurn(entry.turn, entry.body)
            turn = found.get(entry.turn)
            if turn is None:
                continue
            if entry.kind == "chunk":
                turn.chunks.append(entry.body)
                turn.pauses.append(entry.delta_ms)
            elif _is_refusal(entry):
                turn.refusal = entry.body
        return list(found.values())

    def of_kind(self, kind: Kind) -> list[dict[str, Any]]:
        """The bodies of all entries of a kind."""
        return [entry.body for entry in self.entries if entry.kind == kind]

    def text(self) -> str:
        """The file."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for line in (self.header, *self.entries):
            yield compact(line.model_dump())


def _is_refusal(entry: Entry) -> bool:
    """Whether an entry refuses its request, rather than the live run beside it."""
    body = entry.body
    return (
        entry.kind == "frame" and body.get("type") == "error" and body.get("requestId") != LIVE_ID
    )


def compact(value: Any) -> str:
    """JSON without a space, as every line of a recording is written."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def load_recording(path: str | os.PathLike[str]) -> Recording:
    """Read a recording; a last line that was cut while it was written is left out.

    Raises:
        RecordingError: The file cannot be read, or is no recording of this version; one sentence
            names the file and the line.
    """
    file = Path(path)
    try:
        text = file.read_bytes().decode()
    except OSError as fault:
        reason = (fault.strerror or "unknown reason").lower()
        raise RecordingError(f"The recording {file} cannot be read: {reason}.") from fault
    except UnicodeDecodeError as fault:
        raise RecordingError(f"The recording {file} is not UTF-8 text.") from fault
    return parse_recording(text, name=str(file))


def parse_recording(text: str, *, name: str = "recording") -> Recording:
    """Read a recording from its text; ``name`` stands for the file in faults.

    Raises:
        RecordingError: As for `load_recording`.
    """
    # What stands behind the last line break was cut.
    lines = text.split("\n")[:-1] or [text]
    if not text:
        raise RecordingError(f"The recording {name} is empty.")
    header = _parsed(Header, lines[0], f"The recording {name}, line 1")
    entries: list[Entry] = []
    for number, line in enumerate(lines[1:], start=2):
        where = f"The recording {name}, line {number}"
        entry = _parsed(Entry, line, where)
        if entry.seq != len(entries) + 1:
            raise RecordingError(f"{where}: seq is {entry.seq} and should be {len(entries) + 1}.")
        entries.append(entry)
    return Recording(header, entries)


def _parsed(kind: type[_Found], line: str, where: str) -> _Found:
    try:
        return kind.model_validate_json(line)
    except ValidationError as faults:
        fault = faults.errors()[0]
        if fault["type"] == "json_invalid":
            raise RecordingError(f"{where} is not JSON.") from None
        if kind is Header:
            sentence = f"{where} is not the header of a {FORMAT} of version {VERSION}."
            raise RecordingError(sentence) from None
        place = ".".join(map(str, fault["loc"])) or "the line"
        raise RecordingError(f"{where}: {place} {predicate(fault)}.") from None


_CLIENT: Final[frozenset[ApprovalState]] = frozenset({"approved", "denied"})
_TOOL: Final[frozenset[ApprovalState]] = frozenset({"executing", "executed", "failed", "unknown"})

_TOLD: Final = {
    "approvalId": "approval_id",
    "tool": "tool",
    "requestedAt": "requested_at",
    "deadline": "deadline",
    "state": "state",
    "answer": "answer",
    "reason": "reason",
    "edits": "edits",
    "grantId": "grant_id",
    "decidedAt": "decided_at",
    "claimedAt": "claimed_at",
    "outcome": "outcome",
    "finishedAt": "finished_at",
}
"""Not who decided and who claimed; nor the hash, which would tell of redacted arguments."""


def direction_of(row: ApprovalRow) -> Direction:
    """From whom the state of a row comes."""
    return "client" if row.state in _CLIENT else "tool" if row.state in _TOOL else "server"


def body_of(row: ApprovalRow) -> dict[str, Any]:
    """A row without who decided and who claimed; what is not known is left out."""
    told = {key: getattr(row, name) for key, name in _TOLD.items()}
    known = {key: value for key, value in told.items() if value is not None}
    return {"invocation": row.key.invocation, "call": row.key.call, **known}


def row_of(body: Mapping[str, Any], chat: ChatKey) -> ApprovalRow:
    """The row that a decision tells of."""
    key = CallKey(*chat, str(body["invocation"]), str(body["call"]))
    known = {name: body[key] for key, name in _TOLD.items() if key in body}
    return ApprovalRow(key=key, args_hash="", **known)
