"""Positions in an agent tree at which ADK resumes a tool after an approval.

ADK 2.13 resumes an invocation by different code for agents, shell agents (SequentialAgent,
ParallelAgent, LoopAgent) and Workflows. For some nestings it loses the decision or continues
without it. The table below lists the nestings that work, each tested with the real Runner; all
others are refused at start with a remedy, so that no approval is lost silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent

from sluicegate.adk_private import overrides_run
from sluicegate.engine.agents.code_inspection import find_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.workflow import BaseNode

State: TypeAlias = Literal[
    "chat", "guest", "task", "single", "node", "visitor", "chat-node", "flow", "shell", "step"
]
"""How ADK runs a node: the root LlmAgent (``chat``) and one it transfers to (``guest``), a
delegated ``task`` or ``single`` turn, an LlmAgent as node of a Workflow (``node``, ``chat-node``)
or transferred to from one (``visitor``), a Workflow and its tool and function nodes (``flow``), a
shell agent below the root (``shell``) and an LlmAgent that it runs (``step``)."""

Edge: TypeAlias = Literal["sub-agent", "node", "tool", "agent-tool"]
"""The kind of a child: one of ``sub_agents``, a node of a graph or a function, a node wrapped as a
tool, the agent of an ``AgentTool``."""

_Link: TypeAlias = Literal[
    "transfer", "single", "task", "shell", "node", "chat-node", "flow", "agent-tool"
]

_RESUMED: Final[Mapping[State, Mapping[_Link, State]]] = MappingProxyType(
    {
        "chat": {"transfer": "guest", "single": "single", "task": "task", "flow": "flow"},
        "guest": {"transfer": "guest", "single": "single", "flow": "flow"},
        "task": {"single": "single", "task": "task", "flow": "flow"},
        "single": {"single": "single", "flow": "flow"},
        "node": {"transfer": "visitor"},
        "visitor": {},
        "chat-node": {"single": "single", "task": "task", "flow": "flow"},
        "flow": {"node": "node", "chat-node": "chat-node", "task": "task", "flow": "flow"},
        "shell": {"transfer": "step", "shell": "shell"},
        "step": {"transfer": "step", "shell": "shell"},
    }
)

_DELEGATED: Final = ("single", "task", "flow")
_RECORDS_STATE: Final = "set_agent_state"


@dataclass(frozen=True, slots=True)
class ResumablePosition:
    """The position of a node on one path from the root.

    ``problem`` is empty if ADK resumes the node after a decision; else a clause that states what
    would happen and the remedy, to follow "… asks for approval, but".
    """

    name: str
    state: State
    problem: str = ""


def root_position(root: BaseNode, *, in_shell: bool = False) -> ResumablePosition:
    """Return the position of a root: an LlmAgent, a shell agent, a Workflow or another node.

    ``in_shell``: an LlmAgent runs below a `ShellRoot`.
    """
    if isinstance(root, LlmAgent) and in_shell:
        return ResumablePosition(root.name, "step")
    if isinstance(root, LlmAgent):
        return ResumablePosition(root.name, "task" if root.mode == "task" else "chat")
    if isinstance(root, BaseAgent):
        return ResumablePosition(root.name, "shell", _unrecorded(root))
    return ResumablePosition(root.name, "flow")


def child_position(position: ResumablePosition, edge: Edge, child: BaseNode) -> ResumablePosition:
    """Return the position of a child of a node."""
    link = _link(position, edge, child)
    runs_inline = link == "agent-tool" and isinstance(child, LlmAgent)
    state = _RESUMED[position.state].get("single" if runs_inline else link)
    if position.problem:
        return ResumablePosition(child.name, state or position.state, position.problem)
    if state is None:
        return ResumablePosition(child.name, position.state, _problem(position, link, child))
    if isinstance(child, BaseAgent) and not isinstance(child, LlmAgent):
        return ResumablePosition(child.name, state, _unrecorded(child))
    return ResumablePosition(child.name, state)


def can_run(position: ResumablePosition, edge: Edge, child: BaseNode) -> bool:
    """Whether ADK runs a child at all: below a shell agent it delegates nothing."""
    return position.state != "step" or _link(position, edge, child) not in _DELEGATED


def _link(position: ResumablePosition, edge: Edge, child: BaseNode) -> _Link:
    if edge == "agent-tool":
        return "agent-tool"
    if not isinstance(child, BaseAgent):
        return "flow"
    if not isinstance(child, LlmAgent):
        return "shell"
    if child.mode == "task" and position.state != "shell":
        return "task"
    if edge == "node":
        return "chat-node" if child.mode == "chat" else "node"
    delegated = child.mode == "single_turn" and position.state != "shell"
    return "single" if delegated else "transfer"


def _problem(position: ResumablePosition, link: _Link, child: BaseNode) -> str:
    inner, outer = f"{child.name!r}", f"{position.name!r}"
    if link == "agent-tool" and not isinstance(child, LlmAgent):
        return (
            f"AgentTool({child.name}) cannot wait for an answer in a {type(child).__name__}; give "
            f"{outer} a Workflow of the agents of {inner} in tools instead"
        )
    if link == "agent-tool" and position.state in ("shell", "step"):
        return (
            f"AgentTool({child.name}) cannot wait for an answer below a sequential, parallel or "
            f"loop agent; let {outer} transfer to {inner} instead"
        )
    if link == "shell":
        return _shell_problem(position, child)
    if position.state in ("node", "visitor"):
        return (
            f"the Workflow goes on without waiting for {inner} below its node {outer}; make "
            f"{inner} a node of the Workflow itself"
        )
    if link == "transfer":
        return (
            f"the answer would be lost after the transfer from {outer} to {inner}; give {inner} "
            'mode="single_turn"'
        )
    if link == "flow" and position.state == "step":
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


def _shell_problem(position: ResumablePosition, child: BaseNode) -> str:
    inner, outer = f"{child.name!r} ({type(child).__name__})", f"{position.name!r}"
    if position.state == "flow":
        return (
            f"ADK would take the answer for the output of {inner}, a node of {outer}; make the "
            f"sub-agents of {child.name!r} nodes of a Workflow instead"
        )
    message = (
        f"ADK does not come back to {inner} under {outer} after an answer; make {child.name!r} the "
        "root agent"
    )
    if position.state in ("single", "node", "visitor"):
        return message
    return f"{message}, or give {outer} a Workflow of its sub-agents in tools"


def _unrecorded(agent: BaseAgent) -> str:
    """Return the problem of an agent class that runs sub-agents and does not record its state."""
    kind = next(base for base in type(agent).__mro__ if overrides_run(base))
    if kind.__module__.startswith("google.adk.") or find_name(kind, _RECORDS_STATE):
        return ""
    return (
        f"what {kind.__name__} does after it would never run, since the class does not record its "
        f"place with {_RECORDS_STATE}; use a SequentialAgent or a Workflow instead"
    )
