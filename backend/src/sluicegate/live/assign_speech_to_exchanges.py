"""Assigns what the user and the model say to the exchanges of a live run.

A live model marks nothing but the ends of its turns. Rule 1: exchanges are answered in the order in
which they were asked. Rule 2: unprompted output of the model belongs to the first exchange that is
not done, if there is one. Rule 3: the user's words begin an exchange, unless they are the late or
further words of one that is not answered yet. Rule 4: the answer to a result comes before those to
words that the model keeps waiting for it, and after those to words that it answers meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.live.exchange import LiveExchange


class TurnTaking:
    """Follows the conversation of one run.

    ``begin`` creates a spoken exchange behind all others; ``first`` returns the first exchange that
    the model is not done with.
    """

    def __init__(
        self,
        begin: Callable[[], LiveExchange],
        first: Callable[[], LiveExchange | None],
    ) -> None:
        self._begin = begin
        self._first = first
        self._unanswered: list[LiveExchange] = []
        self._expects_completion = False
        self._untranscribed: LiveExchange | None = None
        """The spoken exchange that was interrupted before its user message was transcribed."""
        self.continues_turn = False
        """Whether the model continues its turn after a tool result, as Gemini 3 does, instead of
        beginning another one."""
        self.speaking: LiveExchange | None = None
        """The exchange that the model is answering."""
        self.latest: LiveExchange | None = None
        """The exchange that it answered last."""
        self.is_uncertain = False
        """Whether the model may have answered the first unanswered exchange with silence."""
        self.keeps_words_waiting: bool | None = None
        """Whether the model answers words only after the results of open calls; None until it has
        shown it."""

    @property
    def is_busy(self) -> bool:
        """Whether the model speaks, or has yet to answer."""
        return self.speaking is not None or bool(self._unanswered)

    @property
    def has_unanswered(self) -> bool:
        """Whether the model has yet to begin an answer."""
        return bool(self._unanswered)

    def is_unanswered(self, exchange: LiveExchange) -> bool:
        """Whether the model has yet to answer an exchange."""
        return exchange in self._unanswered

    def expect_answer(self, exchange: LiveExchange) -> None:
        """Expect an answer: the model was sent a text or the results of calls."""
        self._untranscribed = None
        if exchange not in self._unanswered:
            self._unanswered.append(exchange)
        if self.keeps_words_waiting:
            self.answer_results_first()

    @property
    def has_waiting_words(self) -> bool:
        """Whether the model may be keeping words waiting for the result of a call."""
        is_known = self.keeps_words_waiting is not None
        return not is_known and self.speaking is None and any(map(_is_new, self._unanswered))

    def answer_results_first(self) -> None:
        """Expect the answers to results before those to words: the model keeps words waiting."""
        self.keeps_words_waiting = True
        self._unanswered.sort(key=_is_new)

    def user_spoke(self, *, final: bool) -> LiveExchange:
        """Return the exchange that a transcript of the user belongs to."""
        exchange = self._asking()
        exchange.has_user_message = exchange.has_user_message or final
        return exchange

    def model_spoke(self) -> LiveExchange:
        """Return the exchange that output of the model belongs to."""
        self._expects_completion = self.is_uncertain = False
        self._untranscribed = None
        speaking = self.speaking
        if speaking is None:
            self._learn_order()
            speaking = (
                self._unanswered.pop(0) if self._unanswered else self._first() or self._begin()
            )
        elif self.continues_turn and speaking in self._unanswered:
            self._unanswered.remove(speaking)
        speaking.has_output = True
        self.speaking = self.latest = speaking
        return speaking

    def model_completed(self) -> LiveExchange | None:
        """Return the exchange whose answer the model has completed."""
        if self._expects_completion:
            # A model also completes the turn that was interrupted.
            self._expects_completion = False
            self.is_uncertain = bool(self._unanswered)
            return None
        ended, self.speaking = self.speaking, None
        if ended is None and self._unanswered:
            ended = self._unanswered.pop(0)
        self.latest = ended or self.latest
        self.is_uncertain = bool(self._unanswered)
        return ended

    def model_interrupted(self, *, expects_completion: bool) -> LiveExchange | None:
        """Return the exchange whose answer was interrupted.

        ``expects_completion``: the model completes the interrupted turn in a later event.
        """
        ended, self.speaking = self.speaking, None
        self._expects_completion = expects_completion
        if ended is None:
            # An exchange that was stopped before its answer ends as well.
            first = self._first()
            ended = first if first is not None and first.is_stopping else None
        if ended is not None:
            self.forget(ended)
            self._untranscribed = ended if ended.spoken and not ended.has_user_message else None
        return ended

    def reconnected(self) -> bool:
        """Return whether a new connection to the model has lost an answer.

        An answer that was not begun, or that waits for results, is given on the new connection.
        """
        lost, self.speaking, self._expects_completion = self.speaking, None, False
        if lost is None or lost.open_calls or lost in self._unanswered:
            return False
        self.speaking = lost
        return True

    def assume_answered(self) -> LiveExchange | None:
        """Consider the first unanswered exchange answered, and return it."""
        self.is_uncertain = False
        return self._unanswered.pop(0) if self._unanswered else None

    def forget(self, exchange: LiveExchange) -> None:
        """Assign nothing more to an exchange."""
        if exchange in self._unanswered:
            self._unanswered.remove(exchange)
        if self.speaking is exchange:
            self.speaking = None

    def _learn_order(self) -> None:
        """Note that the model answers words while a call is open."""
        asked = self._unanswered[0] if self._unanswered else None
        first = self._first()
        if asked is None or first is None or first is asked:
            return
        if _is_new(asked) and first.open_calls:
            self.keeps_words_waiting = False

    def _asking(self) -> LiveExchange:
        late = self._untranscribed
        if late is not None and not late.has_user_message:
            return late
        speaking = self.speaking
        if speaking is not None and speaking.spoken and not speaking.has_user_message:
            # Some models transcribe the user message while they answer.
            return speaking
        newest = next((each for each in reversed(self._unanswered) if _is_new(each)), None)
        if newest is not None and not newest.has_user_message:
            # The pieces of a transcript may have the result of a call between them.
            return newest
        # A model that speaks answers each of the utterances that it keeps waiting.
        if newest is not None and newest is self._unanswered[-1] and speaking is None:
            return newest
        begun = self._begin()
        self._unanswered.append(begun)
        return begun


def _is_new(exchange: LiveExchange) -> bool:
    """Whether an exchange consists of the user's words alone so far."""
    return exchange.spoken and not exchange.has_output
