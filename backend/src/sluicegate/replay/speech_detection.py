"""Detection of speech in the audio that a scripted live model receives.

Time is counted in samples, so that the result does not depend on how fast audio arrives.
"""

from __future__ import annotations

import cmath
import math
import sys
from array import array
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FRAME_MS: Final = 20
# A peak of 1/64 of the full scale: above the noise of a quiet room, below a soft voice.
_LOUD: Final = 512
_WINDOW: Final = 4096
_KEPT_SECONDS: Final = 4


class SpeechBoundary(Enum):
    """The start or the end of the user's speech."""

    START = "start"
    END = "end"


class SpeechDetector:
    """Detects speech in PCM16 little-endian mono.

    Speech starts with the first loud frame of 20 ms and ends after ``silence_ms`` of quiet frames.
    Between the client's own marks of activity a pause does not end it.
    """

    def __init__(self, silence_ms: int = 500) -> None:
        self._max_quiet_frames = max(1, silence_ms // _FRAME_MS)
        self._rate = 16_000
        self._incomplete_frame = b""
        self._loud_samples: array[int] = array("h")
        self._quiet_frames = 0
        self._is_marked = False
        self.is_speaking = False

    def detect(self, data: bytes, rate: int) -> Iterator[SpeechBoundary]:
        """Yield the boundaries in the next audio; ``rate`` is in samples per second."""
        if rate != self._rate:
            self._rate, self._incomplete_frame = rate, b""
        size = 2 * (rate * _FRAME_MS // 1000)
        data = self._incomplete_frame + data
        complete = len(data) - len(data) % size
        self._incomplete_frame = data[complete:]
        for start in range(0, complete, size):
            yield from self._detect_frame(_samples(data[start : start + size]))

    def start_activity(self) -> bool:
        """The client marks the start of speech; return whether speech starts here."""
        self._is_marked = True
        return self._start()

    def end_activity(self) -> bool:
        """The client marks the end of speech or of its audio; return whether speech ends here.

        A last, incomplete frame counts too.
        """
        frame = _samples(self._incomplete_frame[: len(self._incomplete_frame) & ~1])
        self._incomplete_frame = b""
        if _is_loud(frame):
            self._loud_samples.extend(frame)
            self.is_speaking = True
        was_speaking, self.is_speaking, self._is_marked = self.is_speaking, False, False
        return was_speaking

    def describe(self) -> str:
        """Describe the audio since speech started: "a tone of 440 Hz" or "silence"."""
        if not self._loud_samples:
            return "silence"
        return f"a tone of {round(dominant_hz(self._loud_samples, self._rate))} Hz"

    def _detect_frame(self, frame: array[int]) -> Iterator[SpeechBoundary]:
        if _is_loud(frame):
            if self._start():
                yield SpeechBoundary.START
            self._quiet_frames = 0
            if len(self._loud_samples) < _KEPT_SECONDS * self._rate:
                self._loud_samples.extend(frame)
        elif self.is_speaking and not self._is_marked:
            self._quiet_frames += 1
            if self._quiet_frames >= self._max_quiet_frames:
                self.is_speaking = False
                yield SpeechBoundary.END

    def _start(self) -> bool:
        if self.is_speaking:
            return False
        self.is_speaking, self._quiet_frames = True, 0
        self._loud_samples = array("h")
        return True


def dominant_hz(samples: Sequence[int], rate: int) -> float:
    """Return the strongest frequency of the middle of the samples, to about 1 Hz for a tone."""
    size = min(_WINDOW, 1 << (len(samples).bit_length() - 1))
    start = (len(samples) - size) // 2
    mean = sum(samples[start : start + size]) / size
    turn = 2 * math.pi / size
    # The window keeps a tone between two bins from leaking into all others.
    windowed = [
        complex((samples[start + index] - mean) * (1 - math.cos(turn * index)))
        for index in range(size)
    ]
    magnitudes = [abs(value) for value in _fourier_transform(windowed)[: size // 2]]
    peak = max(range(1, size // 2 - 1), key=magnitudes.__getitem__, default=0)
    if not peak or not magnitudes[peak]:
        return 0.0
    below, at, above = (math.log(magnitudes[peak + step] or 1e-9) for step in (-1, 0, 1))
    curve = below - 2 * at + above
    offset = (below - above) / (2 * curve) if curve else 0.0
    return (peak + offset) * rate / size


def _fourier_transform(values: list[complex]) -> list[complex]:
    """Return the discrete Fourier transform; the length is a power of two."""
    size = len(values)
    if size == 1:
        return values
    even, odd = _fourier_transform(values[::2]), _fourier_transform(values[1::2])
    turned = [cmath.rect(1, -2 * math.pi * k / size) * odd[k] for k in range(size // 2)]
    return [a + b for a, b in zip(even, turned, strict=True)] + [
        a - b for a, b in zip(even, turned, strict=True)
    ]


def _is_loud(frame: array[int]) -> bool:
    return bool(frame) and max(max(frame), -min(frame)) >= _LOUD


def _samples(data: bytes) -> array[int]:
    samples = array("h")
    samples.frombytes(data)
    if sys.byteorder == "big":
        samples.byteswap()
    return samples
