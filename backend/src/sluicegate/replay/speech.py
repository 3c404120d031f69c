"""What a scripted model hears: when somebody speaks, and at which pitch.

Time is counted in samples, so that the same audio is heard alike however fast it arrives.
"""

from __future__ import annotations

import cmath
import math
import sys
from array import array
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from google.genai import types

from sluicegate.replay.deltas import cut, grounding_chunk, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluicegate.replay.scenario import ScriptedAudio, ScriptedPart, ScriptedResponse

_FRAME_MS: Final = 20
# A peak of 1/64 of the full scale: over the noise of a quiet room, under a soft voice.
_LOUD: Final = 512
_WINDOW: Final = 4096
_KEPT_SECONDS: Final = 4


class Heard(Enum):
    """A boundary in what the user says."""

    START = "start"
    END = "end"


class SpeechDetector:
    """Listens to PCM16 little-endian mono.

    Speech begins with the first loud frame of 20 ms and ends after ``silence_ms`` of quiet ones.
    While ``held`` (between the client's own marks of activity) a pause ends nothing.
    """

    def __init__(self, silence_ms: int = 500) -> None:
        self._patience = max(1, silence_ms // _FRAME_MS)
        self._rate = 16_000
        self._rest = b""
        self._loud: array[int] = array("h")
        self._quiet = 0
        self._held = False
        self.speaking = False

    def hear(self, data: bytes, rate: int) -> Iterator[Heard]:
        """Yield where speech begins and ends in the next piece; ``rate`` is in samples a second."""
        if rate != self._rate:
            self._rate, self._rest = rate, b""
        size = 2 * (rate * _FRAME_MS // 1000)
        data = self._rest + data
        whole = len(data) - len(data) % size
        self._rest = data[whole:]
        for start in range(0, whole, size):
            yield from self._listen(_samples(data[start : start + size]))

    def hold(self) -> bool:
        """The client says that the user begins to speak; whether that is news."""
        self._held = True
        return self._start()

    def release(self) -> bool:
        """The client says that the user has spoken, or sends no more audio; whether that ends it.

        What a last, incomplete frame holds is heard too.
        """
        rest = _samples(self._rest[: len(self._rest) & ~1])
        self._rest = b""
        if _is_loud(rest):
            self._loud.extend(rest)
            self.speaking = True
        spoke, self.speaking, self._held = self.speaking, False, False
        return spoke

    def sound(self) -> str:
        """What was heard since speech began, in a few words: "a tone of 440 Hz" or "silence"."""
        if not self._loud:
            return "silence"
        return f"a tone of {round(dominant_hz(self._loud, self._rate))} Hz"

    def _listen(self, frame: array[int]) -> Iterator[Heard]:
        if _is_loud(frame):
            if self._start():
                yield Heard.START
            self._quiet = 0
            if len(self._loud) < _KEPT_SECONDS * self._rate:
                self._loud.extend(frame)
        elif self.speaking and not self._held:
            self._quiet += 1
            if self._quiet >= self._patience:
                self.speaking = False
                yield Heard.END

    def _start(self) -> bool:
        if self.speaking:
            return False
        self.speaking, self._quiet = True, 0
        self._loud = array("h")
        return True


def dominant_hz(samples: Sequence[int], rate: int) -> float:
    """The strongest frequency of the middle of the samples; exact to about 1 Hz for a tone."""
    size = min(_WINDOW, 1 << (len(samples).bit_length() - 1))
    start = (len(samples) - size) // 2
    mean = sum(samples[start : start + size]) / size
    turn = 2 * math.pi / size
    # The window keeps a tone between two bins from leaking into all others.
    windowed = [
        complex((samples[start + index] - mean) * (1 - math.cos(turn * index)))
        for index in range(size)
    ]
    strength = [abs(value) for value in _transformed(windowed)[: size // 2]]
    peak = max(range(1, size // 2 - 1), key=strength.__getitem__, default=0)
    if not peak or not strength[peak]:
        return 0.0
    below, at, above = (math.log(strength[peak + step] or 1e-9) for step in (-1, 0, 1))
    curve = below - 2 * at + above
    offset = (below - above) / (2 * curve) if curve else 0.0
    return (peak + offset) * rate / size


def _transformed(values: list[complex]) -> list[complex]:
    """The discrete Fourier transform; the length is a power of two."""
    size = len(values)
    if size == 1:
        return values
    even, odd = _transformed(values[::2]), _transformed(values[1::2])
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


OUTPUT_RATE: Final = 24_000
_PIECE_MS: Final = 40
_AMPLITUDE: Final = 12_000
_REASONS: Final = {
    types.FinishReason.MALFORMED_FUNCTION_CALL: types.TurnCompleteReason.MALFORMED_FUNCTION_CALL,
    types.FinishReason.SAFETY: types.TurnCompleteReason.GENERATED_CONTENT_SAFETY,
    types.FinishReason.PROHIBITED_CONTENT: types.TurnCompleteReason.GENERATED_CONTENT_PROHIBITED,
    types.FinishReason.BLOCKLIST: types.TurnCompleteReason.GENERATED_CONTENT_BLOCKLIST,
}


@dataclass(frozen=True, slots=True)
class Ways:
    """What the connection was asked for: ``aloud`` audio, and the transcripts of both sides."""

    aloud: bool
    tells_input: bool
    tells_output: bool


def spoken(
    response: ScriptedResponse, calls: Sequence[types.FunctionCall], ways: Ways
) -> Iterator[types.LiveServerMessage]:
    """Yield the messages of a response up to its end, which ``ended`` gives.

    ``calls`` are the calls of the response in order, with their ids; those that follow each other
    are one message.
    """
    left = list(calls)
    together: list[types.FunctionCall] = []
    for part in response.parts:
        if part.call is not None:
            together.append(left.pop(0))
            continue
        if together:
            yield _calling(together)
            together = []
        yield from _saying(part, response.delta_chars, ways)
    if together:
        yield _calling(together)


def ended(
    response: ScriptedResponse, *, interrupted: bool, complete: bool
) -> Iterator[types.LiveServerMessage]:
    """Yield the end of a response.

    Without ``complete`` the model turn goes on when the results of its calls are there.
    """
    if interrupted:
        yield _message(types.LiveServerContent(interrupted=True))
    elif complete:
        yield _message(types.LiveServerContent(generation_complete=True))
    usage = response.usage
    tokens = types.UsageMetadata(
        prompt_token_count=usage.prompt,
        response_token_count=usage.output,
        thoughts_token_count=usage.reasoning,
        cached_content_token_count=usage.cached,
        total_token_count=usage.prompt + usage.output + (usage.reasoning or 0),
    )
    content = None
    if complete or interrupted:
        reason = _REASONS.get(response.finish)
        content = types.LiveServerContent(turn_complete=True, turn_complete_reason=reason)
    yield types.LiveServerMessage(server_content=content, usage_metadata=tokens)


def heard(words: str, size: int) -> Iterator[types.LiveServerMessage]:
    """Yield the transcript of what the user said, in pieces of ``size`` characters."""
    for piece in cut(words, size):
        transcript = types.Transcription(text=piece)
        yield _message(types.LiveServerContent(input_transcription=transcript))
    whole = types.Transcription(finished=True)
    yield _message(types.LiveServerContent(input_transcription=whole))


def tone(audio: ScriptedAudio) -> Iterator[bytes]:
    """Yield a sine in pieces of 40 ms, PCM16 little-endian mono at 24 kHz.

    It fades over 5 ms at both ends, so that it does not click.
    """
    count = round(audio.seconds * OUTPUT_RATE)
    fade = OUTPUT_RATE // 200
    step = 2 * math.pi * audio.tone_hz / OUTPUT_RATE
    size = OUTPUT_RATE * _PIECE_MS // 1000
    for start in range(0, count, size):
        samples = array("h")
        for index in range(start, min(start + size, count)):
            loudness = _AMPLITUDE * min(1, index / fade, (count - 1 - index) / fade)
            samples.append(round(loudness * math.sin(index * step)))
        if sys.byteorder == "big":
            samples.byteswap()
        yield samples.tobytes()


def _saying(part: ScriptedPart, size: int, ways: Ways) -> Iterator[types.LiveServerMessage]:
    if part.source is not None:
        grounding = types.GroundingMetadata(grounding_chunks=[grounding_chunk(part.source)])
        yield _message(types.LiveServerContent(grounding_metadata=grounding))
    elif part.audio is not None:
        if ways.aloud:
            yield from _sounding(part.audio)
    elif part.transcript is not None:
        text = part.transcript.text
        if part.transcript.role == "user":
            yield from heard(text, size) if ways.tells_input else ()
        elif not ways.aloud:
            yield from (_turn([types.Part(text=piece)]) for piece in cut(text, size))
        elif ways.tells_output:
            for piece in cut(text, size):
                transcript = types.Transcription(text=piece)
                yield _message(types.LiveServerContent(output_transcription=transcript))
    else:
        yield from (_turn(parts) for parts in pieces(part, size))


def _sounding(audio: ScriptedAudio) -> Iterator[types.LiveServerMessage]:
    for pcm in tone(audio):
        blob = types.Blob(data=pcm, mime_type=f"audio/pcm;rate={OUTPUT_RATE}")
        yield _turn([types.Part(inline_data=blob)])


def _calling(calls: list[types.FunctionCall]) -> types.LiveServerMessage:
    return types.LiveServerMessage(tool_call=types.LiveServerToolCall(function_calls=calls))


def _turn(parts: list[types.Part]) -> types.LiveServerMessage:
    content = types.Content(role="model", parts=parts)
    return _message(types.LiveServerContent(model_turn=content))


def _message(content: types.LiveServerContent) -> types.LiveServerMessage:
    return types.LiveServerMessage(server_content=content)
