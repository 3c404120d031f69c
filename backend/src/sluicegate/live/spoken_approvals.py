"""Approves a call when the user says the phrase that its author has declared (`gated(by_voice=…)`).

Rule 1: the words of one utterance are the phrase, and nothing else. Rule 2: the utterance begins
after the request. Rule 3: one call alone waits for this phrase. Rule 4: the model has not said it
lately: the microphone may hear the loudspeaker, and a model may try to persuade.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluicegate.engine.describe_exceptions import describe
from sluicegate.errors import RequestError, StoreError
from sluicegate.tools.spoken_approval_phrases import spoken_words

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Literal

    from sluicegate.live.context import LiveContext
    from sluicegate.live.exchange import LiveExchange
    from sluicegate.live.pending_approvals import PendingApprovals

_REMEMBERED: Final = 400
"""Characters of the model's words before a request that are searched for its phrase."""

logger = logging.getLogger("sluicegate")


@dataclass(frozen=True, slots=True)
class _WaitingCall:
    """``earlier`` are the exchanges in which the user may have spoken before the request."""

    phrase: str
    earlier: Collection[LiveExchange]


class SpokenApprovals:
    """The calls of a run that wait for a phrase, by ADK's id."""

    def __init__(self, context: LiveContext, pending: PendingApprovals) -> None:
        self._context = context
        self._pending = pending
        self._waiting: dict[str, _WaitingCall] = {}
        self._said = ""
        self._saying = ""
        self._pause: asyncio.TimerHandle | None = None

    def begin(self, call_id: str, phrase: str, earlier: Collection[LiveExchange]) -> None:
        """Wait for a phrase, which counts in exchanges other than ``earlier``."""
        self._waiting[call_id] = _WaitingCall(spoken_words(phrase), tuple(earlier))

    def end(self, call_id: str) -> None:
        """Wait no longer: the call is decided."""
        self._waiting.pop(call_id, None)

    def heard(
        self,
        exchange: LiveExchange,
        role: Literal["user", "assistant"],
        text: str,
        is_over: bool,  # noqa: FBT001 - the fourth of what an utterance is
    ) -> None:
        """Follow an utterance: ``text`` are its words so far."""
        if role == "assistant":
            self._saying = text
            if is_over:
                self._said, self._saying = (self._said + text)[-_REMEMBERED:], ""
            return
        self.close()
        call_id = self._approved_by(spoken_words(text), exchange)
        if call_id is not None:
            # Some models complete the transcript only with their answer.
            seconds = 0 if is_over else self._context.timings.phrase_pause
            loop = asyncio.get_running_loop()
            self._pause = loop.call_later(seconds, self._approve, call_id)

    def close(self) -> None:
        """Approve nothing more by what was said."""
        if self._pause is not None:
            self._pause.cancel()

    def _approved_by(self, words: str, exchange: LiveExchange) -> str | None:
        meant = [call_id for call_id, call in self._waiting.items() if call.phrase == words]
        if len(meant) != 1 or words in spoken_words(self._said + self._saying):
            return None
        return None if exchange in self._waiting[meant[0]].earlier else meant[0]

    def _approve(self, call_id: str) -> None:
        approval_id = self._pending.approval_of(call_id)
        if approval_id is not None:
            self._context.spawn(self._decide(approval_id))

    async def _decide(self, approval_id: str) -> None:
        try:
            await self._context.approve(approval_id)
        except (RequestError, StoreError) as error:
            # The card still waits, or has been decided otherwise.
            logger.warning("a spoken approval has no effect: %s", describe(error))
