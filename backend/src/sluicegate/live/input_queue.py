"""The input of a live run, of which nothing is lost when its connection ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.live.live_request_queue import LiveRequest, LiveRequestQueue

from sluicegate.live.held_results import HeldResults

if TYPE_CHECKING:
    from collections.abc import Callable

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
