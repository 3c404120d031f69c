"""Limits of the audio that a client sends: PCM16, 16 kHz, mono, no faster than real time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.engine.rate_limits import TokenBucket
from sluicegate.transports.socket_connection import INVALID_DATA, MESSAGE_TOO_BIG, POLICY_VIOLATION
from sluicegate.wire.live_frames import BYTES_PER_SECOND

if TYPE_CHECKING:
    from typing import TypeAlias

    Fault: TypeAlias = tuple[int, str]
    """A close code, and its reason."""


@dataclass(frozen=True)
class AudioLimits:
    """The limits of one socket, in seconds of audio and in messages.

    ``message`` limits one message, ``ahead`` how far audio may run ahead of the clock.
    """

    message: float
    ahead: float
    messages_per_second: int


class AudioMeter:
    """Checks the audio messages of one socket in order; times are seconds of any one clock."""

    def __init__(self, limits: AudioLimits, *, now: float) -> None:
        self._limits = limits
        self._audio = TokenBucket(limits.ahead + limits.message, 1.0, now=now)
        self._messages = TokenBucket(
            5 * limits.messages_per_second, limits.messages_per_second, now=now
        )

    def fault(self, pcm: bytes, now: float) -> Fault | None:
        """Return the close code and reason for a message that is refused, else None."""
        if not self._messages.take(now):
            return POLICY_VIOLATION, "too_many_frames"
        if len(pcm) % 2:
            return INVALID_DATA, "half_a_sample"
        seconds = len(pcm) / BYTES_PER_SECOND
        if seconds > self._limits.message:
            return MESSAGE_TOO_BIG, "too_much_audio"
        if not self._audio.take(now, seconds):
            return POLICY_VIOLATION, "audio_too_fast"
        return None
