"""Calls that the page runs: whose output is believed, and how it is kept (section 6)."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools._request_input_tool import request_input
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool

from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import client_tool
from sluicegate.wire.ui_messages import is_tool_part, tool_name
from tests.engine.adk_story import Story, call, location
from tests.engine.stage import Counted, Prompts, calls, kinds, part_of, read, says, scripted, words
from tests.engine.talk import Talk, Turn, decide
from tests.engine.topologies import delegate, singles

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "preview", "progressive"]
ANYTHING = {"type": "object", "properties": {}}
HERE = client_tool("here", "Where the page is.", ANYTHING)
HERE_GATED = client_tool("here_gated", "Where it is.", ANYTHING, require_confirmation=True)


def give(talk: Talk, tool: str, output: Any = None, *, error: str | None = None) -> None:
    """Change a part as ``addToolOutput`` does."""
    part = part_of(talk.messages[-1], tool)
    if error is not None:
        part["state"], part["errorText"] = "output-error", error
    else:
        part["state"], part["output"] = "output-available", output


async def given(talk: Talk, tool: str, output: Any = None, *, error: str | None = None) -> Turn:
    give(talk, tool, output, error=error)
    return await talk.post_last()


@pytest.mark.parametrize(
    ("output", "told", "release"),
    [
        ({"town": "Delft"}, {"town": "Delft"}, "deferred"),
        ("Delft", {"result": "Delft"}, "preview"),
        (None, {"result": None}, "progressive"),
        ([1, {"a": None}], {"result": [1, {"a": None}]}, "deferred"),
        ({"result": "Delft"}, {"result": "Delft"}, "preview"),
        ({"error": "none"}, {"error": "none"}, "progressive"),
    ],
)
async def test_an_output_of_the_page_reaches_the_model_and_the_history(
    open_stage: Open, prompts: Prompts, release: ReleasePolicy, output: Any, told: Any
) -> None:
    script = [calls(("here", {}), text="Let me see. "), says("There.")]
    talk = Talk(await open_stage(scripted(script, [HERE], before_model_callback=prompts)), release)
    first = await talk.say("where?")
    assert first.finish_reason == "tool-calls"
    turn = await given(talk, "here", output)
    assert turn.finish_reason == "stop"
    assert prompts.results["here"] == told
    stored = await talk.history()
    assert part_of(stored, "here")["output"] == output
    assert comparable(stored) == comparable(turn.message)


@pytest.mark.parametrize("tool", ["here", "here_gated"])
async def test_a_failure_of_the_page_is_stored_as_a_failure(
    open_stage: Open, prompts: Prompts, tool: str
) -> None:
    script = [calls((tool, {})), says("A pity.")]
    agent = scripted(script, [HERE, HERE_GATED], before_model_callback=prompts)
    talk = Talk(await open_stage(agent))
    await talk.say("where?")
    if tool == "here_gated":
        await talk.approve()
    turn = await given(talk, tool, error="No signal.")
    assert prompts.results[tool] == {"error": "No signal."}
    stored = await talk.history()
    assert part_of(stored, tool)["errorText"] == "No signal."
    assert comparable(stored) == comparable(turn.message)


@pytest.mark.parametrize("release", RELEASES)
async def test_a_gated_client_side_call_is_sent_again_after_its_approval(
    open_stage: Open, prompts: Prompts, release: ReleasePolicy
) -> None:
    script = [calls(("here_gated", {})), says("There.")]
    agent = scripted(script, [HERE_GATED], before_model_callback=prompts)
    talk = Talk(await open_stage(agent), release)
    await talk.say("where?")
    decide(talk.pending()[0], approved=True)
    turn = await talk.post_last()
    assert turn.types == ["start", "tool-input-available", "finish"]
    assert turn.finish_reason == "tool-calls"
    assert part_of(await talk.history(), "here_gated")["state"] == "approval-responded"
    assert len(prompts.contents) == 1
    last = await given(talk, "here_gated", {"town": "Delft"})
    assert last.finish_reason == "stop"
    assert "tool-output-available" not in last.types
    part = part_of(await talk.history(), "here_gated")
    assert (part["state"], part["output"]) == ("output-available", {"town": "Delft"})
    assert part["approval"]["approved"] is True
    assert prompts.results["here_gated"] == {"town": "Delft"}


async def test_a_denied_client_side_call_never_reaches_the_page(open_stage: Open) -> None:
    script = [calls(("here_gated", {})), says("Then not.")]
    talk = Talk(await open_stage(scripted(script, [HERE_GATED])))
    await talk.say("where?")
    turn = await talk.answer(approved=False)
    assert turn.finish_reason == "stop"
    assert part_of(turn.message, "here_gated")["state"] == "output-denied"


async def test_outputs_and_decisions_of_one_step_reach_the_model_together(
    open_stage: Open, prompts: Prompts
) -> None:
    counted = Counted()
    script = [calls(("here", {}), ("pay", {"n": 1}), ("here_gated", {})), says("done")]
    tools = [HERE, HERE_GATED, counted.tool()]
    talk = Talk(await open_stage(scripted(script, tools, before_model_callback=prompts)))
    await talk.say("go")
    give(talk, "here", "Delft")
    for part in talk.pending():
        decide(part, approved=True)
    turn = await talk.post_last()
    assert turn.types == ["start", "tool-input-available", "finish"]
    assert (counted.runs, len(prompts.contents)) == ([], 1)
    turn = await given(talk, "here_gated", "Here.")
    assert turn.finish_reason == "stop"
    assert prompts.results == {
        "here": {"result": "Delft"},
        "pay": {"paid": 1},
        "here_gated": {"result": "Here."},
    }
    assert comparable(await talk.history()) == comparable(turn.message)


@pytest.mark.parametrize("release", RELEASES)
async def test_an_output_for_a_server_tool_is_refused(
    open_stage: Open, prompts: Prompts, release: ReleasePolicy
) -> None:
    counted = Counted()
    script = [calls(("here", {}), ("pay", {"n": 1})), says("done")]
    tools = [HERE, counted.tool()]
    agent = scripted(script, tools, before_model_callback=prompts)
    talk = Talk(await open_stage(agent), release)
    await talk.say("go")
    give(talk, "here", "Delft")
    honest = deepcopy(talk.messages[-1])
    part = part_of(talk.messages[-1], "pay")
    del part["approval"]
    part["state"], part["output"] = "output-available", {"paid": 1_000}
    assert (await talk.post_last()).failed
    assert (counted.runs, len(prompts.contents)) == ([], 1)
    talk.messages[-1] = honest
    turn = await talk.approve()
    assert prompts.results["pay"] == {"paid": 1}
    assert part_of(turn.message, "pay")["output"] == {"paid": 1}


async def test_an_output_for_a_long_running_server_tool_is_refused(
    open_stage: Open, prompts: Prompts
) -> None:
    def order(n: int) -> dict[str, Any]:
        """Begin something that takes days."""
        return {"status": "pending", "n": n}

    script = [calls(("order", {"n": 1}), ("here", {})), says("Ordered."), says("never")]
    tools = [LongRunningFunctionTool(order), HERE]
    talk = Talk(await open_stage(scripted(script, tools, before_model_callback=prompts)))
    await talk.say("order")
    part = part_of(talk.messages[-1], "order")
    part["state"], part["output"] = "output-available", {"status": "delivered"}
    turn = await given(talk, "here", "Delft")
    assert words(turn.message) == "Ordered."
    assert prompts.results["order"] == {"status": "pending", "n": 1}
    stored = await talk.history()
    assert part_of(stored, "order")["output"] == {"status": "pending", "n": 1}


async def test_an_output_is_accepted_once(open_stage: Open, prompts: Prompts) -> None:
    script = [calls(("here", {})), says("There.")]
    talk = Talk(await open_stage(scripted(script, [HERE], before_model_callback=prompts)))
    await talk.say("where?")
    await given(talk, "here", "Delft")
    stored = await talk.history()
    turn = await given(talk, "here", "Leiden")
    assert turn.types == ["start", "error"]
    assert await talk.history() == stored
    assert len(prompts.contents) == 2


async def test_two_concurrent_outputs_run_one_turn(open_stage: Open, prompts: Prompts) -> None:
    script = [calls(("here", {})), says("There.")]
    talk = Talk(await open_stage(scripted(script, [HERE], before_model_callback=prompts)))
    await talk.say("where?")
    give(talk, "here", "Delft")
    last = talk.messages[-1]
    body = {"message": last, "messageId": last["id"]}
    readers = await asyncio.gather(talk.start(body), talk.start(body))
    ends = sorted([kinds(await read(reader))[-1] for reader in readers])
    assert ends in (["finish", "finish"], ["error", "finish"])
    assert len(prompts.contents) == 2


async def test_a_new_message_closes_a_client_side_call(open_stage: Open, prompts: Prompts) -> None:
    script = {"where": [calls(("here", {}))], "never": [says("Good.")]}
    talk = Talk(await open_stage(scripted(script, [HERE], before_model_callback=prompts)))
    await talk.say("where?")
    asked = talk.messages[-1]
    assert (await talk.say("never mind")).finish_reason == "stop"
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    part = part_of(chat["messages"][1], "here")
    assert part["state"] == "output-error"
    assert "Not run" in str(prompts.contents[-1])
    late = part_of(asked, "here")
    late["state"], late["output"] = "output-available", "Delft"
    chunks = await read(await talk.start({"message": asked, "messageId": asked["id"]}))
    assert kinds(chunks) == ["start", "error"]


async def test_a_setting_makes_a_long_running_tool_client_side(
    open_stage: Open, prompts: Prompts
) -> None:
    def locate() -> None:
        """Never runs on the server."""
        raise AssertionError

    script = [calls(("locate", {})), says("There.")]
    agent = scripted(script, [LongRunningFunctionTool(locate)], before_model_callback=prompts)
    talk = Talk(await open_stage(agent, client_tools=("locate",)))
    assert (await talk.say("where?")).finish_reason == "tool-calls"
    await given(talk, "locate", "Delft")
    assert prompts.results["locate"] == {"result": "Delft"}


@pytest.mark.parametrize(
    ("release", "is_tool", "tool", "at_once"),
    [
        ("deferred", True, "get_location", True),
        ("preview", False, "get_location", False),
        ("progressive", True, "adk_request_input", False),
        ("deferred", False, "adk_request_input", True),
    ],
)
async def test_a_call_of_the_page_beside_a_called_agent_that_waits_is_shown(
    open_stage: Open, release: ReleasePolicy, is_tool: bool, tool: str, at_once: bool
) -> None:
    story = Story()
    tools: list[Any] = [location(), request_input]
    settings: dict[str, Any] = {"tools": [*tools, AgentTool(story.asker("a"))]}
    if not is_tool:
        settings = {"tools": tools, "sub_agents": singles(story, "a")}
    asked = call(tool, message="Where?") if tool == "adk_request_input" else call(tool)
    root = story.talker("root", asked, *delegate("a"), **settings)
    talk = Talk(await open_stage(root), release)
    await talk.say("go")
    assert part_of(talk.messages[-1], tool)["state"] == "input-available"
    [part] = talk.pending()
    decide(part, approved=True)
    if not at_once:
        turn = await talk.post_last()
        assert f"still waiting for: {tool}." in str(turn.chunks[-1])
    assert not (await given(talk, tool, {"town": "Delft"})).failed
    assert story.effects == ["pay_a"]
    assert words(talk.messages[-1]).endswith("root done")
    assert comparable(await talk.history()) == comparable(talk.messages[-1])


async def test_a_gated_call_of_the_page_beside_a_called_agent_is_requested_after_it(
    open_stage: Open,
) -> None:
    story = Story()
    tools: list[Any] = [HERE_GATED, AgentTool(story.asker("a"))]
    root = story.talker("root", call("here_gated"), *delegate("a"), tools=tools)
    talk = Talk(await open_stage(root))
    await talk.say("go")
    [part] = [each for each in talk.messages[-1]["parts"] if is_tool_part(each)]
    assert tool_name(part) == "pay_a"
    decide(part, approved=True)
    await talk.post_last()
    assert story.effects == ["pay_a"]
    [part] = talk.pending()
    assert tool_name(part) == "here_gated"
    decide(part, approved=True)
    await talk.post_last()
    assert not (await given(talk, "here_gated", {"town": "Delft"})).failed
    assert words(talk.messages[-1]) == "root done"
    assert comparable(await talk.history()) == comparable(talk.messages[-1])
