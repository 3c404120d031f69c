"""Plays every suggestion of the demo through the real Runner, each decision once yes, once no."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import errors

from sluicegate.demo.agent import NAME, build_agent
from sluicegate.demo.suggestions import SUGGESTIONS
from sluicegate.errors import ToolError
from sluicegate.replay import ScriptedModel
from sluicegate.replay.script_position import Position
from tests.agents.conversation import CONFIRMATION, Conversation, calls, parts, results


class Forgiving(BasePlugin):
    """Lets the model read what a tool says when it fails."""

    def __init__(self) -> None:
        super().__init__("forgiving")

    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        error: Exception,
    ) -> dict[str, Any]:
        assert isinstance(error, ToolError)
        return {"error": error.message}


async def no_wait(_: float) -> None:
    await asyncio.sleep(0)


AGENT = build_agent({}, report_seconds=0)
assert isinstance(AGENT.model, ScriptedModel)
SCRIPT = AGENT.model.scenarios
AGENT.model = AGENT.model.model_copy(update={"sleep": no_wait})


def conversation() -> Conversation:
    return Conversation(AGENT, plugins=[Forgiving()])


@dataclass(frozen=True)
class Story:
    """What a suggestion leads to: free calls, and per turn the tools that ask."""

    asks: tuple[tuple[str, ...], ...] = ()
    free: tuple[str, ...] = ()
    browser: bool = False


PAY, SEARCH, UPDATE = "process_payment", "search_database", "update_database"
STORIES = {
    "Hello! What can you do?": Story(),
    "Why is the sky blue?": Story(),
    "How is the weather in Tokyo?": Story(free=("get_weather",)),
    "Search the database for users": Story(((SEARCH,),)),
    "Pay Ada 50 euros": Story(((PAY,),)),
    "Search and update the database at the same time": Story(((SEARCH, UPDATE),)),
    "Find the inactive users, then archive them": Story(((SEARCH,), (UPDATE,))),
    "Transfer 5000 euros to the landlord": Story((("transfer_money",),)),
    "Archive the old documents": Story((("archive_documents",),)),
    "Pay my five invoices one after the other": Story(((PAY,),) * 5),
    "How is the weather in Bern? And pay the guide": Story(((PAY,),), free=("get_weather",)),
    "Give Ada a refund": Story(((SEARCH,), (PAY,))),
    "How is the weather in Atlantis?": Story(free=("get_weather",)),
    "Draw a chart of the sales": Story(free=("draw_chart",)),
    "Show me the handbook": Story(free=("read_document",)),
    "Where am I?": Story(browser=True),
    "Where am I, and can you book a taxi?": Story(((PAY,),), browser=True),
    "Order paper for the office": Story((("order_supplies",),)),
    "Request five days of leave": Story((("request_leave",),)),
    "Compile the energy report": Story((("slow_report",),)),
    "What is a sluice gate? Name your sources": Story(),
    "Compute the first five squares": Story(),
    "Tell me a long story": Story(),
}
ENDLESS = "Think about it for ever"
FAILING = "Show me how you fail"


@pytest.mark.parametrize("yes", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("suggestion", STORIES)
async def test_a_suggestion_plays_its_scenario_to_a_final_sentence(
    suggestion: str, yes: bool
) -> None:
    story, chat = STORIES[suggestion], conversation()
    await chat.say(suggestion)
    finished = [name for name, _ in results(chat.events)]
    if story.browser:
        (located,) = [call for call in calls(chat.events) if call.name == "get_location"]
        waiting = [*chat.asked]
        await chat.respond(located.id or "", "get_location", {"town": "Bern"})
        if waiting:
            assert chat.text == ""
            chat.events = [event for event in await chat.stored() if event.author == NAME]
    for asked in story.asks:
        assert tuple(chat.asked.values()) == asked
        await (chat.decide(yes=[*chat.asked]) if yes else chat.decide(no=[*chat.asked]))
    assert (tuple(finished), chat.asked) == (story.free, {})
    assert chat.text.endswith((".", "!"))
    assert "The script has no" not in chat.text


async def test_the_failing_tool_explains_its_failure() -> None:
    chat = conversation()
    await chat.say("How is the weather in Atlantis?")
    sentence = "There is no weather station in Atlantis."
    assert results(chat.events) == [("get_weather", {"error": sentence})]


async def test_the_failing_model_fails_within_a_sentence() -> None:
    chat = conversation()
    with pytest.raises(errors.ServerError):
        await chat.say(FAILING)
    assert "".join(part.text or "" for event in chat.events for part in parts(event)) == (
        "I was about to tell you "
    )


async def test_the_endless_answer_waits_for_a_stop() -> None:
    chat = conversation()
    *spoken, sealed = await chat.say(ENDLESS, stop_after=7)
    assert [event.partial for event in spoken] == [True] * 7
    assert sealed.error_code == "INVOCATION_ABORTED"


async def test_the_long_answer_comes_in_sixty_pieces() -> None:
    chat = conversation()
    await chat.say("Tell me a long story")
    assert sum(event.partial is True for event in chat.events) == 60


async def test_the_chart_is_a_file_of_the_tools_result() -> None:
    chat = conversation()
    await chat.say("Draw a chart of the sales")
    (drawn,) = [
        response
        for event in chat.events
        for response in event.get_function_responses()
        if response.parts
    ]
    assert drawn.response == {"title": "Sales per quarter", "bars": 4}
    blob = (drawn.parts or [])[0].inline_data
    assert blob is not None
    assert blob.mime_type == "image/png"


def test_every_suggestion_has_a_scenario_of_its_own() -> None:
    found = [SCRIPT.first(suggestion, NAME, NAME) for suggestion in SUGGESTIONS]
    numbers = [SCRIPT.scenarios.index(scenario) for scenario in found if scenario]
    assert len(set(numbers)) == len(SUGGESTIONS)
    assert len(SCRIPT.scenarios) == len(SUGGESTIONS) + 6, "six answer what is not suggested"


def test_every_suggestion_has_a_story_here() -> None:
    assert {*STORIES, ENDLESS, FAILING} == set(SUGGESTIONS)


@pytest.mark.parametrize(
    ("message", "beginning"),
    [
        ("hey there", "Hello!"),
        ("And the weather in Paris?", "I know the weather in Tokyo."),
        ("xyzzy", "I only play a script"),
        ("", "I only play a script"),
    ],
)
async def test_other_messages_are_answered_kindly(message: str, beginning: str) -> None:
    chat = conversation()
    await chat.say(message)
    assert chat.text.startswith(beginning)
    assert CONFIRMATION not in {call.name for call in calls(chat.events)}


@pytest.mark.parametrize(
    ("text", "recipient", "amount"),
    [
        ("Pay Ada 5 euros", "Ada", 5),
        ("Please send Bob 7.", "Bob", 7),
        ("transfer 12 euros", "Ada", 12),
        ("pay", "Ada", 50),
        ("Pay Ada 50 euros", "Ada", 50),
    ],
)
def test_the_demo_pays_what_it_is_asked_for(text: str, recipient: str, amount: int) -> None:
    position = Position(agent=None, text=text, answered=0)
    response = ScriptedModel(scenarios=SCRIPT).choose_response(position)
    [call] = [part.call for part in response.parts if part.call is not None]
    assert call.args == {"recipient": recipient, "amount": amount}
