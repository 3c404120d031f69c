"""Agent trees with gated tools in places where ADK complicates their confirmation.

Every tree is built anew by its function; the payments are those of the conformance agent, so that
their effects are counted in the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.events.request_input import RequestInput
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import START, JoinNode, Workflow, node

from sluicegate.replay import ScriptedModel, load_scenarios
from tests.agents.conformance_agent import pay

SCRIPT = load_scenarios(Path(__file__).with_name("topologies.yaml"))

Root = BaseAgent | Workflow


def transfer() -> Root:
    """A root that transfers the conversation to a child with a gated tool."""
    return _agent("reception", sub_agents=[_payer("cashier")])


def single_turn() -> Root:
    """A root that calls a child with a gated tool like a tool."""
    return _agent("manager", sub_agents=[_payer("clerk", mode="single_turn")])


def two_single_turn() -> Root:
    """A root that calls two children with gated tools in one step."""
    hands = [_payer(name, mode="single_turn") for name in ("left_hand", "right_hand")]
    return _agent("director", sub_agents=hands)


def sequential() -> Root:
    """A gated tool in the first of two agents."""
    members: list[BaseAgent] = [_payer("first"), _agent("last")]
    return SequentialAgent(name="sequence", sub_agents=members)


def parallel() -> Root:
    """A gated tool in each of two branches."""
    return ParallelAgent(name="side_by_side", sub_agents=_two_payers())


def sequential_around_parallel() -> Root:
    """A gated tool in each of two branches, and an agent after both."""
    branches = ParallelAgent(name="branches", sub_agents=_two_payers())
    return SequentialAgent(name="around", sub_agents=[branches, _agent("last")])


def workflow_node() -> Root:
    """A gated function tool as a node of a workflow."""

    def amount(node_input: Any) -> dict[str, float]:
        return {"amount": 1}

    gated = node(FunctionTool(pay, require_confirmation=True), name="pay_node")
    return Workflow(name="payment_flow", edges=[(START, amount, gated, _agent("last"))])


def workflow_input() -> Root:
    """A workflow that requests input from the user."""

    def ask(node_input: Any) -> Iterator[RequestInput]:
        yield RequestInput(message="Which colour?", response_schema={"type": "string"})

    return Workflow(name="colour_flow", edges=[(START, ask, _agent("last"))])


def workflow_fan_out() -> Root:
    """Two concurrent agents with gated tools, and an agent after both."""
    members = tuple(_two_payers())
    return Workflow(name="fan_out", edges=[(START, members, JoinNode(name="join"), _agent("last"))])


def agent_tool() -> Root:
    """A child with a gated tool inside an agent tool."""
    return _agent("boss", tools=[AgentTool(_payer("hidden"))])


TOPOLOGIES: dict[str, Callable[[], Root]] = {
    build.__name__: build
    for build in (
        transfer,
        single_turn,
        two_single_turn,
        sequential,
        parallel,
        sequential_around_parallel,
        workflow_node,
        workflow_input,
        workflow_fan_out,
        agent_tool,
    )
}


def _agent(name: str, **more: Any) -> LlmAgent:
    return LlmAgent(
        name=name,
        description=f"The agent called {name}.",
        model=ScriptedModel(scenarios=SCRIPT),
        **more,
    )


def _payer(name: str, **more: Any) -> LlmAgent:
    return _agent(name, tools=[FunctionTool(pay, require_confirmation=True)], **more)


def _two_payers() -> list[BaseAgent]:
    return [_payer("first"), _payer("second")]
