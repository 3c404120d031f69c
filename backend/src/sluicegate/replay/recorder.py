"""Writes what happens in chats into recordings, one file for each chat."""

from __future__ import annotations

import base64
import hashlib
import logging
import os
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
from sluicegate.replay.redaction import Redaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from google.adk.events.event import Event

    from sluicegate.core.approvals import ApprovalRow, ApprovalState
    from sluicegate.core.keys import ChatKey
    from sluicegate.replay.recording import Direction, Kind

logger = logging.getLogger("sluicegate")

_AT_ONCE: Final = 64 * 1024
"""Characters after which lines are written although the turn goes on."""

_REMEMBERED: Final = 1_000
"""Chats whose place is kept in memory; that of another is read from its file."""


@dataclass(slots=True)
class _Spool:
    """A file, how far it has come, and the lines that are not in it yet."""

    path: Path
    seq: int = 0
    turn: int = 0
    at: float | None = None
    lines: list[str] = field(default_factory=list)
    size: int = 0
    states: dict[str, ApprovalState] = field(default_factory=dict)
    written: int = 0
    """Bytes of the file when this process last wrote to it or read it."""
    is_broken: bool = False


class FileRecorder:
    """A tape that writes to a folder, for its owner only.

    The files are named by the chat; users who chose the same chat id have files of their own.
    Neither the user's id nor any header is recorded, but for the client's major and release. A
    failure to write ends the recording of that chat with one warning, never a turn.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        redact: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take a folder, which is made if need be, and the names of fields that are taken out.

        ``clock`` tells seconds, ``now`` the moment that stands in the header.

        Raises:
            RecordingError: The folder cannot be used.
            ConfigurationError: A name is empty.
        """
        self._folder = Path(folder)
        self._redaction = Redaction(redact)
        self._clock = clock
        self._now = now
        self._spools: OrderedDict[ChatKey, _Spool] = OrderedDict()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as fault:
            raise self._unusable(fault) from fault
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise RecordingError(f"Recordings cannot be written to {self._folder}; choose another.")

    def request(self, chat: ChatKey, asked: Mapping[str, Any]) -> int:
        """Note a request; see `Tape`. A chat does not begin with a stop."""
        self._catch_up(chat)
        spool = self._spool(chat)
        if not spool.seq and asked.get("type") == "stop":
            del self._spools[chat]
            return 0
        spool.turn += 1
        self._note(spool, "client", "request", self._json(asked))
        return spool.turn

    def chunk(self, chat: ChatKey, turn: int, text: str) -> None:
        """Note a chunk; see `Tape`."""
        self._note(self._spool(chat), "server", "chunk", self._redaction.of_text(text), turn=turn)

    def frame(
        self,
        chat: ChatKey,
        body: Mapping[str, Any] | bytes,
        *,
        sender: Literal["client", "server"],
    ) -> None:
        """Note a frame; see `Tape`. Audio stands there as ``{"audio": BASE64}``."""
        if isinstance(body, bytes):
            body = {"audio": base64.b64encode(body).decode()}
        self._note(self._spool(chat), sender, "frame", self._json(body))

    def approvals(self, chat: ChatKey, rows: Sequence[ApprovalRow]) -> None:
        """Note rows that are new or have changed; see `Tape`."""
        spool = self._spool(chat)
        for row in rows:
            if spool.states.get(row.approval_id) != row.state:
                spool.states[row.approval_id] = row.state
                self._note(spool, direction_of(row), "decision", self._json(body_of(row)))

    def event(self, chat: ChatKey, event: Event) -> None:
        """Note an event, in the form ADK stores it; see `Tape`. Spoken audio is left out."""
        body = event.model_dump(mode="json", by_alias=True, exclude_none=True)
        _drop_audio(body)
        by: Direction = "client" if event.author == "user" else "model"
        if by == "model" and event.get_function_responses():
            by = "tool"
        self._note(self._spool(chat), by, "event", self._json(body))

    def flush(self, chat: ChatKey) -> None:
        """Write what is noted; see `Tape`."""
        spool = self._spools.get(chat)
        if spool is not None:
            self._write(spool)

    def close(self) -> None:
        """Write what is noted of all chats."""
        for spool in self._spools.values():
            self._write(spool)

    def path(self, chat: ChatKey) -> Path:
        """The file of a chat."""
        whose = hashlib.sha256(f"{chat.app}\0{chat.user}\0{chat.chat}".encode()).hexdigest()
        return self._folder / f"{chat.chat.replace(':', '_')}.{whose[:8]}.jsonl"

    def _json(self, body: Any) -> str:
        return compact(self._redaction.of(body))

    def _note(
        self, spool: _Spool, by: Direction, kind: Kind, body: str, *, turn: int | None = None
    ) -> None:
        if spool.is_broken:
            return
        now = self._clock()
        spool.seq += 1
        entry = Entry(
            seq=spool.seq,
            turn=spool.turn if turn is None else turn,
            dir=by,
            kind=kind,
            delta_ms=0 if spool.at is None else max(0, round((now - spool.at) * 1000)),
            body={},
        )
        spool.at = now
        line = compact(entry.model_dump()).removesuffix("{}}") + body + "}"
        spool.lines.append(line)
        spool.size += len(line)
        if spool.size > _AT_ONCE:
            self._write(spool)

    def _spool(self, chat: ChatKey) -> _Spool:
        spool = self._spools.get(chat)
        if spool is None:
            spool = self._spools[chat] = self._open(chat)
            if len(self._spools) > _REMEMBERED:
                _, oldest = self._spools.popitem(last=False)
                self._write(oldest)
        self._spools.move_to_end(chat)
        return spool

    def _catch_up(self, chat: ChatKey) -> None:
        """Forget a place that another process, which shares the folder, has gone on from."""
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
                known = load_recording(path)
                _cut_torn_line(path)
            except (RecordingError, OSError):
                # What cannot be read is not added to.
                number += 1
                path = path.with_suffix(f".{number}.jsonl")
                continue
            states = {body["approvalId"]: body["state"] for body in known.of_kind("decision")}
            last = max((entry.turn for entry in known.entries), default=0)
            size = _size(path)
            return _Spool(path, seq=len(known.entries), turn=last, states=states, written=size)
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
        except OSError as fault:
            spool.is_broken = True
            logger.warning(
                "a chat is not recorded any more: %s", (fault.strerror or "unknown reason").lower()
            )

    def _unusable(self, fault: OSError) -> RecordingError:
        reason = (fault.strerror or "unknown reason").lower()
        return RecordingError(f"Recordings cannot be written to {self._folder}: {reason}.")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _cut_torn_line(path: Path) -> None:
    """Take away what a crash has left of a line, so that the next one begins on its own."""
    with path.open("rb+") as file:
        data = file.read()
        file.truncate(data.rfind(b"\n") + 1)


def _drop_audio(body: dict[str, Any]) -> None:
    for part in body.get("content", {}).get("parts", ()):
        blob = part.get("inlineData", {})
        if str(blob.get("mimeType", "")).startswith("audio/"):
            blob["data"] = ""
