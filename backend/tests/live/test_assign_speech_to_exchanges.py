"""The exchange that each utterance of a live conversation belongs to."""

from __future__ import annotations

import pytest

from sluicegate.core.turn_stamp import TurnStamp
from sluicegate.live.assign_speech_to_exchanges import TurnTaking
from sluicegate.live.exchange import LiveExchange, LiveTurn


class Conversation:
    """Plays a conversation; exchanges are called a, b, c in the order in which they begin."""

    def __init__(self, *, continues_turn: bool = False) -> None:
        self.exchanges: list[LiveExchange] = []
        self.utterances = TurnTaking(lambda: self._create(spoken=True), self._first)
        self.utterances.continues_turn = continues_turn

    def play(self, script: str) -> str:
        """Play words such as ``question output completed``; returns the exchange of each.

        ``-`` stands for none.
        """
        return " ".join(self._play(word) for word in script.split())

    def _play(self, word: str) -> str:
        if word == "reconnected":
            return "lost" if self.utterances.reconnected() else "kept"
        if word == "kept-waiting":
            assert self.utterances.has_waiting_words
            self.utterances.answer_results_first()
            return "-"
        exchange = self._model(word) or self._user(word)
        if exchange is not None and word in ("completed", "interrupted"):
            is_unanswered = self.utterances.is_unanswered(exchange)
            exchange.is_done = not (exchange.open_calls or is_unanswered)
        return "-" if exchange is None else "abcd"[self.exchanges.index(exchange)]

    def _model(self, word: str) -> LiveExchange | None:
        match word:
            case "output":
                return self.utterances.model_spoke()
            case "calls":
                exchange = self.utterances.model_spoke()
                exchange.open_calls["call"] = "running"
                return exchange
            case "completed":
                return self.utterances.model_completed()
            case "interrupted":
                return self.utterances.model_interrupted(expects_completion=True)
        return None

    def _user(self, word: str) -> LiveExchange | None:
        match word.partition(":")[0]:
            case "question" | "partial":
                return self.utterances.user_spoke(final=word == "question")
            case "typed":
                exchange = self._create(spoken=False)
            case "result":
                exchange = self.exchanges["abcd".index(word[-1])]
                exchange.open_calls.clear()
            case _:
                return None
        self.utterances.expect_answer(exchange)
        return exchange

    def _create(self, *, spoken: bool) -> LiveExchange:
        stamp = TurnStamp("m", "t", "u", "progressive", "call", 0.0, "model")
        self.exchanges.append(LiveExchange(LiveTurn(stamp), "progressive", spoken))
        return self.exchanges[-1]

    def _first(self) -> LiveExchange | None:
        return next((each for each in self.exchanges if not each.is_done), None)


SCRIPTS: dict[str, tuple[str, str]] = {
    "an answer": ("typed output output completed", "a a a a"),
    "a spoken one": ("partial question output completed", "a a a a"),
    "two in a row": ("question output completed question output completed", "a a a b b b"),
    "a question in two transcripts": ("question question output completed", "a a a a"),
    "a transcript after the answer began": (
        "output partial question output completed",
        "a a a a a",
    ),
    "speech during an answer that is not interrupted": (
        "question output question output completed output completed",
        "a a b a a b b",
    ),
    "interrupted, then completed": (
        "question output interrupted question completed output completed",
        "a a a b - b b",
    ),
    "interrupted, not completed": (
        "question output interrupted question output completed",
        "a a a b b b",
    ),
    "an empty answer": ("typed completed typed output completed", "a a b b b"),
    "a result is answered in another turn": (
        "typed calls completed result:a output completed",
        "a a a a a a",
    ),
    "a result before the turn of its call ends": (
        "typed calls result:a completed output completed",
        "a a a a a a",
    ),
    "a result without an answer": (
        "typed calls completed result:a completed typed output",
        "a a a a a b b",
    ),
    "speech while a call runs": (
        "typed calls completed question output completed result:a output completed",
        "a a a b b b a a a",
    ),
    "words that wait for a result": (
        "typed calls completed question result:a kept-waiting output completed output completed",
        "a a a b a - a a b b",
    ),
    "words that wait for a result once more": (
        "typed calls completed question result:a kept-waiting output completed output completed"
        " typed calls completed question result:c output completed output completed",
        "a a a b a - a a b b c c c d c c c d d",
    ),
    "a result in the middle of the transcript of words that wait for it": (
        "typed calls completed partial result:a question kept-waiting"
        " output completed output completed",
        "a a a b a b - a a b b",
    ),
    "a result in the middle of the transcript of words that are answered before it": (
        "typed calls completed question output completed partial result:a partial question"
        " output completed output completed",
        "a a a b b b c a c c c c a a",
    ),
    "words that are answered while a call runs": (
        "typed calls completed question output completed question result:a output completed output",
        "a a a b b b c a c c a",
    ),
    "utterances during an answer that goes on": (
        "typed output question question completed output completed output completed",
        "a a b c a b b c c",
    ),
    "unprompted output while a call runs": (
        "typed calls completed output completed",
        "a a a a a",
    ),
    "unprompted output": ("output completed question output completed", "a a b b b"),
    "a completion without an answer": ("completed typed output", "- a a"),
    "lost with the connection": ("typed output reconnected", "a a lost"),
    "an answer on the next connection": ("typed reconnected output completed", "a kept a a"),
    "a result on the next connection": (
        "typed calls result:a reconnected output completed",
        "a a a kept a a",
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_utterance_belongs_to_an_exchange(name: str) -> None:
    script, exchanges = SCRIPTS[name]
    assert Conversation().play(script) == exchanges


def test_a_model_that_continues_its_turn_answers_a_result_in_it() -> None:
    conversation = Conversation(continues_turn=True)
    assert conversation.play("typed calls result:a output completed") == "a a a a a"
    assert conversation.exchanges[0].is_done


@pytest.mark.parametrize(
    ("script", "uncertain"),
    [
        ("typed calls result:a completed", True),
        ("typed calls result:a completed output", False),
        ("question output interrupted question completed", True),
        ("typed output completed", False),
        ("typed", False),
    ],
)
def test_an_answer_is_uncertain_where_the_model_may_have_answered_with_silence(
    script: str, *, uncertain: bool
) -> None:
    conversation = Conversation()
    conversation.play(script)
    assert conversation.utterances.is_uncertain is uncertain


def test_uncertain_answers_are_assumed_in_the_order_of_the_questions() -> None:
    conversation = Conversation()
    conversation.play("typed calls result:a completed")
    assert conversation.utterances.assume_answered() is conversation.exchanges[0]
    assert conversation.utterances.assume_answered() is None
    assert not conversation.utterances.is_busy


def test_an_exchange_stopped_before_its_answer_ends_with_the_interruption() -> None:
    conversation = Conversation()
    conversation.play("typed")
    conversation.exchanges[0].is_stopping = True
    assert conversation.play("interrupted output") == "a b"


def test_a_forgotten_exchange_gets_no_more_output() -> None:
    conversation = Conversation()
    conversation.play("typed output")
    conversation.utterances.forget(conversation.exchanges[0])
    conversation.exchanges[0].is_done = True
    assert conversation.play("output") == "b"
