"""Calls of one step, of which one waits inside an agent or a Workflow: the others end first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool

from sluicegate.testing.message_comparison import comparable
from tests.engine.adk_story import step
from tests.engine.stage import (
    HeldTool,
    calls,
    part_of,
    read,
    says,
    scripted,
    stays_pending,
    words,
)
from tests.engine.talk import Talk, decide
from tests.engine.topologies import Request, flow

if TYPE_CHECKING:
    from google.adk.agents.llm_agent import LlmAgent
    from google.adk.tools.base_tool import BaseTool

    from tests.engine.stage import Open

KINDS = ["AgentTool", "single_turn", "Workflow"]
REQUEST = {"request": "please"}


def agent(name: str, script: list[dict[str, Any]], tools: list[Any], **more: Any) -> LlmAgent:
    made = scripted(script, tools, description=f"Does {name}.", **more)
    made.name = name
    return made


def root_with(kind: str, payer: list[BaseTool], others: list[LlmAgent], **more: Any) -> LlmAgent:
    """An agent that calls ``payer``, an agent or a Workflow, whose tools ask one after another."""
    script = [calls(("payer", REQUEST), *more.pop("calls")), says("Done.")]
    tools = [*more.pop("tools", []), *(AgentTool(each) for each in others)]
    if kind == "Workflow":
        tools.append(flow("payer", step("first", {}), *payer, step("last"), input_schema=Request))
        return scripted(script, tools, **more)
    asks = [calls((tool.name, {})) for tool in payer]
    mode = "single_turn" if kind == "single_turn" else None
    called = agent("payer", [*asks, says("Paid.")], payer, mode=mode)
    if kind == "single_turn":
        return scripted(script, tools, sub_agents=[called], **more)
    return scripted(script, [AgentTool(called), *tools], **more)


async def has_asked(talk: Talk, tool: str) -> None:
    """Wait until the call of a tool waits for its approval."""
    while True:
        page = await talk.engine.approvals.waiting(user=talk.user, limit=10, after=None)
        if any(card["tool"] == tool for card in page["approvals"]):
            return


def payments(runs: list[str], *names: str) -> list[BaseTool]:
    """Gated tools that note their runs."""

    def named(name: str) -> BaseTool:
        def pay() -> dict[str, str]:
            """Pay."""
            runs.append(name)
            return {"did": name}

        pay.__name__ = name
        return FunctionTool(pay, require_confirmation=True)

    return [named(name) for name in names]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_free_call_beside_one_that_waits_runs_to_its_end_and_once(
    open_stage: Open, kind: str
) -> None:
    runs: list[str] = []
    held, payer = HeldTool(), payments(runs, "pay")
    root = root_with(kind, payer, [], calls=[("hold", {"n": 1})], tools=[held.tool()])
    talk = Talk(await open_stage(root))
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
    talk.messages.append(question)  # type: ignore[arg-type]
    reader = await talk.start({"message": question})
    reading = asyncio.create_task(read(reader))
    await held.began.wait()
    await has_asked(talk, "pay")
    assert await stays_pending(reading)
    held.may_end.set()
    talk.take(await reading)
    assert held.ended == 1
    await talk.approve()
    assert (held.ended, runs) == (1, ["pay"])
    assert part_of(talk.messages[-1], "hold")["output"] == {"held": 1}
    assert words(talk.messages[-1]).endswith("Done.")
    assert comparable(await talk.history()) == comparable(talk.messages[-1])


@pytest.mark.parametrize("kind", KINDS)
async def test_an_approved_call_runs_to_its_end_while_another_agent_asks_again(
    open_stage: Open, kind: str
) -> None:
    runs: list[str] = []
    held = HeldTool()
    holding = agent(
        "holder",
        [calls(("hold", {"n": 1})), says("Held.")],
        [held.tool(require_confirmation=True)],
    )
    payer = payments(runs, "pay", "pay_more")
    root = root_with(kind, payer, [holding], calls=[("holder", REQUEST)])
    talk = Talk(await open_stage(root))
    await talk.say("go")
    for part in talk.pending():
        decide(part, approved=True)
    last = talk.messages[-1]
    reader = await talk.start({"message": last, "messageId": last["id"]})
    reading = asyncio.create_task(read(reader))
    await held.began.wait()
    await has_asked(talk, "pay_more")
    assert await stays_pending(reading)
    held.may_end.set()
    talk.take(await reading)
    await talk.approve()
    assert (held.ended, runs) == (1, ["pay", "pay_more"])
    assert part_of(talk.messages[-1], "hold")["output"] == {"held": 1}
    states = {each["state"] for each in talk.messages[-1]["metadata"]["approvals"].values()}
    assert states == {"executed"}


async def test_a_gated_call_beside_the_delegation_of_a_task_is_refused_and_made_again(
    open_stage: Open,
) -> None:
    runs: list[str] = []
    helper = agent("helper", [calls(("finish_task", {"result": "It is ready."}))], [], mode="task")
    script = [
        calls(("helper", REQUEST), ("pay", {})),
        calls(("pay", {})),
        says("Done."),
    ]
    talk = Talk(await open_stage(scripted(script, payments(runs, "pay"), sub_agents=[helper])))

    await talk.say("go")
    assert (len(talk.pending()), runs) == (1, [])
    await talk.approve()
    refused, _ = (part for part in talk.messages[-1]["parts"] if part["type"] == "tool-pay")
    assert "Make it in a step of its own." in refused["errorText"]
    assert runs == ["pay"]
    assert words(talk.messages[-1]).endswith("Done.")
    assert comparable(await talk.history()) == comparable(talk.messages[-1])
