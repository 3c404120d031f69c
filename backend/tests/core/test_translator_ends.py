"""What is open when a turn ends."""

from __future__ import annotations

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types

from sluicegate.core.signals import (
    Call,
    InputDelta,
    InputStarted,
    StepFinished,
    StepStarted,
    TextSignal,
)
from sluicegate.core.translator import Translator, UnfinishedModelCall
from tests.core.adk_conversations import text, thought
from tests.core.event_factory import KINDS, PAY, asks, gave, model
from tests.core.signal_words import translate, words


def test_what_was_told_of_a_model_call_that_never_ended_can_be_stored() -> None:
    translator = Translator(KINDS, files_url="")
    piece = types.PartialArg(json_path="$.to", string_value="An")
    args = types.FunctionCall(id="1", name="pay", partial_args=[piece], will_continue=True)
    for part in (thought("Hm."), text("I "), text("pay"), types.Part(function_call=args)):
        translator.feed(model(part, partial=True, id="x", branch="b"))
    expected = UnfinishedModelCall(
        "a", "b", [("thought", "Hm."), ("text", "I pay")], [Call("1", "pay", {"to": "An"})]
    )
    assert translator.unfinished() == [expected]
    told = words(
        [signal for signal in translator.end() if not isinstance(signal, InputStarted | InputDelta)]
    )
    assert told == ['call 1 pay {"to":"An"} free', "done 1 error: This call did not finish.", "end"]
    assert translator.unfinished() == [expected]
    assert translator.end() == []


def test_what_was_told_first_is_stored_ahead_of_what_ended_first() -> None:
    translator = Translator(KINDS, files_url="")
    translator.feed(model(text("slow"), partial=True, id="x", branch="b"))
    translator.feed(model(text("quick"), id="y", branch="c"))
    assert [piece.ahead_of for piece in translator.unfinished()] == ["y"]
    translator.feed(Event(author="a", branch="b", id="z", error_code="ValueError"))
    assert [piece.ahead_of for piece in translator.unfinished()] == ["y"]


def test_nothing_is_unfinished_once_the_aggregate_came() -> None:
    translator = Translator(KINDS, files_url="")
    translator.feed(model(text("a"), partial=True, id="x"))
    translator.feed(model(text("a"), id="x"))
    assert translator.unfinished() == []


def test_a_turn_may_end_and_the_exchange_go_on() -> None:
    translator = Translator(KINDS, files_url="")
    told = [*translator.feed(PAY), *translator.feed(asks("1")), *translator.end()]
    assert translator.end() == []
    told += [*translator.feed(gave({"paid": 1})), *translator.feed(model(text("Done.")))]
    told += translator.end()
    assert words(told)[-4:] == ['done 1 {"paid":1}', "step a", "text-1 Done..", "end"]


def test_code_without_a_result_ends_with_the_turn() -> None:
    code = types.ExecutableCode(code="1/0", language=types.Language.PYTHON)
    told = words(translate([model(types.Part(executable_code=code))]))
    assert told[-1] == "done code-1 error: This call did not finish."


def test_a_model_call_whose_aggregate_never_came_is_over_when_the_next_one_speaks() -> None:
    translator = Translator(KINDS, files_url="")
    translator.feed(model(text("lost"), partial=True, id="x"))
    told = translator.feed(model(text("new"), id="y"))
    assert [type(signal) for signal in told[:3]] == [TextSignal, StepFinished, StepStarted]
    assert words(told[2:]) == ["step a", "text-2 new.", "end"]
    assert [piece.parts for piece in translator.unfinished()] == [[("text", "lost")]]
    assert [piece.ahead_of for piece in translator.unfinished()] == ["y"]


def test_a_failure_ends_the_model_call_it_happened_in() -> None:
    translator = Translator(KINDS, files_url="")
    translator.feed(model(text("lost"), partial=True, id="x"))
    assert translator.feed(Event(author="a", id="y", actions=EventActions(end_of_agent=True))) == []
    ended = translator.feed(Event(author="a", id="z", error_code="ValueError"))
    assert [type(signal) for signal in ended] == [TextSignal, StepFinished]
    assert words(translator.end()) == ["failed ValueError"]
