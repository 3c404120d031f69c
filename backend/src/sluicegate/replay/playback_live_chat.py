"""Plays a recorded live chat: the server's frames and audio, each at its point of the recording."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sluicegate.errors import error_from_code
from sluicegate.live.outgoing_frame_queue import ChatEnded
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

    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.live.outgoing_frame_queue import LiveFrameQueue, Outgoing
    from sluicegate.replay.playback_state import PlaybackState
    from sluicegate.replay.recording import Recording
    from sluicegate.wire.frames import ResumeFrame
    from sluicegate.wire.live_frames import LiveClientFrame
    from sluicegate.wire.requests import ChatRequest


@dataclass(frozen=True, slots=True)
class Cue:
    """A frame or audio of the server, and what the client had sent before it.

    ``turn`` is the number of the client's last request, ``audio`` the bytes of its audio,
    ``frames`` the count of its other frames.
    """

    outgoing: Outgoing
    turn: int
    audio: int
    frames: int


def cues_of(recording: Recording) -> list[Cue]:
    """Return what the server sent besides responses, in order.

    Without `ReadyFrame`s: each connection gets one of its own.
    """
    return list(_cues(recording))


def _cues(recording: Recording) -> Iterator[Cue]:
    turn = received = frames = 0
    for entry in recording.entries:
        if entry.kind == "request" and entry.body.get("type") == "send":
            turn = entry.turn
        if entry.kind != "frame":
            continue
        audio = _audio_of(entry.body)
        if entry.dir == "client":
            received += 0 if audio is None else len(audio)
            frames += audio is None
        elif (outgoing := _frame_of(entry.body) if audio is None else audio) is not None:
            yield Cue(outgoing, turn, received, frames)


def _audio_of(body: Mapping[str, Any]) -> bytes | None:
    """Return the audio of a frame, empty if it was redacted; None for another frame."""
    if "audio" not in body:
        return None
    try:
        return base64.b64decode(str(body["audio"]), validate=True)
    except binascii.Error:
        return b""


def _frame_of(body: Mapping[str, Any]) -> Outgoing | None:
    if body.get("requestId") != LIVE_ID:
        return None
    if body.get("type") == "error":
        return ChatEnded(
            error_from_code(str(body.get("code")), str(body.get("errorText"))), "run_failed"
        )
    frame = parse_live_server_frame(body)
    return None if isinstance(frame, ReadyFrame) else frame


class PlayedTurns(Protocol):
    """Responds to the requests of a live chat from the recording."""

    async def start(
        self, request: ChatRequest, *, user: str, client: RequestingClient
    ) -> TurnReader:
        """Respond to the next request; raises the recorded `RequestError`."""

    async def resume(
        self, chat_id: str, *, user: str, client: RequestingClient
    ) -> TurnReader | None:
        """Return the recorded resumption, or None."""


class PlaybackLiveChat:
    """An `OpenChat` of a recording; a reconnected socket continues where playback stands."""

    def __init__(
        self, turns: PlayedTurns, chat: PlaybackState, cues: list[Cue], outbox: LiveFrameQueue
    ) -> None:
        self._turns = turns
        self._chat = chat
        self._cues = cues
        self._outbox = outbox
        outbox.send(ReadyFrame())
        self._play()

    @property
    def outbox(self) -> LiveFrameQueue:
        """The frames and audio that answer no request."""
        return self._outbox

    async def start(
        self, request: ChatRequest, *, user: str, client: RequestingClient
    ) -> TurnReader:
        """Respond to the next request as recorded; raises the recorded `RequestError`."""
        try:
            return await self._turns.start(request, user=user, client=client)
        finally:
            self._play()

    async def resume(
        self, frame: ResumeFrame, *, user: str, client: RequestingClient
    ) -> TurnReader | None:
        """Return the resumption that was recorded next, or None."""
        return await self._turns.resume(frame.chat_id, user=user, client=client)

    def receive_audio(self, pcm: bytes) -> None:
        """Count audio of the client."""
        self._chat.audio_received += len(pcm)
        self._play()

    def receive_frame(self, frame: LiveClientFrame) -> None:
        """Count a frame of the client."""
        self._chat.frames_received += 1
        self._play()

    async def close(self) -> None:
        """Do nothing: a recording holds no resources."""

    def _play(self) -> None:
        """Send the cues that are due."""
        chat = self._chat
        while chat.next_cue < len(self._cues):
            cue = self._cues[chat.next_cue]
            if (
                cue.turn > chat.played
                or cue.audio > chat.audio_received
                or cue.frames > chat.frames_received
            ):
                return
            chat.next_cue += 1
            if isinstance(cue.outgoing, bytes):
                self._outbox.send_audio(cue.outgoing)
                continue
            if isinstance(cue.outgoing, TurnFrame):
                chat.user_message_ids[cue.outgoing.message_id] = cue.outgoing.user_message_id
            elif isinstance(cue.outgoing, TranscriptFrame) and cue.outgoing.role == "user":
                chat.transcripts[cue.outgoing.message_id] = cue.outgoing.text
            self._outbox.send(cue.outgoing)
