"""Results of calls that wait for the answer to earlier words before the model receives them.

A model answers what the user says while a call is open either at once or after the result of the
call, and marks neither. If a result were sent while such words have no answer, either answer could
come next. So it waits until the model has begun to answer them, or has been silent for so long that
it keeps them waiting.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sluicegate.live.event_router import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.events.event import Event
    from google.genai import types


class HeldResults:
    """The contents with results that wait, in order.

    ``send`` sends one to the model, with ADK's flag ``partial``. ``has_waiting_words``: the model
    may be keeping words waiting for the result of a call. ``answer_results_first`` is called if it
    has not begun to answer them ``words_grace`` seconds after the last one.
    """

    def __init__(
        self,
        send: Callable[[types.Content, bool], None],
        has_waiting_words: Callable[[], bool],
        answer_results_first: Callable[[], None],
        words_grace: float,
    ) -> None:
        self._send = send
        self._has_waiting_words = has_waiting_words
        self._answer_results_first = answer_results_first
        self._grace = words_grace
        self._words_until = 0.0
        self._held: list[tuple[types.Content, bool]] = []
        self._timer: asyncio.TimerHandle | None = None

    def hold(self, content: types.Content, *, partial: bool) -> bool:
        """Hold a content that must wait; returns whether it does."""
        must_wait = _is_answered(content) and (bool(self._held) or self._has_waiting_words())
        if must_wait:
            self._held.append((content, partial))
            self._schedule()
        return must_wait

    def follow(self, event: Event) -> None:
        """Note what the user and the model say."""
        if event.input_transcription is not None:
            self._words_until = asyncio.get_running_loop().time() + self._grace
            if self._held:
                self._schedule()
        elif _is_speech(event):
            self.release()

    def release(self) -> None:
        """Send what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        held, self._held = self._held, []
        for content, partial in held:
            self._send(content, partial)

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(self._words_until, self._end_grace)

    def _end_grace(self) -> None:
        if self._has_waiting_words():
            self._answer_results_first()
        self.release()


def _is_answered(content: types.Content) -> bool:
    """Whether a content holds results that the model answers."""
    results = [part.function_response for part in content.parts or ()]
    return any(each is not None and each.scheduling is not SILENT for each in results)


def _is_speech(event: Event) -> bool:
    """Whether an event holds output of the model."""
    parts = event.content.parts if event.content is not None else None
    is_output = any(part.function_response is None for part in parts or ())
    return event.author != "user" and (is_output or event.output_transcription is not None)
