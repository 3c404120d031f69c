"""The walk over an agent tree: agents, Workflow graphs, agents in tools, nodes in functions."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import START, BaseNode, FunctionNode, Workflow

from sluicegate.adk_private import function_of, is_delegation_tool
from sluicegate.core.signals import ToolFacts
from sluicegate.engine.agents.code_names import names_in, reachable_functions, values_in
from sluicegate.engine.agents.resumable_positions import ResumablePosition, Way, enter
from sluicegate.engine.agents.tool_facts import (
    Judgement,
    ToolNames,
    as_tool,
    asking_callback,
    facts_of,
    judge,
    toolset_judgement,
)
from sluicegate.tools.gated import DEFAULT_TERMS, ApprovalTerms, terms_of

if TYPE_CHECKING:
    from sluicegate.core.signals import ToolKind

_RUNS_NODES: Final = "run_node"
_NOT_BELOW: Final = frozenset({"parent_agent", "tools", "edges", "graph"})


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A tool as one agent sees it, and where in the tree that agent stands.

    ``agent`` is the author of the events that ask: an LlmAgent, or the Workflow of a tool or
    function node; ``node`` is that node's name, None for a tool of an LlmAgent.
    """

    agent: str
    name: str
    judgement: Judgement
    facts: ToolFacts
    place: ResumablePosition
    node: str | None = None
    is_adks: bool = False
    terms: ApprovalTerms = DEFAULT_TERMS

    @property
    def kind(self) -> ToolKind:
        """What the wire is told (T7)."""
        return self.judgement.kind


@dataclass(frozen=True, slots=True)
class FoundToolset:
    """A toolset that has still to be asked for its tools."""

    agent: str
    toolset: BaseToolset
    place: ResumablePosition
    around: Judgement | None


class TreeWalk:
    """Collects what is found; a node reached at two places is looked at in both."""

    def __init__(self, names: ToolNames, around: Judgement | None) -> None:
        """Take the settings, and what the plugins of the App may ask for every tool."""
        self.found: list[FoundTool] = []
        self.toolsets: list[FoundToolset] = []
        self.agents: list[str] = []
        self._names = names
        self._around = around
        self._seen: set[tuple[int, ResumablePosition]] = set()

    def visit(
        self, node: BaseNode, place: ResumablePosition, *, workflow: str | None = None
    ) -> None:
        """Look at a node and at everything below it; ``workflow`` is the author of its events."""
        if (id(node), place) in self._seen:
            return
        self._seen.add((id(node), place))
        if isinstance(node, BaseAgent):
            self.agents.append(node.name)
        author = workflow or node.name
        if isinstance(node, LlmAgent):
            self._tools_of(node, place)
        elif isinstance(node, FunctionNode):
            self._function(node, place, author)
        elif isinstance(tool := getattr(node, "tool", None), BaseTool):
            self._tool(tool, author, place, self._around, node=node.name)
        self._reached(function_of(node), author, place, "node")
        inner = node.name if isinstance(node, Workflow) else author
        way: Way = "sub-agent" if isinstance(node, BaseAgent) else "node"
        for child in children_of(node):
            below = None if isinstance(child, BaseAgent | Workflow) else inner
            self.visit(child, enter(place, way, child), workflow=below)

    def add_listed(self, found: FoundToolset, tools: Iterable[object]) -> None:
        """Judge the tools of a toolset that could be listed."""
        for tool in tools:
            if isinstance(tool, BaseTool):
                self._tool(tool, found.agent, found.place, found.around)

    def _tools_of(self, agent: LlmAgent, place: ResumablePosition) -> None:
        callbacks = (
            callback
            for group in (
                agent.canonical_before_tool_callbacks,
                agent.canonical_after_tool_callbacks,
                agent.canonical_on_tool_error_callbacks,
            )
            for callback in group
        )
        around = self._around or asking_callback(callbacks, f"A callback of {agent.name!r}")
        for entry in agent.tools:
            if isinstance(entry, BaseToolset):
                said = toolset_judgement(entry) or around
                self.toolsets.append(FoundToolset(agent.name, entry, place, said))
            elif isinstance(entry, BaseNode):
                self.visit(entry, enter(place, "tool", entry))
            else:
                self._tool(as_tool(entry), agent.name, place, around)

    def _tool(
        self,
        tool: BaseTool,
        agent: str,
        place: ResumablePosition,
        around: Judgement | None,
        *,
        node: str | None = None,
    ) -> None:
        judgement = judge(tool, self._names, around=around)
        facts = facts_of(tool, judgement.kind)
        self.found.append(
            FoundTool(
                agent,
                tool.name,
                judgement,
                facts,
                place,
                node,
                is_adks=_is_adks(tool),
                terms=terms_of(tool),
            )
        )
        inner = getattr(tool, "agent", None)
        if isinstance(tool, AgentTool) and isinstance(inner, BaseAgent):
            if not is_delegation_tool(tool):
                self.visit(inner, enter(place, "agent-tool", inner))
        elif isinstance(wrapped := getattr(tool, "node", None), BaseNode):
            self.visit(wrapped, enter(place, "tool", wrapped))
        else:
            self._reached(getattr(tool, "func", None), agent, place, "tool")

    def _reached(self, function: object, author: str, place: ResumablePosition, way: Way) -> None:
        """What a function runs by ``run_node``, as far as its names show it."""
        for each in runnables_in(function):
            if isinstance(each, BaseNode):
                below = None if isinstance(each, BaseAgent | Workflow) else author
                self.visit(each, enter(place, way, each), workflow=below)
            else:
                self._tool(each, author, place, self._around, node=each.name)

    def _function(self, node: FunctionNode, place: ResumablePosition, author: str) -> None:
        """A function of a Workflow asks by its own setting, never by ``request_confirmation``."""
        setting = node.require_confirmation
        if callable(setting):
            why = "Its require_confirmation is decided per call."
            judgement = Judgement("conditional", "sometimes", why)
        elif setting:
            judgement = Judgement("gated", "always", "It declares require_confirmation=True.")
        elif node.name in self._names.dynamic_gates:
            why = "The setting dynamic_gates names it."
            judgement = Judgement("conditional", "sometimes", why)
        else:
            return
        if node.name in self._names.never_gates:
            judgement = Judgement("free", judgement.asks, judgement.why)
        # It asks for itself, and takes its input again from the node before it.
        facts = ToolFacts(kind=judgement.kind, editable=False, rememberable=False)
        self.found.append(FoundTool(author, node.name, judgement, facts, place, node.name))


