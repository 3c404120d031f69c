"""Agents whose partial text is not observed by user code."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App
from google.adk.code_executors.unsafe_local_code_executor import UnsafeLocalCodeExecutor
from google.adk.events.event import Event
from google.adk.planners.built_in_planner import BuiltInPlanner
from google.adk.planners.plan_re_act_planner import PlanReActPlanner
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import BaseNode, Workflow
from google.genai import types

from sluicegate.engine.agents.fast_lane_agents import unobserved_agents


class Orchestrator(BaseAgent):
    """Runs its sub-agents itself and may observe their events."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for agent in self.sub_agents:
            async for event in agent.run_async(ctx):
                yield event


class Painted(LlmAgent):
    """An agent with one additional field."""

    color: str = "red"

    def paint(self) -> str:
        """ADK does not call it."""
        return self.color


class Overridden(LlmAgent):
    """Runs in a way of its own."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        async for event in super()._run_async_impl(ctx):
            yield event


class Planner(BuiltInPlanner):
    """A planner that rewrites the response of the model."""

    def process_planning_response(self, callback_context: Any, response_parts: Any) -> Any:
        return response_parts


class EventObserver(BasePlugin):
    """Sees every event."""

    async def on_event_callback(self, *, invocation_context: Any, event: Event) -> None:
        """Look at it."""


class ResponseObserver(BasePlugin):
    """Sees every response."""

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Look at it."""


class ToolObserver(BasePlugin):
    """Sees tools alone."""

    async def before_tool_callback(self, **_: Any) -> None:
        """Look at it."""


def listen(**_: Any) -> None:
    """A callback."""


def agent(name: str, **more: Any) -> LlmAgent:
    return LlmAgent(name=name, model="none", **more)


def both() -> list[Any]:
    return [agent("a"), agent("b")]


THINKING = types.ThinkingConfig(include_thoughts=True)
TREES: dict[str, tuple[BaseNode, set[str]]] = {
    "an agent": (agent("a"), {"a"}),
    "a class with a field more": (Painted(name="a", model="none"), {"a"}),
    "a class with a way of its own": (Overridden(name="a", model="none"), set()),
    "a callback": (agent("a", after_model_callback=listen), set()),
    "other callbacks": (
        agent("a", before_model_callback=listen, after_agent_callback=listen),
        {"a"},
    ),
    "the model's own planner": (
        agent("a", planner=BuiltInPlanner(thinking_config=THINKING)),
        {"a"},
    ),
    "a planner that rewrites": (agent("a", planner=PlanReActPlanner()), set()),
    "a planner of one's own": (agent("a", planner=Planner(thinking_config=THINKING)), set()),
    "a code executor": (agent("a", code_executor=UnsafeLocalCodeExecutor()), {"a"}),
    "one of two listens": (
        agent("root", sub_agents=[agent("a", after_model_callback=listen), agent("b")]),
        {"root", "b"},
    ),
    "the parent listens": (
        agent("root", after_model_callback=listen, sub_agents=both()),
        {"a", "b"},
    ),
    "below a way of its own": (
        Overridden(name="root", model="none", sub_agents=both()),
        set(),
    ),
    "in parallel": (ParallelAgent(name="root", sub_agents=both()), {"a", "b"}),
    "in sequence": (SequentialAgent(name="root", sub_agents=both()), {"a", "b"}),
    "in a loop": (LoopAgent(name="root", sub_agents=both()), {"a", "b"}),
    "below an orchestrator": (
        SequentialAgent(
            name="root",
            sub_agents=[Orchestrator(name="own", sub_agents=[agent("a")]), agent("b")],
        ),
        {"b"},
    ),
    "in a workflow": (
        Workflow(name="root", edges=[("START", agent("a"), agent("b"))]),
        {"a", "b"},
    ),
    "in a tool": (agent("root", tools=[AgentTool(agent("inner"))]), {"root"}),
}


@pytest.mark.parametrize("tree", TREES)
def test_an_agent_is_unobserved_when_no_user_code_receives_its_partial_text(tree: str) -> None:
    root, expected = TREES[tree]
    assert unobserved_agents(root) == expected
    assert unobserved_agents(App(name="app", root_agent=root)) == expected


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [(EventObserver, set()), (ResponseObserver, set()), (ToolObserver, {"a"})],
)
def test_a_plugin_that_receives_events_or_responses_observes_every_agent(
    plugin: type[BasePlugin], expected: set[str]
) -> None:
    app = App(name="app", root_agent=agent("a"), plugins=[plugin(name="other")])
    assert unobserved_agents(app) == expected


def test_of_two_agents_with_one_name_both_must_be_unobserved() -> None:
    inner = Workflow(name="inner", edges=[("START", agent("a", after_model_callback=listen))])
    root = Workflow(name="root", edges=[("START", agent("a"), inner)])
    assert unobserved_agents(root) == set()
