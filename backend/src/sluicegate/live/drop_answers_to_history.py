"""Drops the answer to a history: Gemini 2.5 may speak before the user has said anything.

Nothing marks such an answer, and the transcript of a user message may follow the answer to it. So
the first output is held back: it is an answer once words of the user are transcribed, and unasked
if the model completes it before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from google.adk.models.llm_response import LlmResponse


class AnswerToHistory:
    """The output of one connection since its history was sent."""

    def __init__(self) -> None:
        self._state: Literal["off", "quiet", "asked", "held", "ending"] = "off"
        self._held: list[LlmResponse] = []

    def history_sent(self, *, asked: bool) -> None:
        """Note that the model has a history; ``asked``: a message follows it."""
        self._state = "asked" if asked else "quiet"

    def message_sent(self) -> None:
        """Note a message for the model, which interrupts what it says unasked."""
        if self._state == "held":
            self._drop("ending")
        elif self._state == "quiet":
            self._state = "off"

    def filter(self, response: LlmResponse) -> list[LlmResponse]:
        """Return what can be processed after a response."""
        speech = response.input_transcription
        ends = bool(response.interrupted or response.turn_complete)
        is_output = bool(response.content or response.output_transcription)
        if self._state == "off" or not (ends or is_output or speech):
            return [response]
        if speech is not None and self._state != "ending":
            return self._release(response)
        if self._state == "ending":
            if response.turn_complete:
                self._state = "off"
            return [response] if speech is not None else []
        return self._follow(response, ends=ends)

    def _follow(self, response: LlmResponse, *, ends: bool) -> list[LlmResponse]:
        """Follow output that may be unasked."""
        parts = (response.content and response.content.parts) or ()
        if any(part.function_call is not None for part in parts):
            # The model waits for the response to a call.
            return self._release(response)
        if ends:
            self._drop("off" if response.turn_complete else "ending")
        elif self._state == "asked":
            return self._release(response)
        else:
            self._state = "held"
            self._held.append(response)
        return []

    def _release(self, response: LlmResponse) -> list[LlmResponse]:
        held = [*self._held, response]
        self._drop("off")
        return held

    def _drop(self, state: Literal["off", "ending"]) -> None:
        self._state = state
        self._held.clear()
