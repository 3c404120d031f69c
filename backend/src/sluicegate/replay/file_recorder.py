"""Records chats into files, one for each chat."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import re
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from sluicegate.errors import RecordingError
from sluicegate.replay.recording import (
    Entry,
    Header,
    body_of,
    compact,
    direction_of,
    load_recording,
)
from sluicegate.replay.redaction import Redaction, StreamedCalls
from sluicegate.stores.private_files import make_private, private_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from google.adk.events.event import Event

    from sluicegate.core.approvals import ApprovalRow, ApprovalState
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.replay.recording import Direction, Kind

logger = logging.getLogger("sluicegate")

_RECORDING: Final = re.compile(r".+\.[0-9a-f]{8}(\.[0-9]+)*\.jsonl")
"""The names of recordings; see `FileRecorder.path`."""

_BUFFER_CHARACTERS: Final = 64 * 1024
"""Characters of buffered lines that are written before the turn ends."""


@dataclass(slots=True)
class _Spool:
    """A file, the position of its last entry, and the lines to write."""

    path: Path
    seq: int = 0
    turn: int = 0
    at: float | None = None
    lines: list[str] = field(default_factory=list)
    size: int = 0
    states: dict[str, ApprovalState] = field(default_factory=dict)
    streamed: StreamedCalls = field(default_factory=dict)
    written: int = 0
    """Bytes of the file when this process last wrote to it or read it."""
    is_broken: bool = False


class FileRecorder:
    """A `Recorder` that writes to a folder, with files that only their owner may read.

    The files are named after the chat; users with the same chat id have separate files. Neither the
    user's id nor any header is recorded, except the client's major version and release policy. A
    failure to write ends the recording of that chat with one warning, never a turn.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        redact: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        max_open: int = 1_000,
    ) -> None:
        """``folder`` is created if it does not exist; ``redact`` are names of fields to redact.

        Recordings that are there become private to their owner, and so does a folder that holds
        nothing else.

        ``clock`` returns seconds, ``now`` the time for the header. The positions of
        ``max_open`` chats are kept in memory; that of another is read from its file.

        Raises:
            RecordingError: The folder cannot be used.
            ConfigurationError: A name is empty.
        """
        self._folder = Path(folder)
        self._redaction = Redaction(redact)
        self._clock = clock
        self._now = now
        self._max_open = max_open
        self._spools: OrderedDict[ChatKey, _Spool] = OrderedDict()
        try:
            private_folder(self._folder.absolute(), lambda name: bool(_RECORDING.fullmatch(name)))
            for path in self._folder.iterdir():
                if _RECORDING.fullmatch(path.name):
                    make_private(path)
        except OSError as error:
            raise self._unusable(error) from error
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise RecordingError(f"Recordings cannot be written to {self._folder}; choose another.")

    def request(self, chat: ChatKey, body: Mapping[str, Any]) -> int:
        """Record a request; see `Recorder`. A stop does not begin a recording."""
        self._drop_stale(chat)
        spool = self._spool(chat)
        if not spool.seq and body.get("type") == "stop":
            del self._spools[chat]
            return 0
        spool.turn += 1
        message = body.get("message")
        if isinstance(message, dict):
            body = {**body, "message": _without_approvers(message, "metadata")}
        self._append(spool, "client", "request", self._json(body))
        return spool.turn

    def chunk(self, chat: ChatKey, turn: int, text: str) -> None:
        """Record a chunk; see `Recorder`."""
        if '"decidedBy"' in text:
            text = compact(_without_approvers(json.loads(text), "messageMetadata"))
        spool = self._spool(chat)
        redacted = self._redaction.of_chunk(text, turn, spool.streamed)
        self._append(spool, "server", "chunk", redacted, turn=turn)

    def frame(
        self,
        chat: ChatKey,
        body: Mapping[str, Any] | bytes,
        *,
        sender: Literal["client", "server"],
    ) -> None:
        """Record a frame; see `Recorder`. Audio is recorded as ``{"audio": BASE64}``."""
        if isinstance(body, bytes):
            body = {"audio": base64.b64encode(body).decode()}
        self._append(self._spool(chat), sender, "frame", self._json(body))

    def approvals(self, chat: ChatKey, rows: Sequence[ApprovalRow]) -> None:
        """Record rows that are new or have changed; see `Recorder`."""
        spool = self._spool(chat)
        for row in rows:
            if spool.states.get(row.approval_id) != row.state:
                spool.states[row.approval_id] = row.state
                self._append(spool, direction_of(row), "decision", self._json(body_of(row)))

    def event(self, chat: ChatKey, event: Event) -> None:
        """Record an event in the form ADK stores it; see `Recorder`. Audio is omitted."""
        body = event.model_dump(mode="json", by_alias=True, exclude_none=True)
        _drop_audio(body)
        direction: Direction = "client" if event.author == "user" else "model"
        if direction == "model" and event.get_function_responses():
            direction = "tool"
        self._append(self._spool(chat), direction, "event", self._json(body))

    def flush(self, chat: ChatKey) -> None:
        """Write the buffered lines; see `Recorder`."""
        spool = self._spools.get(chat)
        if spool is not None:
            self._write(spool)

    def close(self) -> None:
        """Write the buffered lines of all chats."""
        for spool in self._spools.values():
            self._write(spool)

    def path(self, chat: ChatKey) -> Path:
        """Return the file of a chat."""
        digest = hashlib.sha256(f"{chat.app}\0{chat.user}\0{chat.chat}".encode()).hexdigest()
        return self._folder / f"{chat.chat.replace(':', '_')}.{digest[:8]}.jsonl"

    def _json(self, body: Any) -> str:
        return compact(self._redaction.of(body))

    def _append(
        self, spool: _Spool, direction: Direction, kind: Kind, body: str, *, turn: int | None = None
    ) -> None:
        if spool.is_broken:
            return
        now = self._clock()
        spool.seq += 1
        entry = Entry(
            seq=spool.seq,
            turn=spool.turn if turn is None else turn,
            dir=direction,
            kind=kind,
            delta_ms=0 if spool.at is None else max(0, round((now - spool.at) * 1000)),
            body={},
        )
        spool.at = now
        line = compact(entry.model_dump()).removesuffix("{}}") + body + "}"
        spool.lines.append(line)
        spool.size += len(line)
        if spool.size > _BUFFER_CHARACTERS:
            self._write(spool)

    def _spool(self, chat: ChatKey) -> _Spool:
        spool = self._spools.get(chat)
        if spool is None:
            spool = self._spools[chat] = self._open(chat)
            if len(self._spools) > self._max_open:
                _, oldest = self._spools.popitem(last=False)
                self._write(oldest)
        self._spools.move_to_end(chat)
        return spool

    def _drop_stale(self, chat: ChatKey) -> None:
        """Drop a position if another process has written to the file since."""
        spool = self._spools.get(chat)
        if spool is None or spool.lines or spool.is_broken:
            return
        if _size(spool.path) != spool.written:
            del self._spools[chat]

    def _open(self, chat: ChatKey) -> _Spool:
        path = self.path(chat)
        number = 1
        while path.exists():
            try:
                recording = load_recording(path)
                _cut_torn_line(path)
            except (RecordingError, OSError):
                # A file that cannot be read is not appended to.
                number += 1
                path = path.with_suffix(f".{number}.jsonl")
                continue
            states = {body["approvalId"]: body["state"] for body in recording.of_kind("decision")}
            last = max((entry.turn for entry in recording.entries), default=0)
            size = _size(path)
            return _Spool(path, seq=len(recording.entries), turn=last, states=states, written=size)
        spool = _Spool(path)
        header = Header(
            created=self._now().isoformat(timespec="milliseconds"),
            redaction=list(self._redaction.names),
            app=chat.app,
            chat=chat.chat,
        )
        spool.lines.append(compact(header.model_dump()))
        return spool

    def _write(self, spool: _Spool) -> None:
        if not (spool.lines and spool.seq) or spool.is_broken:
            return
        lines, spool.lines, spool.size = spool.lines, [], 0
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            with open(os.open(spool.path, flags, 0o600), "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
            spool.written = _size(spool.path)
        except OSError as error:
            spool.is_broken = True
            logger.warning(
                "a chat is not recorded any more: %s", (error.strerror or "unknown reason").lower()
            )

    def _unusable(self, error: OSError) -> RecordingError:
        reason = (error.strerror or "unknown reason").lower()
        return RecordingError(f"Recordings cannot be written to {self._folder}: {reason}.")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _cut_torn_line(path: Path) -> None:
    """Remove the incomplete last line that a crash has left."""
    with path.open("rb+") as file:
        data = file.read()
        file.truncate(data.rfind(b"\n") + 1)


def _without_approvers(holder: dict[str, Any], key: str) -> dict[str, Any]:
    """A message or a chunk without the ids of the users who decided, in its metadata ``key``."""
    metadata = holder.get(key)
    approvals = metadata.get("approvals") if isinstance(metadata, dict) else None
    if not (isinstance(metadata, dict) and isinstance(approvals, dict)):
        return holder
    traces = {
        name: {field: value for field, value in trace.items() if field != "decidedBy"}
        if isinstance(trace, dict)
        else trace
        for name, trace in approvals.items()
    }
    return {**holder, key: {**metadata, "approvals": traces}}


def _drop_audio(body: dict[str, Any]) -> None:
    for part in body.get("content", {}).get("parts", ()):
        blob = part.get("inlineData", {})
        if str(blob.get("mimeType", "")).startswith("audio/"):
            blob["data"] = ""
