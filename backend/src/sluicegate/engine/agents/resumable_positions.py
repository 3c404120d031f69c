"""Where in an agent tree a tool may wait for a person, because ADK comes back to it.

ADK 2.13 resumes an invocation by quite different code for agents, shell agents (SequentialAgent,
ParallelAgent, LoopAgent) and Workflows, and loses the answer, or goes on without it, where one is
nested in another in a way nobody foresaw. The table below is what works, each row seen with the
real Runner; everything else is refused at start with a way out, so that nothing is lost silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent

from sluicegate.adk_private import overrides_run
from sluicegate.engine.agents.code_names import find_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.workflow import BaseNode

State: TypeAlias = Literal[
    "chat", "guest", "task", "single", "node", "visitor", "chat-node", "flow", "shell", "step"
]
"""How a node is being run: the root LlmAgent (``chat``) and one it transfers to (``guest``), a
delegated ``task`` or ``single`` turn, an LlmAgent as node of a Workflow (``node``, ``chat-node``)
or transferred to from one (``visitor``), a Workflow and its tool and function nodes (``flow``), a
shell agent from the root down (``shell``) and an LlmAgent it runs (``step``)."""

Way: TypeAlias = Literal["sub-agent", "node", "tool", "agent-tool"]
"""How the tree leads on: ``sub_agents``, a node of a graph or a function, a node wrapped as a tool,
an ``AgentTool``."""

_Link: TypeAlias = Literal[
    "transfer", "single", "task", "shell", "node", "chat-node", "flow", "agent-tool"
]

_RESUMED: Final[Mapping[State, Mapping[_Link, State]]] = MappingProxyType(
    {
        "chat": {"transfer": "guest", "single": "single", "task": "task", "flow": "flow"},
        "guest": {"transfer": "guest", "single": "single", "flow": "flow"},
        "task": {"single": "single", "task": "task", "flow": "flow"},
        "single": {"single": "single"},
        "node": {"transfer": "visitor"},
        "visitor": {},
        "chat-node": {"single": "single", "task": "task", "flow": "flow"},
        "flow": {"node": "node", "chat-node": "chat-node", "task": "task", "flow": "flow"},
        "shell": {"transfer": "step", "shell": "shell"},
        "step": {"transfer": "step", "shell": "shell"},
    }
)

_RECORDING: Final = "set_agent_state"


@dataclass(frozen=True, slots=True)
class ResumablePosition:
    """A node of the tree as it is reached on one way from the root.

    ``trouble`` is empty where ADK comes back after an answer; else a clause that says what would
    happen and the way out, to stand after "… asks for approval, but".
    """

    name: str
    state: State
    trouble: str = ""


def root_position(root: BaseNode) -> ResumablePosition:
    """The place of the root: an LlmAgent, a shell agent, a Workflow or another node."""
    if isinstance(root, LlmAgent):
        return ResumablePosition(root.name, "task" if root.mode == "task" else "chat")
    if isinstance(root, BaseAgent):
        return ResumablePosition(root.name, "shell", _unrecorded(root))
    return ResumablePosition(root.name, "flow")


def enter(place: ResumablePosition, way: Way, child: BaseNode) -> ResumablePosition:
    """The place of ``child``, one step further down."""
    link = _link(place, way, child)
    state = _RESUMED[place.state].get(link)
    if place.trouble:
        return ResumablePosition(child.name, state or place.state, place.trouble)
    if state is None:
        return ResumablePosition(child.name, place.state, _way_out(place, link, child))
    if isinstance(child, BaseAgent) and not isinstance(child, LlmAgent):
        return ResumablePosition(child.name, state, _unrecorded(child))
    return ResumablePosition(child.name, state)


def _link(place: ResumablePosition, way: Way, child: BaseNode) -> _Link:
    if way == "agent-tool":
        return "agent-tool"
    if not isinstance(child, BaseAgent):
        return "flow"
    if not isinstance(child, LlmAgent):
        return "shell"
    if child.mode == "task" and place.state != "shell":
        return "task"
    if way == "node":
        return "chat-node" if child.mode == "chat" else "node"
    delegated = child.mode == "single_turn" and place.state != "shell"
    return "single" if delegated else "transfer"


def _way_out(place: ResumablePosition, link: _Link, child: BaseNode) -> str:
    inner, outer = f"{child.name!r}", f"{place.name!r}"
    if link == "agent-tool":
        return (
            f"AgentTool({child.name}) cannot wait for an answer; list {inner} under sub_agents of "
            f'{outer} with mode="single_turn" instead of wrapping it in AgentTool'
        )
    if link == "shell":
        return _way_out_of_shell(place, child)
    if place.state in ("node", "visitor"):
        return (
            f"the Workflow goes on without waiting for {inner} below its node {outer}; make "
            f"{inner} a node of the Workflow itself"
        )
    if link == "transfer":
        return (
            f"the answer would be lost after the transfer from {outer} to {inner}; give {inner} "
            'mode="single_turn"'
        )
    if link == "flow" and place.state == "step":
        return (
            f"ADK cannot run it below {outer} in a sequential, parallel or loop agent; build the "
            f"whole as a Workflow with {inner} as one of its nodes"
        )
    if place.state == "step":
        return (
            f"ADK cannot run {inner} with its mode below {outer} in a sequential, parallel or loop "
            f"agent; leave its mode out, so that {outer} transfers to it"
        )
    if link == "task":
        return f'ADK cannot run the task agent {inner} below {outer}; give it mode="single_turn"'
    return (
        f"the answer would be lost in {inner} below the single_turn agent {outer}; give {inner} to "
        f"the agent above {outer}"
    )


def _way_out_of_shell(place: ResumablePosition, child: BaseNode) -> str:
    inner, outer = f"{child.name!r} ({type(child).__name__})", f"{place.name!r}"
    if place.state == "flow":
        return (
            f"ADK would take the answer for the output of {inner}, a node of {outer}; make the "
            f"sub-agents of {child.name!r} nodes of a Workflow instead"
        )
    message = (
        f"ADK does not come back to {inner} under {outer} after an answer; make {child.name!r} the "
        "root agent"
    )
    if place.state in ("single", "node", "visitor"):
        return message
    return f"{message}, or give {outer} a Workflow of its sub-agents in tools"


def _unrecorded(agent: BaseAgent) -> str:
    """The trouble of an agent class that orchestrates by itself and keeps no note of its place."""
    kind = next(base for base in type(agent).__mro__ if overrides_run(base))
    if kind.__module__.startswith("google.adk.") or find_name(kind, _RECORDING):
        return ""
    return (
        f"what {kind.__name__} does after it would never run, since the class does not record its "
        f"place with {_RECORDING}; use a SequentialAgent or a Workflow instead"
    )