def children_of(node: BaseNode) -> Iterator[BaseNode]:
    """The nodes that a node declares: sub-agents, nodes of its graph, nodes in its fields."""
    seen = {id(node), id(START)}
    for child in _declared(node):
        if id(child) not in seen:
            seen.add(id(child))
            yield child


def runnables_in(function: object) -> Iterator[BaseNode | BaseTool]:
    """Nodes and tools that a function can name, if its code runs nodes by ``run_node``."""
    for each in reachable_functions(function):
        if _RUNS_NODES in names_in(each.__code__):
            yield from (each for each in values_in(each) if isinstance(each, BaseNode | BaseTool))


async def tools_of(toolset: BaseToolset) -> list[BaseTool]:
    """A toolset's tools under the names the model calls them by, without filling its cache."""
    tools = await toolset.get_tools(None)
    prefix = toolset.tool_name_prefix
    if not prefix:
        return tools
    return [_renamed(tool, f"{prefix}_{tool.name}") for tool in tools]


def _declared(node: BaseNode) -> Iterator[BaseNode]:
    if isinstance(node, Workflow) and node.graph is not None:
        yield from node.graph.nodes
    held: Mapping[str, object] = {**vars(node), **(node.__pydantic_private__ or {})}
    for name, value in held.items():
        if name not in _NOT_BELOW:
            yield from _nodes(value)


def _nodes(value: object) -> Iterator[BaseNode]:
    if isinstance(value, BaseNode):
        yield value
    elif isinstance(value, Mapping):
        yield from (each for each in value.values() if isinstance(each, BaseNode))
    elif isinstance(value, list | tuple):
        yield from (each for each in value if isinstance(each, BaseNode))


def _renamed(tool: BaseTool, name: str) -> BaseTool:
    renamed = copy.copy(tool)
    renamed.name = name
    return renamed


def _is_adks(tool: BaseTool) -> bool:
    """Whether ADK itself wrote what the tool does (``adk_request_input`` is such a tool)."""
    if hasattr(tool, "agent") or hasattr(tool, "node"):
        return False
    module = getattr(getattr(tool, "func", None) or type(tool), "__module__", None) or ""
    return module.startswith("google.adk.")
