"""Whose words a model's are: the order of what is said, and the exchange it belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.core.exchanges import TurnStamp
from sluicegate.live.exchange import LiveExchange, LiveTurn
from sluicegate.live.turn_taking import TurnTaking


class Conversation:
    """Plays what is said to a floor; exchanges are called a, b, c in the order they begin."""

    def __init__(self, *, one_turn: bool = False) -> None:
        self.exchanges: list[LiveExchange] = []
        self.floor = TurnTaking(self._begun, self._first)
        self.floor.one_turn = one_turn

    def play(self, script: str) -> str:
        """Play words such as ``heard output completed``; returns whose each was, ``-`` for none."""
        return " ".join(self._said(word) for word in script.split())

    def _said(self, word: str) -> str:
        if word == "anew":
            return "lost" if self.floor.anew() else "kept"
        whose = self._model_said(word) or self._user_said(word)
        if whose is not None and word in ("completed", "interrupted"):
            whose.is_done = not (whose.calls or self.floor.owes(whose))
        return "-" if whose is None else "abc"[self.exchanges.index(whose)]

    def _model_said(self, word: str) -> LiveExchange | None:
        match word:
            case "output":
                return self.floor.output()
            case "calls":
                whose = self.floor.output()
                whose.calls["call"] = "runs"
                return whose
            case "completed":
                return self.floor.completed()
            case "interrupted":
                return self.floor.interrupted(trails=True)
        return None

    def _user_said(self, word: str) -> LiveExchange | None:
        match word.partition(":")[0]:
            case "heard" | "hears":
                return self.floor.heard(final=word == "heard")
            case "typed":
                whose = self._new(spoken=False)
            case "result":
                whose = self.exchanges["abc".index(word[-1])]
                whose.calls.clear()
            case _:
                return None
        self.floor.asked(whose)
        return whose

    def _begun(self) -> LiveExchange:
        return self._new(spoken=True)

    def _new(self, *, spoken: bool) -> LiveExchange:
        stamp = TurnStamp("m", "t", "u", "progressive", "call", 0.0, "model")
        self.exchanges.append(LiveExchange(LiveTurn(stamp), "progressive", spoken))
        return self.exchanges[-1]

    def _first(self) -> LiveExchange | None:
        return next((each for each in self.exchanges if not each.is_done), None)


SCRIPTS: dict[str, tuple[str, str]] = {
    "an answer": ("typed output output completed", "a a a a"),
    "a spoken one": ("hears heard output completed", "a a a a"),
    "two in a row": ("heard output completed heard output completed", "a a a b b b"),
    "a question in two pieces": ("heard heard output completed", "a a a a"),
    "told late what was heard": ("output hears heard output completed", "a a a a a"),
    "spoken into, not interrupted": (
        "heard output heard output completed output completed",
        "a a b a a b b",
    ),
    "interrupted, then said to be complete": (
        "heard output interrupted heard completed output completed",
        "a a a b - b b",
    ),
    "interrupted, and that is all": (
        "heard output interrupted heard output completed",
        "a a a b b b",
    ),
    "an answer of nothing": ("typed completed typed output completed", "a a b b b"),
    "a result is answered in a turn of its own": (
        "typed calls completed result:a output completed",
        "a a a a a a",
    ),
    "a result before the turn of its call ends": (
        "typed calls result:a completed output completed",
        "a a a a a a",
    ),
    "nothing is said to a result": (
        "typed calls completed result:a completed typed output",
        "a a a a a b b",
    ),
    "spoken while a call is at work": (
        "typed calls completed heard output completed result:a output completed",
        "a a a b b b a a a",
    ),
    "unasked while a call is at work": (
        "typed calls completed output completed",
        "a a a a a",
    ),
    "unasked": ("output completed heard output completed", "a a b b b"),
    "a completion that nobody waits for": ("completed typed output", "- a a"),
    "lost with the connection": ("typed output anew", "a a lost"),
    "owed on the next connection": ("typed anew output completed", "a kept a a"),
    "a result on the next connection": (
        "typed calls result:a anew output completed",
        "a a a kept a a",
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_said_belongs_to_an_exchange(name: str) -> None:
    script, whose = SCRIPTS[name]
    assert Conversation().play(script) == whose


def test_a_model_of_one_turn_answers_a_result_in_the_turn_of_its_call() -> None:
    conversation = Conversation(one_turn=True)
    assert conversation.play("typed calls result:a output completed") == "a a a a a"
    assert conversation.exchanges[0].is_done


@pytest.mark.parametrize(
    ("script", "doubtful"),
    [
        ("typed calls result:a completed", True),
        ("typed calls result:a completed output", False),
        ("heard output interrupted heard completed", True),
        ("typed output completed", False),
        ("typed", False),
    ],
)
def test_an_answer_is_in_doubt_where_a_model_may_have_given_it_by_silence(
    script: str, *, doubtful: bool
) -> None:
    conversation = Conversation()
    conversation.play(script)
    assert conversation.floor.is_doubtful is doubtful


def test_what_is_in_doubt_is_given_up_in_the_order_it_was_asked() -> None:
    conversation = Conversation()
    conversation.play("typed calls result:a completed")
    assert conversation.floor.give_up() is conversation.exchanges[0]
    assert conversation.floor.give_up() is None
    assert not conversation.floor.is_taken


def test_one_that_is_stopped_before_its_answer_ends_with_the_cut() -> None:
    conversation = Conversation()
    conversation.play("typed")
    conversation.exchanges[0].is_ending = True
    assert conversation.play("interrupted output") == "a b"


def test_what_is_left_gets_nothing_more() -> None:
    conversation: Any = Conversation()
    conversation.play("typed output")
    conversation.floor.leave(conversation.exchanges[0])
    conversation.exchanges[0].is_done = True
    assert conversation.play("output") == "b"
