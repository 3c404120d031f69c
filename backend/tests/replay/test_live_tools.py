"""Tools in live conversations: calls, results, the background."""

from __future__ import annotations

import pytest
from google.genai import types

from tests.replay.live_runs import summary_of, talk
from tests.replay.live_scripts import (
    BEGUN,
    GEMINI_3,
    STORY,
    TEXT,
    Counter,
    Pause,
    agent,
    call,
    price,
    scenario,
    script,
    sentences,
    text,
)

TOOL_STORY = {"One.", "call price", "result price", "complete", "Both."}


@pytest.mark.parametrize("name", ["scripted", GEMINI_3])
async def test_the_result_of_a_tool_is_answered_by_the_next_response(name: str) -> None:
    steps = (
        [text("One."), call("price", item="tea")],
        [call("price", item="milk")],
        [text("Both.")],
    )
    async with talk(agent(script(scenario("", *steps), name=name), price), TEXT) as chat:
        chat.say("go")
        seen = summary_of(await chat.until(lambda event: "Both." in summary_of([event])))
    kept = [word for word in seen if word in TOOL_STORY]
    one = ["One.", "call price", "result price"]
    again = ["call price", "result price"]
    turn_ends = [] if name == GEMINI_3 else ["complete"]
    assert kept == [*one, *turn_ends, *again, *turn_ends, "Both."]


async def test_the_conversation_continues_while_a_background_tool_runs() -> None:
    counter = Counter()
    model = script(
        scenario("fetch", [call("fetch", item="a")], [text("Fetched.")]),
        scenario("weather", [text("Sunny.")]),
    )
    async with talk(agent(model, counter.tool()), TEXT) as chat:
        chat.say("fetch it")
        await chat.turn()
        chat.say("what weather?")
        assert sentences(await chat.turn()) == ["Sunny."]
        counter.open["a"].set()
        assert sentences(await chat.turn()) == ["Fetched."]


async def test_the_next_response_is_played_after_all_results() -> None:
    counter = Counter()
    steps = ([call("fetch", item="a"), call("fetch", item="b")], [text("Both.")])
    async with talk(agent(script(scenario("", *steps)), counter.tool()), TEXT) as chat:
        chat.say("go")
        await chat.turn()
        counter.open["b"].set()
        first = await chat.until(lambda event: event.get_function_responses())
        assert sentences(first) == []
        counter.open["a"].set()
        assert summary_of(await chat.turn())[0] == "result fetch"
        assert sentences(chat.events) == ["Both."]


async def test_a_silent_result_is_not_answered() -> None:
    counter = Counter()
    model = script(
        scenario("fetch", [call("fetch", item="a")], [text("Fetched.")]),
        scenario("weather", [text("Sunny.")]),
    )
    tool = counter.tool(types.FunctionResponseScheduling.SILENT)
    async with talk(agent(model, tool), TEXT) as chat:
        chat.say("fetch it")
        await chat.turn()
        counter.open["a"].set()
        await chat.until(lambda event: event.get_function_responses())
        chat.say("what weather?")
        assert sentences(await chat.turn()) == ["Sunny."]


@pytest.mark.parametrize("scheduling", ["INTERRUPT", "WHEN_IDLE"])
async def test_a_result_waits_for_silence_or_interrupts_as_it_is_scheduled(scheduling: str) -> None:
    counter, breath = Counter(), Pause()
    model = breath.model(scenario("fetch", [call("fetch", item="a")], [text("Fetched.")]), STORY)
    tool = counter.tool(types.FunctionResponseScheduling(scheduling))
    async with talk(agent(model, tool), TEXT) as chat:
        chat.say("fetch it")
        await chat.turn()
        chat.say("a story")
        await chat.until(lambda event: BEGUN in summary_of([event]))
        counter.open["a"].set()
        await chat.until(lambda event: event.get_function_responses())
        if scheduling == "WHEN_IDLE":
            breath.over.set()
        whole, cut = "Once upon a time there was", "Once upo!"
        assert (whole if scheduling == "WHEN_IDLE" else cut) in summary_of(await chat.turn())
        assert sentences(await chat.turn()) == ["Fetched."]


async def test_a_result_of_an_unknown_call_is_reported() -> None:
    async with talk(agent(script(scenario("", [text("Hi.")]))), TEXT) as chat:
        response = types.FunctionResponse(id="x", name="pay", response={})
        content = types.Content(role="user", parts=[types.Part(function_response=response)])
        chat.queue.send_content(content)
        answer = "The model got a result of pay, which it had not called."
        assert sentences(await chat.turn()) == [answer]
