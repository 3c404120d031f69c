"""Frames and audio for a live client that answer no request; audio can be discarded unsent."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from sluicegate.wire.live_frames import LIVE_ID, LiveServerFrame, live_frame_members

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any

    from sluicegate.errors import RequestError

    Record: TypeAlias = Callable[[dict[str, Any] | bytes], None]
    """Records the members of a frame, or audio."""

MAX_AUDIO: Final = 16 * 1024 * 1024
"""Bytes of unsent audio: over five minutes."""

EndReason: TypeAlias = Literal["lease_lost", "run_failed", "model_ended"]
"""Why a live chat ends: another owner has it, its run failed, the model ended the conversation."""


@dataclass(frozen=True, slots=True)
class ChatEnded:
    """The end of the live chat: the error for the client, and the reason."""

    error: RequestError
    reason: EndReason


if TYPE_CHECKING:
    Outgoing: TypeAlias = LiveServerFrame | ChatEnded | bytes
    """A frame, the end of the chat, or PCM16 at 24 kHz."""


class LiveFrameQueue:
    """A queue with one reader.

    ``with_audio``: the client plays audio; without it audio is dropped. ``record`` gets everything
    immediately before it is sent.
    """

    def __init__(self, *, with_audio: bool, record: Record | None = None) -> None:
        self.with_audio = with_audio
        self._record = record
        self._queue: deque[Outgoing] = deque()
        self._backlog = 0
        self._has_more = asyncio.Event()

    @property
    def backlog(self) -> int:
        """Bytes of audio that are not sent yet."""
        return self._backlog

    def send(self, frame: LiveServerFrame | ChatEnded) -> None:
        """Queue a frame, or the end of the chat."""
        self._queue.append(frame)
        self._has_more.set()

    def send_audio(self, pcm: bytes) -> None:
        """Queue audio; the newest audio is dropped when the client is too far behind."""
        if self.with_audio and pcm and self._backlog + len(pcm) <= MAX_AUDIO:
            self._backlog += len(pcm)
            self._queue.append(pcm)
            self._has_more.set()

    def discard_audio(self) -> None:
        """Discard the audio that is not sent yet."""
        self._queue = deque(each for each in self._queue if not isinstance(each, bytes))
        self._backlog = 0

    async def read(self) -> AsyncIterator[Outgoing]:
        """Yield everything in order, as it comes."""
        while True:
            while self._queue:
                outgoing = self._queue.popleft()
                if isinstance(outgoing, bytes):
                    self._backlog -= len(outgoing)
                if self._record is not None:
                    self._record(_recorded(outgoing))
                yield outgoing
            self._has_more.clear()
            await self._has_more.wait()


def _recorded(outgoing: Outgoing) -> dict[str, Any] | bytes:
    if isinstance(outgoing, bytes):
        return outgoing
    if isinstance(outgoing, ChatEnded):
        error = {"errorText": outgoing.error.message, "code": outgoing.error.code}
        return {"type": "error", "requestId": LIVE_ID, **error}
    return live_frame_members(outgoing)
