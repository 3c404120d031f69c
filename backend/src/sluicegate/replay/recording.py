"""Recordings of one chat: JSON Lines, a header and then the entries in order.

Every line after the header is an entry ``{seq, turn, dir, kind, delta_ms, body}``: ``seq`` counts
from 1 without gaps, ``turn`` is the number of the client's request that it belongs to, ``dir`` is
its source, ``delta_ms`` are whole milliseconds since the previous entry.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sluicegate.core.approvals import ApprovalRow
from sluicegate.core.call_keys import CallKey
from sluicegate.errors import RecordingError
from sluicegate.replay.scenario import predicate
from sluicegate.wire.live_frames import LIVE_ID

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from sluicegate.core.approvals import ApprovalState
    from sluicegate.core.chat_and_turn_keys import ChatKey

FORMAT: Final = "sluicegate-recording"
VERSION: Final = 1

Direction = Literal["client", "server", "model", "tool"]
Kind = Literal["request", "chunk", "frame", "decision", "event"]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


_L = TypeVar("_L", bound=_Line)


class Header(_Line):
    """The first line: format, time of creation, chat, and the names of redacted fields."""

    format: Literal["sluicegate-recording"] = FORMAT
    version: Literal[1] = VERSION
    created: str
    redaction: list[str] = []
    app: str
    chat: str


class Entry(_Line):
    """One request, chunk, frame, decision or event."""

    seq: int = Field(ge=1)
    turn: int = Field(ge=0)
    dir: Direction
    kind: Kind
    delta_ms: int = Field(ge=0)
    body: dict[str, Any]


@dataclass(slots=True)
class RecordedTurn:
    """A request and its response.

    ``request`` is the body of the request, ``chunks`` are those of the response as JSON objects,
    ``pauses`` the milliseconds before each, ``refusal`` is the error frame in place of chunks.
    """

    number: int
    request: dict[str, Any]
    chunks: list[dict[str, Any]] = field(default_factory=list)
    pauses: list[int] = field(default_factory=list)
    refusal: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """``send``, ``resume`` or ``stop``."""
        return str(self.request.get("type"))


@dataclass(frozen=True, slots=True)
class Recording:
    """The header and the entries of one file."""

    header: Header
    entries: Sequence[Entry]

    @property
    def turns(self) -> list[RecordedTurn]:
        """The requests in order, each with its response."""
        turns: dict[int, RecordedTurn] = {}
        for entry in self.entries:
            if entry.kind == "request":
                turns[entry.turn] = RecordedTurn(entry.turn, entry.body)
            turn = turns.get(entry.turn)
            if turn is None:
                continue
            if entry.kind == "chunk":
                turn.chunks.append(entry.body)
                turn.pauses.append(entry.delta_ms)
            elif _is_refusal(entry):
                turn.refusal = entry.body
        return list(turns.values())

    def of_kind(self, kind: Kind) -> list[dict[str, Any]]:
        """Return the bodies of all entries of a kind."""
        return [entry.body for entry in self.entries if entry.kind == kind]

    def text(self) -> str:
        """Return the text of the file."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for line in (self.header, *self.entries):
            yield compact(line.model_dump())


def _is_refusal(entry: Entry) -> bool:
    """Whether an entry refuses its request; an error of the live chat does not."""
    body = entry.body
    return (
        entry.kind == "frame" and body.get("type") == "error" and body.get("requestId") != LIVE_ID
    )


def compact(value: Any) -> str:
    """Return JSON without spaces, as in every line of a recording."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def load_recording(path: str | os.PathLike[str]) -> Recording:
    """Read a recording; an incomplete last line is ignored.

    Raises:
        RecordingError: The file cannot be read, or is not a recording of this version; one
            sentence names the file and the line.
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
    """Read a recording from its text; errors call the file ``name``.

    Raises:
        RecordingError: As for `load_recording`.
    """
    # The text after the last line break is an incomplete line.
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


def _parsed(kind: type[_L], line: str, where: str) -> _L:
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


_BY_CLIENT: Final[frozenset[ApprovalState]] = frozenset({"approved", "denied"})
_BY_TOOL: Final[frozenset[ApprovalState]] = frozenset(
    {"executing", "executed", "failed", "unknown"}
)

_COLUMNS: Final = {
    "approvalId": "approval_id",
    "tool": "tool",
    "agent": "agent",
    "requestedAt": "requested_at",
    "deadline": "deadline",
    "state": "state",
    "answer": "answer",
    "reason": "reason",
    "edits": "edits",
    "payload": "payload",
    "editedPayload": "edited_payload",
    "grantId": "grant_id",
    "decidedAt": "decided_at",
    "claimedAt": "claimed_at",
    "outcome": "outcome",
    "finishedAt": "finished_at",
}
"""Without the approver and the owner of the claim, and without the hash: it depends on redacted
arguments."""


def direction_of(row: ApprovalRow) -> Direction:
    """Return the source of a row's state."""
    return "client" if row.state in _BY_CLIENT else "tool" if row.state in _BY_TOOL else "server"


def body_of(row: ApprovalRow) -> dict[str, Any]:
    """Return the body of a decision: the columns of a row that are set."""
    columns = {key: getattr(row, name) for key, name in _COLUMNS.items()}
    present = {key: value for key, value in columns.items() if value is not None}
    return {"invocation": row.key.invocation, "call": row.key.call, **present}


def row_of(body: Mapping[str, Any], chat: ChatKey) -> ApprovalRow:
    """Return the row of a decision."""
    key = CallKey(*chat, str(body["invocation"]), str(body["call"]))
    columns = {name: body[key] for key, name in _COLUMNS.items() if key in body}
    return ApprovalRow(key=key, args_hash="", **columns)
