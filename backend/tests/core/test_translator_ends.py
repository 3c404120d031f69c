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
from tests.core.event_factory import KINDS, PAY, confirmation_requests, model, response_event
from tests.core.signal_words import translate, words


def test_the_emitted_content_of_an_unfinished_model_call_can_be_stored() -> None:
    translator = Translator(KINDS, files_url="")
    piece = types.PartialArg(json_path="$.to", string_value="An")
    args = types.FunctionCall(id="1", name="pay", partial_args=[piece], will_continue=True)
    for part in (thought("Hm."), text("I "), text("pay"), types.Part(function_call=args)):
        translator.feed(model(part, partial=True, id="x", branch="b"))
    expected = UnfinishedModelCall(
        "a", "b", [("thought", "Hm."), ("text", "I pay")], [Call("1", "pay", {"to": "An"})]
    )
    assert translator.unfinished() == [expected]
    emitted = words(
        [signal for signal in translator.end() if not isinstance(signal, InputStarted | InputDelta)]
    )
    assert emitted == [
        'call 1 pay {"to":"An"} free',
        "done 1 error: This call did not finish.",
        "end",
    ]
    assert translator.unfinished() == [expected]
    assert translator.end() == []


def test_an_unfinished_model_call_is_stored_ahead_of_a_later_one_that_ended() -> None:
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


def test_an_exchange_may_continue_after_the_end_of_a_turn() -> None:
    translator = Translator(KINDS, files_url="")
    emitted = [
        *translator.feed(PAY),
        *translator.feed(confirmation_requests("1")),
        *translator.end(),
    ]
    assert translator.end() == []
    emitted += [
        *translator.feed(response_event({"paid": 1})),
        *translator.feed(model(text("Done."))),
    ]
    emitted += translator.end()
    assert words(emitted)[-4:] == ['done 1 {"paid":1}', "step a", "text-1 Done..", "end"]


def test_code_without_a_result_ends_with_the_turn() -> None:
    code = types.ExecutableCode(code="1/0", language=types.Language.PYTHON)
    emitted = words(translate([model(types.Part(executable_code=code))]))
    assert emitted[-1] == "done code-1 error: This call did not finish."


def test_a_model_call_without_aggregate_ends_when_the_next_one_begins() -> None:
    translator = Translator(KINDS, files_url="")
    translator.feed(model(text("lost"), partial=True, id="x"))
    emitted = translator.feed(model(text("new"), id="y"))
    assert [type(signal) for signal in emitted[:3]] == [TextSignal, StepFinished, StepStarted]
    assert words(emitted[2:]) == ["step a", "text-2 new.", "end"]
    assert [piece.parts for piece in translator.unfinished()] == [[("text", "lost")]]
    assert [piece.ahead_of for piece in translator.unfinished()] == ["y"]


def test_a_failure_ends_the_model_call_it_happened_in() -> None:
    translator = Translator(KINDS, files_url="")
    translator.feed(model(text("lost"), partial=True, id="x"))
    assert translator.feed(Event(author="a", id="y", actions=EventActions(end_of_agent=True))) == []
    ended = translator.feed(Event(author="a", id="z", error_code="ValueError"))
    assert [type(signal) for signal in ended] == [TextSignal, StepFinished]
    assert words(translator.end()) == ["failed ValueError"]
