"""The messages in which a live provider sends a scripted response and its audio."""

from __future__ import annotations

import math
import sys
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from google.genai import types

from sluicegate.replay.scripted_gemini_chunks import grounding_chunk, part_deltas, split_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sluicegate.replay.scenario import ScriptedAudio, ScriptedPart, ScriptedResponse

OUTPUT_RATE: Final = 24_000
_OUTPUT_CHUNK_MS: Final = 40
_AMPLITUDE: Final = 12_000
_TURN_COMPLETE_REASONS: Final = {
    types.FinishReason.MALFORMED_FUNCTION_CALL: types.TurnCompleteReason.MALFORMED_FUNCTION_CALL,
    types.FinishReason.SAFETY: types.TurnCompleteReason.GENERATED_CONTENT_SAFETY,
    types.FinishReason.PROHIBITED_CONTENT: types.TurnCompleteReason.GENERATED_CONTENT_PROHIBITED,
    types.FinishReason.BLOCKLIST: types.TurnCompleteReason.GENERATED_CONTENT_BLOCKLIST,
}


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What a connection was opened for: ``audio`` output, and the transcripts of both sides."""

    audio: bool
    input_transcripts: bool
    output_transcripts: bool


def response_messages(
    response: ScriptedResponse, calls: Sequence[types.FunctionCall], options: OutputOptions
) -> Iterator[types.LiveServerMessage]:
    """Yield the messages of a response without its end, which `end_messages` yields.

    ``calls`` are the calls of the response in order, with their ids; consecutive calls are one
    message.
    """
    remaining = list(calls)
    consecutive: list[types.FunctionCall] = []
    for part in response.parts:
        if part.call is not None:
            consecutive.append(remaining.pop(0))
            continue
        if consecutive:
            yield _call_message(consecutive)
            consecutive = []
        yield from _part_messages(part, response.delta_chars, options)
    if consecutive:
        yield _call_message(consecutive)


def end_messages(
    response: ScriptedResponse, *, interrupted: bool, complete: bool
) -> Iterator[types.LiveServerMessage]:
    """Yield the end of a response.

    Without ``complete`` the turn of the model continues with the results of its calls.
    """
    if interrupted:
        yield _content_message(types.LiveServerContent(interrupted=True))
    elif complete:
        yield _content_message(types.LiveServerContent(generation_complete=True))
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
        reason = _TURN_COMPLETE_REASONS.get(response.finish)
        content = types.LiveServerContent(turn_complete=True, turn_complete_reason=reason)
    yield types.LiveServerMessage(server_content=content, usage_metadata=tokens)


def transcript_messages(text: str, size: int) -> Iterator[types.LiveServerMessage]:
    """Yield the transcript of the user's speech in deltas of ``size`` characters."""
    for delta in split_text(text, size):
        transcription = types.Transcription(text=delta)
        yield _content_message(types.LiveServerContent(input_transcription=transcription))
    final = types.Transcription(finished=True)
    yield _content_message(types.LiveServerContent(input_transcription=final))


def tone(audio: ScriptedAudio) -> Iterator[bytes]:
    """Yield a sine in chunks of 40 ms, PCM16 little-endian mono at 24 kHz.

    It fades over 5 ms at both ends, so that it does not click.
    """
    count = round(audio.seconds * OUTPUT_RATE)
    fade = OUTPUT_RATE // 200
    step = 2 * math.pi * audio.tone_hz / OUTPUT_RATE
    size = OUTPUT_RATE * _OUTPUT_CHUNK_MS // 1000
    for start in range(0, count, size):
        samples = array("h")
        for index in range(start, min(start + size, count)):
            loudness = _AMPLITUDE * min(1, index / fade, (count - 1 - index) / fade)
            samples.append(round(loudness * math.sin(index * step)))
        if sys.byteorder == "big":
            samples.byteswap()
        yield samples.tobytes()


def _part_messages(
    part: ScriptedPart, size: int, options: OutputOptions
) -> Iterator[types.LiveServerMessage]:
    if part.source is not None:
        grounding = types.GroundingMetadata(grounding_chunks=[grounding_chunk(part.source)])
        yield _content_message(types.LiveServerContent(grounding_metadata=grounding))
    elif part.audio is not None:
        if options.audio:
            yield from _audio_messages(part.audio)
    elif part.transcript is not None:
        text = part.transcript.text
        if part.transcript.role == "user":
            yield from transcript_messages(text, size) if options.input_transcripts else ()
        elif not options.audio:
            yield from (_turn_message([types.Part(text=delta)]) for delta in split_text(text, size))
        elif options.output_transcripts:
            for delta in split_text(text, size):
                transcription = types.Transcription(text=delta)
                yield _content_message(types.LiveServerContent(output_transcription=transcription))
    else:
        yield from (_turn_message(parts) for parts in part_deltas(part, size))


def _audio_messages(audio: ScriptedAudio) -> Iterator[types.LiveServerMessage]:
    for pcm in tone(audio):
        blob = types.Blob(data=pcm, mime_type=f"audio/pcm;rate={OUTPUT_RATE}")
        yield _turn_message([types.Part(inline_data=blob)])


def _call_message(calls: list[types.FunctionCall]) -> types.LiveServerMessage:
    return types.LiveServerMessage(tool_call=types.LiveServerToolCall(function_calls=calls))


def _turn_message(parts: list[types.Part]) -> types.LiveServerMessage:
    content = types.Content(role="model", parts=parts)
    return _content_message(types.LiveServerContent(model_turn=content))


def _content_message(content: types.LiveServerContent) -> types.LiveServerMessage:
    return types.LiveServerMessage(server_content=content)
