"""A recorded chat that is open live: frames and audio come again as the client says as much."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from sluicegate.errors import error_of
from sluicegate.live.outbox import Ended
from sluicegate.wire.live_frames import (
    LIVE_ID,
    ReadyFrame,
    TranscriptFrame,
    TurnFrame,
    parse_live_server_frame,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.live.outbox import Outbox
    from sluicegate.replay.player import PlaybackPosition
    from sluicegate.replay.recording import Recording
    from sluicegate.wire.frames import ResumeFrame
    from sluicegate.wire.live_frames import LiveClientFrame, LiveServerFrame
    from sluicegate.wire.requests import ChatRequest

FAILED: Final = 1011
"""Close code where the recorded run has ended."""

Piece: TypeAlias = "LiveServerFrame | Ended | bytes"


@dataclass(frozen=True, slots=True)
class Cue:
    """What the server sent, and what it sent that after.

    ``turn`` is the last request that was sent before, ``heard`` the bytes of audio, ``frames`` the
    count of other frames of the client.
    """

    piece: Piece
    turn: int
    heard: int
    frames: int


def cues_of(recording: Recording) -> list[Cue]:
    """What a server sent beside its answers, in order; each connection has a `ready` of its own."""
    return list(_cues(recording))


def _cues(recording: Recording) -> Iterator[Cue]:
    turn = heard = frames = 0
    for entry in recording.entries:
        if entry.kind == "request" and entry.body.get("type") == "send":
            turn = entry.turn
        if entry.kind != "frame":
            continue
        audio = _audio_of(entry.body)
        if entry.dir == "client":
            heard += 0 if audio is None else len(audio)
            frames += audio is None
        elif (piece := _piece_of(entry.body) if audio is None else audio) is not None:
            yield Cue(piece, turn, heard, frames)


def _audio_of(body: Mapping[str, Any]) -> bytes | None:
    """The audio of a frame, empty where it was taken out; None for another frame."""
    if "audio" not in body:
        return None
    try:
        return base64.b64decode(str(body["audio"]), validate=True)
    except binascii.Error:
        return b""


def _piece_of(body: Mapping[str, Any]) -> Piece | None:
    if body.get("requestId") != LIVE_ID:
        return None
    if body.get("type") == "error":
        return Ended(error_of(str(body.get("code")), str(body.get("errorText"))), FAILED)
    frame = parse_live_server_frame(body)
    return None if isinstance(frame, ReadyFrame) else frame


class Answers(Protocol):
    """What answers the requests of a live chat: the recording, request by request."""

    async def start(self, request: ChatRequest, *, user: str, client: Client) -> TurnReader:
        """Answer the next request; raises what was raised then."""

    async def resume(self, chat_id: str, *, user: str, client: Client) -> TurnReader | None:
        """Tell the running message, or None when nothing runs."""


class RecordedLive:
    """Has the face of a `LiveChat`; a socket that comes back goes on where the last one was."""

    def __init__(
        self, answers: Answers, place: PlaybackPosition, cues: list[Cue], out: Outbox
    ) -> None:
        """Take how far the chat has come, and what is sent in it."""
        self._answers = answers
        self._place = place
        self._cues = cues
        self.out = out
        out.frame(ReadyFrame())
        self._play()

    async def start(self, request: ChatRequest, *, user: str, client: Client) -> TurnReader:
        """Answer the next request as recorded; raises what was raised then."""
        try:
            return await self._answers.start(request, user=user, client=client)
        finally:
            self._play()

    async def resume(self, frame: ResumeFrame, *, user: str, client: Client) -> TurnReader | None:
        """Resume where that was recorded next, else nothing runs."""
        return await self._answers.resume(frame.chat_id, user=user, client=client)

    def hear(self, pcm: bytes) -> None:
        """Count what is heard."""
        self._place.heard += len(pcm)
        self._play()

    def take(self, frame: LiveClientFrame) -> None:
        """Count a frame."""
        self._place.frames += 1
        self._play()

    async def close(self) -> None:
        """There is nothing to let go of."""

    def _play(self) -> None:
        """Send what was sent by now."""
        place = self._place
        while place.cue < len(self._cues):
            cue = self._cues[place.cue]
            if cue.turn > place.played or cue.heard > place.heard or cue.frames > place.frames:
                return
            place.cue += 1
            if isinstance(cue.piece, bytes):
                self.out.audio(cue.piece)
                continue
            if isinstance(cue.piece, TurnFrame):
                place.questions[cue.piece.message_id] = cue.piece.user_message_id
            elif isinstance(cue.piece, TranscriptFrame) and cue.piece.role == "user":
                place.spoken[cue.piece.message_id] = cue.piece.text
            self.out.frame(cue.piece)
