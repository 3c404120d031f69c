"""Agent trees in which ADK loses a decision or continues without it.

The remedy of those that the engine refuses is given; it is empty for those that it serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.loop_agent import LoopAgent
from google.adk.events.event import Event
from google.adk.tools.agent_tool import AgentTool

from tests.engine.adk_story import Story, step
from tests.engine.topologies import (
    Build,
    delegate,
    dynamic,
    flow,
    looping,
    parallel,
    sequence,
    singles,
    tool_flow,
)


class OwnOrder(BaseAgent):
    """Runs its sub-agents by its own rules, keeps no note of where it is, and does something."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for agent in self.sub_agents:
            await asyncio.sleep(0)
            async for event in agent.run_async(ctx):
                yield event


def _boss(story: Story, **settings: Any) -> Any:
    return story.talker("m", *delegate("a"), sub_agents=singles(story, "a"), **settings)


def _flow_boss(story: Story, **settings: Any) -> Any:
    return story.talker("m", *delegate("flow"), tools=[tool_flow(story)], **settings)


TO_SHELLS = ("a transfer to a sequence", "a transfer to parallel agents", "a transfer to a loop")
"""Those of the trees below whose root hands over to a shell agent."""

LOST: dict[str, tuple[Build, str]] = {
    "AgentTool": (
        lambda s: s.talker("root", *delegate("a"), tools=[AgentTool(s.asker("a"))]),
        "",
    ),
    "AgentTool, deeper": (
        lambda s: s.talker(
            "root",
            *delegate("m"),
            tools=[AgentTool(s.hander("m", a := s.asker("a"), sub_agents=[a]))],
        ),
        "",
    ),
    "AgentTool of a sequence": (
        lambda s: s.talker("root", *delegate("seq"), tools=[AgentTool(sequence(s.asker("a")))]),
        "",
    ),
    "AgentTool below a sequence": (
        lambda s: sequence(s.talker("m", *delegate("a"), tools=[AgentTool(s.asker("a"))])),
        "",
    ),
    "AgentTool below a node of a Workflow": (
        lambda s: flow(
            "wf", s.talker("m", *delegate("a"), tools=[AgentTool(s.asker("a"))]), step("end")
        ),
        "",
    ),
    "AgentTool without plugins": (
        lambda s: s.talker(
            "root", *delegate("a"), tools=[AgentTool(s.asker("a"), include_plugins=False)]
        ),
        "leave include_plugins out",
    ),
    "a transfer to a sequence": (
        lambda s: s.hander("root", q := sequence(s.asker("a"), s.asker("b")), sub_agents=[q]),
        "",
    ),
    "a transfer to parallel agents": (
        lambda s: s.hander("root", p := parallel(s.asker("a"), s.asker("b")), sub_agents=[p]),
        "",
    ),
    "a transfer to a loop": (
        lambda s: s.hander(
            "root",
            p := LoopAgent(name="loop", max_iterations=2, sub_agents=[looping(s)]),
            sub_agents=[p],
        ),
        "",
    ),
    "a transfer from a single_turn agent": (
        lambda s: s.talker(
            "root",
            *delegate("m"),
            sub_agents=[s.hander("m", a := s.asker("a"), sub_agents=[a], mode="single_turn")],
        ),
        "give 'a' mode=\"single_turn\"",
    ),
    "a task below a transfer": (
        lambda s: s.hander(
            "root",
            m := s.talker(
                "m",
                *delegate("t"),
                sub_agents=[s.tasker("t", *delegate("x"), tools=[s.gated("x")])],
            ),
            sub_agents=[m],
        ),
        'give it mode="single_turn"',
    ),
    "a sequence as node of a Workflow": (
        lambda s: flow("wf", sequence(s.asker("a"), s.asker("b")), step("end")),
        "",
    ),
    "parallel agents as node of a Workflow": (
        lambda s: flow("wf", parallel(s.asker("a"), s.asker("b")), step("end")),
        "",
    ),
    "a sequence run by a function": (
        lambda s: flow("wf", dynamic(sequence(s.asker("a"))), step("end")),
        "",
    ),
    "a single_turn agent below a node of a Workflow": (
        lambda s: flow("wf", _boss(s), step("end")),
        "",
    ),
    "a Workflow in tools of a node of a Workflow": (
        lambda s: flow("wf", _flow_boss(s), step("end")),
        "",
    ),
    "a transfer from a chat node of a Workflow": (
        lambda s: flow("wf", s.hander("m", a := s.asker("a"), sub_agents=[a], mode="chat")),
        "give 'a' mode=\"single_turn\"",
    ),
    "a single_turn agent below a step of a sequence": (
        lambda s: sequence(_boss(s), s.talker("last")),
        "leave its mode out, so that 'm' transfers to it",
    ),
    "a Workflow in tools of a step of a sequence": (
        lambda s: sequence(_flow_boss(s), s.talker("last")),
        "build the whole as a Workflow with 'flow' as one of its nodes",
    ),
    "an agent class with its own order": (
        lambda s: OwnOrder(name="own", sub_agents=[s.asker("a"), s.asker("b")]),
        "let OwnOrder only choose which sub-agents run",
    ),
}

SERVED = tuple(name for name, (_, remedy) in LOST.items() if not remedy)
"""Those that the engine serves."""
