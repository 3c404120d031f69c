"""A scripted response as the messages of a provider's live connection."""

from __future__ import annotations

import math
import sys
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from google.genai import types

from sluicegate.replay.deltas import cut, grounding_chunk, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluicegate.replay.scenario import ScriptedAudio, ScriptedPart, ScriptedResponse

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
