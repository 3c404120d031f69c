"""Which audio of a live model bypasses ADK's Runner."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from sluicegate.live.outgoing_frame_queue import LiveFrameQueue
from sluicegate.live.output_audio_fast_lane import AudioLane


class Lane(AudioLane):
    """A lane, with the pieces that ADK got and has not finished."""

    def __init__(self) -> None:
        self.outbox = LiveFrameQueue(with_audio=True)
        super().__init__(self.outbox)

    def play(self, *said: LlmResponse) -> str:
        """Return the way of each response: ``b`` if it bypasses the Runner, else ``r``."""
        return "".join("b" if self.bypasses(each) else "r" for each in said)


def audio(data: bytes = b"\1\2", **more: Any) -> LlmResponse:
    part = types.Part(inline_data=types.Blob(data=data, mime_type="audio/pcm;rate=24000"))
    content = types.Content(role="model", parts=[part])
    return LlmResponse.model_validate({"content": content, **more})


def words(*, finished: bool = False) -> LlmResponse:
    said = types.Transcription(text="word", finished=finished)
    return LlmResponse(output_transcription=said, partial=not finished)


PICTURE = types.Part(inline_data=types.Blob(data=b"x", mime_type="image/png"))
OTHERS = {
    "a final transcript": words(finished=True),
    "the end of a turn": LlmResponse(turn_complete=True),
    "an interruption": LlmResponse(interrupted=True),
    "words of the user": LlmResponse(input_transcription=types.Transcription(text="hello")),
    "a call": LlmResponse(
        content=types.Content(
            role="model", parts=[types.Part(function_call=types.FunctionCall(name="pay"))]
        )
    ),
    "a picture": LlmResponse(content=types.Content(role="model", parts=[PICTURE])),
}


def test_the_first_piece_goes_through_the_runner_and_later_ones_follow_once_it_has_left() -> None:
    lane = Lane()
    assert lane.play(audio(), audio()) == "rr"
    lane.left_runner()
    assert lane.play(audio()) == "r"
    lane.left_runner()
    lane.left_runner()
    assert lane.outbox.backlog == 0
    assert lane.play(audio(b"\3\4"), audio(b"\5\6")) == "bb"
    assert lane.outbox.backlog == 4


def test_transcripts_of_the_same_answer_are_overtaken() -> None:
    lane = Lane()
    assert lane.play(audio()) == "r"
    lane.left_runner()
    assert lane.play(words(), audio(), words(), audio()) == "rbrb"


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_audio_after_anything_else_goes_through_the_runner(other: LlmResponse) -> None:
    lane = Lane()
    assert lane.play(audio()) == "r"
    lane.left_runner()
    assert lane.play(audio(), other, audio()) == "brr"


def test_audio_after_input_goes_through_the_runner() -> None:
    lane = Lane()
    assert lane.play(audio()) == "r"
    lane.left_runner()
    lane.begin()
    assert lane.play(audio()) == "r"


@pytest.mark.parametrize(
    "more", [{"turn_complete": True}, {"interrupted": True}, {"error_code": "500"}], ids=str
)
def test_audio_with_anything_else_goes_through_the_runner(more: dict[str, Any]) -> None:
    lane = Lane()
    assert lane.play(audio()) == "r"
    lane.left_runner()
    assert lane.play(audio(**more), audio()) == "rr"


def test_a_new_connection_does_not_wait_for_audio_that_the_last_one_has_lost() -> None:
    lane = Lane()
    assert lane.play(audio(), audio()) == "rr"
    lane.connect()
    assert lane.play(audio()) == "r"
    lane.left_runner()
    assert lane.play(audio()) == "b"
