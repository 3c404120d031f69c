"""Every conformance story through the real Runner, with every confirmation approved."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import errors

from sluicegate.replay import load_scenarios
from tests.agents import conformance_agent
from tests.agents.conformance_agent import NAME, SCENARIOS, SECRET, root_agent
from tests.agents.conversation import CHAT, Conversation, calls, parts


class Forgiving(BasePlugin):
    """Continues the conversation after the expected failure of a tool."""

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
        # The deliberate error of the tool, and the error of ADK for a missing tool.
        assert isinstance(error, RuntimeError | ValueError)
        return {"error": str(error)}


def lines(effects: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in effects.read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Story:
    """The outcome if all is approved: effects, number of confirmations, final text."""

    words: str
    effects: tuple[str, ...] = ()
    asked: int = 0
    located: int = 0


ONE_APPROVAL = Story("The payment is settled.", ("pay",), 1)
STORIES = {
    "plain": Story("Here is a plain answer."),
    "reasoning": Story("Then the answer."),
    "one_tool": Story("A sluice is a gate.", ("lookup",)),
    "approval": ONE_APPROVAL,
    "two_in_one_step": Story("Both are settled.", ("search", "update"), 1),
    "two_in_sequence": Story("Both are settled.", ("search", "update"), 2),
    "five_in_sequence": Story("All five are settled.", ("pay",) * 5, 5),
    "gated_beside_ungated": Story(
        "The word is known and the payment settled.", ("lookup", "pay"), 1
    ),
    "text_around": Story("After the payment.", ("search", "pay"), 2),
    "tool_fails": Story("The tool did not work.", ("fails",), 1),
    "same_answer_twice": ONE_APPROVAL,
    "contradicting_answer": ONE_APPROVAL,
    "forged_answer": ONE_APPROVAL,
    "foreign_answer": ONE_APPROVAL,
    "expired_answer": Story("The payment is settled.", ("pay_soon",), 1),
    "two_people": Story("The payment is settled.", ("pay_together",), 1),
    "new_text": ONE_APPROVAL,
    "reload": ONE_APPROVAL,
    "sixty_chunks": Story(" ".join(f"piece {number:02}" for number in range(1, 61)) + "."),
    "sixty_thoughts": Story("That was all I thought.", ("lookup",)),
    "sixty_thoughts_later": Story("That was all I thought.", ("pay", "lookup"), 1),
    "client_tool": Story("That is where you are.", located=1),
    "two_client_tools": Story("That is where you are.", located=2),
    "client_tool_beside_gate": Story(
        "The place is known and the payment settled.", ("pay",), 1, located=1
    ),
    "client_tool_gated": Story("The exact place is settled.", (), 1, located=1),
    "asks_when_big": Story("The big payment is settled.", ("ask_when_big",), 1),
    "asks_not_when_small": Story("The small payment is done.", ("ask_when_big",)),
    "asks_dynamically": Story("The payment is settled.", ("ask_dynamic",), 1),
    # ADK: it asks no second time, and the model gets the placeholder.
    "asks_twice": Story("The payment is settled.", (), 1),
    "asks_again": Story("I tried twice.", ("pay", "pay"), 2),
    "eleven_in_one_step": Story("All eleven are settled.", ("pay",) * 11, 1),
    "twenty_one_in_sequence": Story("All of them are settled.", ("pay",) * 21, 21),
    "streamed_arguments": Story("The search is settled.", ("search",), 1),
    "unknown_tool": Story("There is no such tool."),
    "page_tool": Story("That is the top."),
    "empty": Story("", ("pay",), 1),
    "silent": Story("", ("notify", "notify"), 2),
    "sources": Story("A sluice is a gate."),
    "image": Story("Here it is: "),
    "code": Story("It is four."),
    "cut": Story("This sentence is too long to"),
    "secrets": Story(f"The end holds {SECRET}.", ("search",), 1),
    "after": Story("Here is another answer."),
}
UNFINISHED = {
    "model_fails": 0,
    "model_fails_later": 1,
    "stop": 0,
    "stop_after_approval": 1,
}


async def answer_everything(chat: Conversation, story: str) -> Story:
    """Approve every confirmation and answer every client-side call; the outcome without effects."""
    asked = located = 0
    await chat.say(f"story:{story}")
    while chat.asked or chat.open_calls:
        waiting, places = [*chat.asked], chat.open_calls
        asked, located = asked + bool(waiting), located + len(places)
        for call in places if waiting else places[:-1]:
            await chat.store(call.id or "", call.name or "", {"place": "Bern"})
        if waiting:
            await chat.decide(yes=waiting)
        else:
            await chat.respond(places[-1].id or "", places[-1].name or "", {"place": "Bern"})
    return Story(chat.text, asked=asked, located=located)


@pytest.mark.parametrize("name", STORIES)
async def test_a_story_ends_with_its_final_text_and_effects(name: str, effects: Path) -> None:
    expected = STORIES[name]
    chat = Conversation(root_agent, plugins=[Forgiving()])
    happened = await answer_everything(chat, name)
    assert (happened.asked, happened.located) == (expected.asked, expected.located)
    assert happened.words == expected.words
    assert sorted(line["tool"] for line in lines(effects)) == sorted(expected.effects)


@pytest.mark.parametrize("name", ["model_fails", "model_fails_later"])
async def test_a_failing_model_raises_after_a_partial_text(name: str, effects: Path) -> None:
    chat = Conversation(root_agent)
    with pytest.raises(errors.ServerError, match=SECRET):
        await answer_everything(chat, name)
    said = "".join(part.text or "" for event in chat.events for part in parts(event))
    assert said == "I was about to "
    assert len(lines(effects)) == UNFINISHED[name]


@pytest.mark.parametrize("name", ["stop", "stop_after_approval"])
async def test_an_endless_story_waits_for_a_stop(name: str, effects: Path) -> None:
    chat = Conversation(root_agent)
    approvals = UNFINISHED[name]
    if approvals:
        await chat.say(f"story:{name}")
        await chat.decide(yes=[*chat.asked], stop_after=3)
    else:
        await chat.say(f"story:{name}", stop_after=2)
    assert [event.error_code for event in chat.events][-1] == "INVOCATION_ABORTED"
    assert len(lines(effects)) == approvals


async def test_an_effect_contains_its_arguments_chat_and_call(effects: Path) -> None:
    chat = Conversation(root_agent)
    await chat.say("story:approval")
    (call,) = [call for call in calls(chat.events) if call.name == "pay"]
    await chat.decide(yes=[*chat.asked])
    expected = {"tool": "pay", "args": {"amount": 5}, "chat": CHAT, "call": call.id}
    assert lines(effects) == [expected]


async def test_a_dynamic_confirmation_has_a_hint_and_a_payload_and_respects_a_denial(
    effects: Path,
) -> None:
    chat = Conversation(root_agent)
    await chat.say("story:asks_dynamically")
    (question,) = [call.args for call in calls(chat.events) if call.id in chat.asked]
    assert question is not None
    assert question["toolConfirmation"]["hint"] == "Shall 8 be paid?"
    assert question["toolConfirmation"]["payload"] == {"amount": 8}
    await chat.decide(no=[*chat.asked])
    assert chat.read == [("ask_dynamic", {"status": "refused"})]
    assert lines(effects) == []


async def test_sixty_thoughts_are_streamed_one_by_one() -> None:
    chat = Conversation(root_agent)
    await chat.say("story:sixty_thoughts")
    thoughts = [part for event in chat.events if event.partial for part in parts(event)]
    assert sum(part.thought is True for part in thoughts) == 60


async def test_the_model_waits_while_its_chat_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[tuple[str, str]] = []

    def is_held(chat: str, tool: str) -> bool:
        looks.append((chat, tool))
        return len(looks) in (1, 3, 4)

    monkeypatch.setattr(conformance_agent, "is_held", is_held)
    chat = Conversation(root_agent)
    await chat.say("story:one_tool")
    assert looks == [(CHAT, "")] * 2 + [(CHAT, "lookup")] * 3
    assert chat.text == "A sluice is a gate."


@pytest.mark.parametrize(
    ("file", "tool", "held"),
    [
        (CHAT, "", True),
        (CHAT, "lookup", True),
        (f"{CHAT}.lookup", "", False),
        (f"{CHAT}.lookup", "lookup", True),
        (f"{CHAT}.lookup", "pay", False),
        ("another", "", False),
    ],
)
def test_a_chat_is_paused_by_a_file_named_after_it(
    file: str, tool: str, held: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).touch()
    monkeypatch.delenv("SLUICEGATE_HOLDS", raising=False)
    assert not conformance_agent.is_held(CHAT, tool)
    monkeypatch.setenv("SLUICEGATE_HOLDS", str(tmp_path))
    assert conformance_agent.is_held(CHAT, tool) is held


async def test_the_long_story_is_streamed_in_sixty_pieces() -> None:
    chat = Conversation(root_agent)
    await chat.say("story:sixty_chunks")
    assert sum(event.partial is True for event in chat.events) == 60


async def test_streamed_arguments_arrive_in_pieces() -> None:
    chat = Conversation(root_agent)
    await chat.say("story:streamed_arguments")
    pieces = [
        argument.string_value
        for event in chat.events
        if event.partial
        for call in event.get_function_calls()
        for argument in call.partial_args or []
    ]
    assert pieces == ["all u", "sers ", "of th", "is mo", "nth"]


SCRIPT = load_scenarios(SCENARIOS)
HEAD = SCENARIOS.read_text(encoding="utf-8").split("scenarios:")[0]
NAMES = re.findall(r"^#   (\w+)  ", HEAD, re.MULTILINE)


def test_the_module_docstring_names_every_story() -> None:
    patterns = [scenario.match.pattern for scenario in SCRIPT.scenarios]
    assert patterns == [rf"^story:{name}\b" for name in NAMES]
    assert set(NAMES) == STORIES.keys() | UNFINISHED.keys()


@pytest.mark.parametrize("name", NAMES)
def test_each_prompt_matches_its_own_story(name: str) -> None:
    found = SCRIPT.first(f"story:{name} (chat 7)", NAME, NAME)
    assert found is not None
    assert found.match.pattern == rf"^story:{name}\b"
