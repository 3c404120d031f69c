"""The input of a live run, of which nothing is lost when its connection ends.

Results of calls wait in it for the answer to earlier words. A model answers what the user says
while a call is open either at once or after the result of the call, and marks neither. If a result
were sent while such words have no answer, either answer could come next. So it waits until the
model has begun to answer them, or has been silent for so long that it keeps them waiting.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from google.adk.live.live_request_queue import LiveRequest, LiveRequestQueue

from sluicegate.live.event_router import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.events.event import Event
    from google.genai import types


class InputQueue(LiveRequestQueue):
    """The queue that ADK sends to the model; all input of the run goes through it."""

    def __init__(
        self,
        has_waiting_words: Callable[[], bool],
        answer_results_first: Callable[[], None],
        words_grace: float,
    ) -> None:
        """The parameters are those of `HeldResults`."""
        super().__init__()
        self.held_results = HeldResults(
            super().send_content, has_waiting_words, answer_results_first, words_grace
        )
        self._taken: LiveRequest | None = None
        self._undelivered: LiveRequest | None = None

    async def get(self) -> LiveRequest:
        """Return the next input; that which an ended connection has not sent comes first."""
        request, self._undelivered = self._undelivered, None
        if request is None:
            request = await super().get()
        self._taken = request
        return request

    def delivered(self) -> None:
        """Note that the last input has reached the connection."""
        self._taken = None

    def reconnected(self) -> None:
        """Queue again what ADK took for the previous connection and did not send."""
        self._undelivered, self._taken = self._taken or self._undelivered, None

    def send_content(self, content: types.Content, partial: bool = False) -> None:  # noqa: FBT001, FBT002 - ADK's signature
        """Queue a content; results that the model answers may wait."""
        if not self.held_results.hold(content, partial=partial):
            super().send_content(content, partial)

    def close(self) -> None:
        """Send what waits, and close the connection to the model."""
        self.held_results.release()
        super().close()


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
