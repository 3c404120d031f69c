"""Who has the floor: to which exchange of a live run it belongs what a model or a user says.

A live model tells its turns apart from nothing but their ends. Rule 1: whoever was asked first is
answered first. Rule 2: what a model says unasked belongs to the exchange that is not over, if there
is one. Rule 3: the user's words begin an exchange of their own, unless they are the late or further
words of one that is not answered yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluicegate.live.exchange import LiveExchange


class TurnTaking:
    """Follows what is said.

    ``begin`` makes a spoken exchange and puts it last; ``first`` is the one that is not over and
    was begun first. ``one_turn``: the model goes on with its turn when a result is there, as
    Gemini 3 does, in place of beginning another.
    """

    def __init__(
        self,
        begin: Callable[[], LiveExchange],
        first: Callable[[], LiveExchange | None],
    ) -> None:
        self._begin = begin
        self._first = first
        self._owed: list[LiveExchange] = []
        self._trails = False
        self.one_turn = False
        self.speaking: LiveExchange | None = None
        """Whose answer the model gives now."""
        self.latest: LiveExchange | None = None
        """Whose answer it gave last."""
        self.is_doubtful = False
        """Whether an answer is owed that perhaps has been given, for all that can be known."""

    @property
    def is_taken(self) -> bool:
        """Whether the model speaks, or owes somebody an answer."""
        return self.speaking is not None or bool(self._owed)

    def owes(self, exchange: LiveExchange) -> bool:
        """Whether the model has yet to answer it."""
        return exchange in self._owed

    def asked(self, exchange: LiveExchange) -> None:
        """The model was given something that it answers: a text, or the results of calls."""
        if exchange not in self._owed:
            self._owed.append(exchange)

    def heard(self, *, final: bool) -> LiveExchange:
        """The model tells what the user said; whose question that is."""
        exchange = self._asking()
        exchange.has_question = exchange.has_question or final
        return exchange

    def output(self) -> LiveExchange:
        """The model says something; whose answer that is."""
        self._trails = self.is_doubtful = False
        speaking = self.speaking
        if speaking is None:
            speaking = self._owed.pop(0) if self._owed else self._first() or self._begin()
        elif self.one_turn and speaking in self._owed:
            self._owed.remove(speaking)
        speaking.has_output = True
        self.speaking = self.latest = speaking
        return speaking

    def completed(self) -> LiveExchange | None:
        """The model says that its turn is over; whose answer that was."""
        if self._trails:
            # After an interruption it says so once more.
            self._trails = False
            self.is_doubtful = bool(self._owed)
            return None
        ended, self.speaking = self.speaking, None
        if ended is None and self._owed:
            ended = self._owed.pop(0)
        self.latest = ended or self.latest
        self.is_doubtful = bool(self._owed)
        return ended

    def interrupted(self, *, trails: bool) -> LiveExchange | None:
        """The model was interrupted; whose answer that ended. ``trails``: it is yet to complete."""
        ended, self.speaking = self.speaking, None
        self._trails = trails
        if ended is None:
            # One that was stopped before it was answered ends all the same.
            first = self._first()
            ended = first if first is not None and first.is_ending else None
        if ended is not None:
            self.leave(ended)
        return ended

    def anew(self) -> bool:
        """The model listens on another connection; whether an answer was lost with the last one.

        An answer that is still owed, or that waits for results, is given on the new one.
        """
        lost, self.speaking, self._trails = self.speaking, None, False
        if lost is None or lost.calls or lost in self._owed:
            return False
        self.speaking = lost
        return True

    def give_up(self) -> LiveExchange | None:
        """Take the first answer that is owed for given; whose that was."""
        self.is_doubtful = False
        return self._owed.pop(0) if self._owed else None

    def leave(self, exchange: LiveExchange) -> None:
        """Nothing of what the model says next belongs to it."""
        if exchange in self._owed:
            self._owed.remove(exchange)
        if self.speaking is exchange:
            self.speaking = None

    def _asking(self) -> LiveExchange:
        speaking = self.speaking
        if speaking is not None and speaking.spoken and not speaking.has_question:
            # Some models tell late what they heard.
            return speaking
        last = self._owed[-1] if self._owed else None
        if last is not None and last.spoken and not last.has_output:
            return last
        begun = self._begin()
        self._owed.append(begun)
        return begun
