"""What goes out to a live socket beside the answers to requests; audio among it can be cut."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from sluicegate.wire.live_frames import LIVE_ID, LiveServerFrame, live_frame_members

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any

    from sluicegate.errors import RequestError

    FrameRecorder: TypeAlias = Callable[[dict[str, Any] | bytes], None]
    """Is told what goes out: the members of a frame, or audio."""

MAX_AUDIO: Final = 16 * 1024 * 1024
"""Bytes of audio that wait for a client which does not read: over five minutes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The chat is not live any more: what the client is told, and how its socket is closed."""

    error: RequestError
    close_code: int


if TYPE_CHECKING:
    Outgoing: TypeAlias = LiveServerFrame | Ended | bytes
    """A frame, the end, or PCM16 at 24 kHz."""


class Outbox:
    """A queue with one reader; audio is dropped where nobody plays it."""

    def __init__(self, *, with_audio: bool, note: FrameRecorder | None = None) -> None:
        """``with_audio``: somebody plays it; ``note`` is told each piece before it is sent."""
        self.with_audio = with_audio
        self._note = note
        self._pieces: deque[Outgoing] = deque()
        self._audio = 0
        self._more = asyncio.Event()

    @property
    def behind(self) -> int:
        """Bytes of audio that have not gone out."""
        return self._audio

    def frame(self, frame: LiveServerFrame | Ended) -> None:
        """Send a frame, or say that it was the last one."""
        self._pieces.append(frame)
        self._more.set()

    def audio(self, pcm: bytes) -> None:
        """Send audio; what is too much for the client to take is lost, the newest first."""
        if self.with_audio and pcm and self._audio + len(pcm) <= MAX_AUDIO:
            self._audio += len(pcm)
            self._pieces.append(pcm)
            self._more.set()

    def cut(self) -> None:
        """Take back the audio that has not gone out."""
        self._pieces = deque(piece for piece in self._pieces if not isinstance(piece, bytes))
        self._audio = 0

    async def pieces(self) -> AsyncIterator[Outgoing]:
        """Everything in order, as it comes."""
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                if isinstance(piece, bytes):
                    self._audio -= len(piece)
                if self._note is not None:
                    self._note(_noted(piece))
                yield piece
            self._more.clear()
            await self._more.wait()


def _noted(piece: Outgoing) -> dict[str, Any] | bytes:
    if isinstance(piece, bytes):
        return piece
    if isinstance(piece, Ended):
        error = {"errorText": piece.error.message, "code": piece.error.code}
        return {"type": "error", "requestId": LIVE_ID, **error}
    return live_frame_members(piece)
