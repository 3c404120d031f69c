"""The fast lane of audio: most audio of a live model bypasses ADK's Runner, as partial text does.

A piece of audio costs more in the Runner than on the rest of its way, and nothing is stored or runs
because of it. The first piece of an answer goes through the Runner: from it the run learns that the
model speaks, and to whom. A later piece bypasses the Runner if every earlier one has left it, so
the order of the audio, and of what interrupts it, is that of the model. It may overtake the
transcript of the same answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    from sluicegate.live.outgoing_frame_queue import LiveFrameQueue

_OUTPUT: Final = frozenset({"content", "partial", "model_version", "live_session_id"})
"""Members of a response that hold its output, and where that comes from."""


class AudioLane:
    """Decides which audio of a run bypasses the Runner, and plays it."""

    def __init__(self, outbox: LiveFrameQueue) -> None:
        self._outbox = outbox
        self._is_answering = False
        self._in_runner = 0

    def begin(self) -> None:
        """Pass the next piece on: with it the model may begin to answer something else."""
        self._is_answering = False

    def connect(self) -> None:
        """Expect nothing more of an earlier connection."""
        self._is_answering, self._in_runner = False, 0

    def bypasses(self, response: LlmResponse) -> bool:
        """Play a response that bypasses the Runner; return whether it does."""
        blobs = list(audio_of(response.content))
        if not blobs:
            self._is_answering = self._is_answering and _is_partial_transcript(response)
            return False
        if self._is_answering and self._in_runner == 0 and _is_audio_alone(response):
            for blob in blobs:
                self._outbox.send_audio(blob.data or b"")
            return True
        self._is_answering = True
        self._in_runner += 1
        return False

    def left_runner(self) -> None:
        """Note that audio has left the Runner and was played."""
        self._in_runner = max(0, self._in_runner - 1)


def audio_of(content: types.Content | None) -> Iterator[types.Blob]:
    """Yield the audio of a content."""
    for part in (content and content.parts) or ():
        blob = part.inline_data
        if blob is not None and blob.data and (blob.mime_type or "").startswith("audio/"):
            yield blob


def _is_audio_alone(response: LlmResponse) -> bool:
    parts = (response.content and response.content.parts) or ()
    is_audio = len(list(audio_of(response.content))) == len(parts)
    return is_audio and not any(value for name, value in response if name not in _OUTPUT)


def _is_partial_transcript(response: LlmResponse) -> bool:
    said = response.output_transcription
    members = {name for name, value in response if value} - _OUTPUT
    return said is not None and not said.finished and members == {"output_transcription"}
