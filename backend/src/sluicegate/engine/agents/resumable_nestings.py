"""Positions in an agent tree at which a tool is resumed after an approval.

ADK 2.13 runs agents, shell agents (SequentialAgent, ParallelAgent, LoopAgent) and Workflows by
different code, and resumes only some of their nestings. The copy of the tree resumes most of the
others (`resumed_agent_nodes`, `inline_agent_tools`). The table below lists the nestings that work,
each tested with the real Runner; all others are refused at start with a remedy, so that no approval
is lost silently. ADK cannot run most of the refused ones at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent

from sluicegate.engine.agents.repeated_effects import repeated_effect
from sluicegate.engine.agents.replay_ended_sub_agent_runs import records_no_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.workflow import BaseNode

State: TypeAlias = Literal[
    "chat",
    "guest",
    "task",
    "single",
    "node",
    "visitor",
    "chat-node",
    "flow",
    "shell",
    "step",
    "node-shell",
    "node-step",
]
"""How a node runs: the root LlmAgent (``chat``) and one it transfers to (``guest``), a delegated
``task`` or ``single`` turn, an LlmAgent as node of a Workflow (``node``, ``chat-node``) or
transferred to from one (``visitor``), a Workflow and its tool and function nodes (``flow``), a
shell agent (``shell``) and an LlmAgent that it runs (``step``). A shell agent below an LlmAgent or
a Workflow runs as a node (``node-shell``), and what it runs can call nodes (``node-step``); so can
the agent of an `AgentTool`."""

Edge: TypeAlias = Literal["sub-agent", "node", "tool", "agent-tool"]
"""The kind of a child: one of ``sub_agents``, a node of a graph or a function, a node wrapped as a
tool, the agent of an ``AgentTool``."""

_Link: TypeAlias = Literal[
    "transfer", "single", "task", "shell", "node", "chat-node", "flow", "called", "called-shell"
]

_CALLED: Final[Mapping[_Link, State]] = {"called": "node-step", "called-shell": "shell"}
_DELEGATED: Final[Mapping[_Link, State]] = {"single": "single", "flow": "flow", **_CALLED}

_RESUMED: Final[Mapping[State, Mapping[_Link, State]]] = MappingProxyType(
    {
        "chat": {**_DELEGATED, "transfer": "guest", "task": "task", "shell": "node-shell"},
        "guest": {**_DELEGATED, "transfer": "guest", "shell": "node-shell"},
        "task": {**_DELEGATED, "task": "task", "shell": "node-shell"},
        "single": _DELEGATED,
        "node": {**_DELEGATED, "transfer": "visitor"},
        "visitor": {},
        "chat-node": {**_DELEGATED, "task": "task", "shell": "node-shell"},
        "flow": {
            "node": "node",
            "chat-node": "chat-node",
            "task": "task",
            "flow": "flow",
            "shell": "node-shell",
        },
        "shell": {"transfer": "step", "shell": "shell"},
        "step": {**_CALLED, "transfer": "step", "shell": "shell"},
        "node-shell": {"transfer": "node-step", "shell": "node-shell"},
        "node-step": {**_DELEGATED, "transfer": "node-step", "shell": "node-shell"},
    }
)

_SHELLS: Final = ("shell", "node-shell")


@dataclass(frozen=True, slots=True)
class ResumablePosition:
    """The position of a node on one path from the root.

    ``problem`` is empty if ADK resumes the node after a decision; else a clause that states what
    would happen and the remedy, to follow "… asks for approval, but".
    """

    name: str
    state: State
    problem: str = ""


def root_position(root: BaseNode) -> ResumablePosition:
    """Return the position of a root: an LlmAgent, a shell agent, a Workflow or another node."""
    if isinstance(root, LlmAgent):
        return ResumablePosition(root.name, "task" if root.mode == "task" else "chat")
    if isinstance(root, BaseAgent):
        return ResumablePosition(root.name, "shell", _repeated(root))
    return ResumablePosition(root.name, "flow")


def child_position(position: ResumablePosition, edge: Edge, child: BaseNode) -> ResumablePosition:
    """Return the position of a child of a node."""
    link = _link(position, edge, child)
    state = _RESUMED[position.state].get(link)
    if position.problem:
        return ResumablePosition(child.name, state or position.state, position.problem)
    if state is None:
        return ResumablePosition(child.name, position.state, _problem(position, link, child))
    if isinstance(child, BaseAgent) and not isinstance(child, LlmAgent):
        return ResumablePosition(child.name, state, _repeated(child))
    return ResumablePosition(child.name, state)


def _link(position: ResumablePosition, edge: Edge, child: BaseNode) -> _Link:
    if edge == "agent-tool":
        return "called" if isinstance(child, LlmAgent) else "called-shell"
    if not isinstance(child, BaseAgent):
        return "flow"
    if not isinstance(child, LlmAgent):
        return "shell"
    if position.state in _SHELLS:
        return "transfer"
    if child.mode == "task":
        return "task"
    if edge == "node":
        return "chat-node" if child.mode == "chat" else "node"
    return "single" if child.mode == "single_turn" else "transfer"


def _problem(position: ResumablePosition, link: _Link, child: BaseNode) -> str:
    inner, outer = f"{child.name!r}", f"{position.name!r}"
    if position.state == "visitor":
        return (
            f"the Workflow goes on without waiting for {inner} below its node {outer}; make "
            f"{inner} a node of the Workflow itself"
        )
    if link == "shell":
        return (
            f"ADK cannot run {inner} ({type(child).__name__}) below {outer}, which answers once; "
            f"give {outer} AgentTool({child.name}) in tools instead"
        )
    if link == "transfer":
        return (
            f"the answer would be lost after the transfer from {outer} to {inner}; give {inner} "
            'mode="single_turn"'
        )
    if link == "flow":
        return (
            f"ADK cannot run it below {outer} in a sequential, parallel or loop agent; build the "
            f"whole as a Workflow with {inner} as one of its nodes"
        )
    if position.state == "step":
        return (
            f"ADK cannot run {inner} with its mode below {outer} in a sequential, parallel or loop "
            f"agent; leave its mode out, so that {outer} transfers to it"
        )
    return f'ADK cannot run the task agent {inner} below {outer}; give it mode="single_turn"'


def _repeated(agent: BaseAgent) -> str:
    """Return the problem of a class that records no state and does more than to run sub-agents."""
    effect = repeated_effect(agent) if records_no_state(agent) else ""
    if not effect:
        return ""
    kind = type(agent).__name__
    return (
        f"the code of {kind} runs again after an answer, and it {effect}; let {kind} only choose "
        "which sub-agents run, by the state of the session, and do the rest in their tools and "
        "callbacks"
    )
