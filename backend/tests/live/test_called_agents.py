"""Gates inside agents that a live model calls: their calls wait where they run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.agent_tool import AgentTool

from sluicegate.errors import Malformed
from tests.engine.adk_story import step
from tests.engine.loop_time import EVENT_TIMEOUT
from tests.engine.stage import Counted, calls, part_of, says, scripted, words
from tests.engine.talk import Talk
from tests.engine.topologies import Request, flow
from tests.live.caller import Caller, agree, calling

if TYPE_CHECKING:
    from google.adk.agents.llm_agent import LlmAgent

    from tests.engine.stage import Open


def root(counted: Counted, kind: str) -> LlmAgent:
    """An agent that calls another one, which pays."""
    mode = "single_turn" if kind == "single_turn" else None
    payer = scripted(
        [calls(("pay", {"n": 1})), says("It is paid.")],
        [counted.tool()],
        description="Pays.",
        mode=mode,
    )
    payer.name = "payer"
    script = [calls(("payer", {"request": "Pay."})), says("Done.")]
    if kind == "single_turn":
        return scripted(script, sub_agents=[payer])
    return scripted(script, [AgentTool(payer)])


@pytest.mark.parametrize("kind", ["AgentTool", "single_turn"])
@pytest.mark.parametrize("approved", [True, False], ids=["yes", "no"])
async def test_a_gated_call_of_a_called_agent_waits_in_a_live_chat(
    open_stage: Open, kind: str, *, approved: bool
) -> None:
    counted = Counted()
    engine = await open_stage(root(counted, kind))
    async with calling(Caller(engine, "progressive")) as caller:
        async with asyncio.timeout(EVENT_TIMEOUT):
            await caller.say("pay")
        [part] = caller.pending()
        assert part["input"] == {"n": 1}
        assert counted.runs == []
        turn = await caller.answer(approved=approved)
        assert counted.runs == ([1] if approved else [])
        assert part_of(turn.message, "payer")["output"] == {"result": "It is paid."}
        assert words(turn.message).endswith("Done.")
        await agree(caller)
    await agree(caller)


@pytest.mark.parametrize("kind", ["AgentTool", "single_turn"])
@pytest.mark.parametrize("again", ["typed", "live"])
async def test_an_approval_inside_a_called_agent_outlives_the_live_chat(
    open_stage: Open, kind: str, again: str
) -> None:
    counted = Counted()
    engine = await open_stage(root(counted, kind))
    caller = Caller(engine, "progressive")
    async with calling(caller):
        await caller.say("pay")
    if again == "live":
        async with calling(caller):
            turn = await caller.approve()
    else:
        page = Talk(engine, "progressive", chat_id=caller.chat_id)
        page.messages = (await caller.chats())["messages"]
        turn = await page.approve()
    assert not turn.failed
    assert counted.runs == [1]


def _with_a_workflow(counted: Counted, *, is_node: bool) -> LlmAgent:
    """An agent with a Workflow in tools: a tool that asks is a node of it, or of its agent."""
    payer = scripted([calls(("pay", {"n": 1})), says("It is paid.")], [counted.tool()])
    payer.name = "payer"
    nodes = (step("prep", {"n": 1}), counted.tool() if is_node else payer, step("end", {"ok": 1}))
    tools: list[Any] = [flow("books", *nodes, input_schema=Request)]
    return scripted([calls(("books", {"request": "Pay."})), says("Done.")], tools)


async def test_an_agent_whose_workflow_has_a_node_that_asks_cannot_be_used_live(
    open_stage: Open,
) -> None:
    engine = await open_stage(_with_a_workflow(Counted(), is_node=True))
    with pytest.raises(Malformed, match=r"cannot be used live: 'pay' .* Write to the chat instead"):
        async with calling(Caller(engine, "progressive")):
            pass
    talk = Talk(engine, "progressive")
    await talk.say("pay")
    assert len(talk.pending()) == 1


async def test_a_tool_of_an_agent_in_a_workflow_waits_in_a_live_chat(open_stage: Open) -> None:
    counted = Counted()
    engine = await open_stage(_with_a_workflow(counted, is_node=False))
    async with calling(Caller(engine, "progressive")) as caller:
        async with asyncio.timeout(EVENT_TIMEOUT):
            await caller.say("pay")
        turn = await caller.answer(approved=True)
        assert counted.runs == [1]
        assert words(turn.message).endswith("Done.")
