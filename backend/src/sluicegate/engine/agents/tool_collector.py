"""The tools of an agent tree: of agents, Workflow graphs, agents in tools, nodes in functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import BaseNode, FunctionNode, Workflow

from sluicegate.adk_private import delegation_mode, function_of
from sluicegate.core.event_reading import INPUT
from sluicegate.core.tool_facts import ToolFacts
from sluicegate.engine.agents.agent_tree import children_of, name_in, runnables_in
from sluicegate.engine.agents.approval_requirements import (
    ApprovalRequirement,
    ToolNames,
    callback_requirement,
    requirement_of,
    toolset_requirement,
)
from sluicegate.engine.agents.code_inspection import find_name
from sluicegate.engine.agents.read_tool_facts import (
    as_tool,
    asks_for_consent,
    facts_of,
    unusable_pattern_of,
)
from sluicegate.engine.agents.resumable_nestings import Edge, ResumablePosition, child_position
from sluicegate.tools.approval_terms import DEFAULT_TERMS, ApprovalTerms, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluicegate.core.tool_facts import ToolKind

_ASKS_FOR_INPUT: Final = "RequestInput"


@dataclass(frozen=True, slots=True)
class SurveyedTool:
    """A tool of one agent, and the position of that agent in the tree.

    ``path`` is the path of the author of the events that request approvals: an LlmAgent, or the
    Workflow of a tool or function node; ``node`` is that node's name, None for a tool of an
    LlmAgent.
    ``is_part_of_adk``: ADK itself wrote the tool's code.
    """

    path: str
    name: str
    requirement: ApprovalRequirement
    facts: ToolFacts
    position: ResumablePosition
    node: str | None = None
    is_part_of_adk: bool = False
    terms: ApprovalTerms = DEFAULT_TERMS

    @property
    def agent(self) -> str:
        """The name of the agent or Workflow."""
        return name_in(self.path)

    @property
    def may_wait(self) -> bool:
        """Whether a call may wait: for a person, or for the output of a browser."""
        asks = self.kind != "free" or self.requirement.when == "always"
        return asks or (self.is_part_of_adk and self.name == INPUT)

    @property
    def kind(self) -> ToolKind:
        """The kind of the tool on the wire (T7)."""
        return self.requirement.kind


@dataclass(frozen=True, slots=True)
class LeftOutTool:
    """A tool that is not offered, and why.

    ``toolset``: it belongs to an MCP toolset of the agent; ``*`` names all tools of one.
    """

    agent: str
    tool: str
    why: str
    toolset: bool = False


@dataclass(frozen=True, slots=True)
class PendingToolset:
    """A toolset whose tools are not listed yet."""

    path: str
    toolset: BaseToolset
    position: ResumablePosition
    inherited: ApprovalRequirement | None

    @property
    def agent(self) -> str:
        """The name of the agent that has the toolset."""
        return name_in(self.path)


@dataclass(frozen=True, slots=True)
class AgentPosition:
    """The position of an agent with a model; ``inherited`` is the requirement of its tools."""

    path: str
    position: ResumablePosition
    inherited: ApprovalRequirement | None


class ToolCollector:
    """Collects the tools of a tree; a node at two positions is visited at both.

    ``inherited`` is the requirement of every tool that comes from plugins of the App. ``paths`` are
    the paths of each agent and Workflow by name: the names from the root, joined by ``/``.
    ``left_out`` are the agents' own tools that are not offered. ``positions`` are the first
    positions of agents with a model, by name.
    """

    def __init__(self, names: ToolNames, inherited: ApprovalRequirement | None) -> None:
        self.tools: list[SurveyedTool] = []
        self.left_out: list[LeftOutTool] = []
        self.toolsets: list[PendingToolset] = []
        self.agents: list[str] = []
        self.remote: list[str] = []
        """The agents on other servers that may ask there."""
        self.positions: dict[str, AgentPosition] = {}
        self.paths: dict[str, set[str]] = {}
        self.called: set[str] = set()
        """The paths of the agents that an `AgentTool` calls."""
        self.not_called: set[str] = set()
        """The paths of all others."""
        self.asking: set[str] = set()
        """The paths of code that may ask the user for input or for a consent, and is resumed."""
        self._names = names
        self._inherited = inherited
        self._seen: set[tuple[int, ResumablePosition]] = set()

    def visit(
        self,
        node: BaseNode,
        position: ResumablePosition,
        *,
        above: str = "",
        is_called: bool = False,
    ) -> None:
        """Visit a node and everything below it.

        ``above`` is the path of the node's parent; ``is_called``: an `AgentTool` calls it.
        """
        path = above
        if not above or isinstance(node, BaseAgent | Workflow):
            path = f"{above}/{node.name}" if above else node.name
            self.paths.setdefault(node.name, set()).add(path)
            (self.called if is_called else self.not_called).add(path)
        if (id(node), position) in self._seen:
            return
        self._seen.add((id(node), position))
        if isinstance(node, BaseAgent):
            self.agents.append(node.name)
            if _is_remote(node) and node.name not in self._names.never_gates:
                self.remote.append(node.name)
        if isinstance(node, LlmAgent):
            self._visit_tools(node, position, path)
        elif isinstance(node, FunctionNode):
            self._visit_function_node(node, position, path)
        elif isinstance(tool := getattr(node, "tool", None), BaseTool):
            self._add(tool, path, position, self._inherited, node=node.name)
        function = function_of(node)
        if not position.problem and find_name(function or node, _ASKS_FOR_INPUT):
            self.asking.add(path)
        self._visit_function(function, path, position, "node")
        edge: Edge = "sub-agent" if isinstance(node, BaseAgent) else "node"
        for child in children_of(node):
            self.visit(child, child_position(position, edge, child), above=path)

    def add_listed(self, pending: PendingToolset, tools: Iterable[object]) -> None:
        """Add the tools of a toolset that has been listed."""
        for tool in tools:
            if isinstance(tool, BaseTool):
                self._add(tool, pending.path, pending.position, pending.inherited)

    def _visit_tools(self, agent: LlmAgent, position: ResumablePosition, path: str) -> None:
        callbacks = (
            callback
            for group in (
                agent.canonical_before_tool_callbacks,
                agent.canonical_after_tool_callbacks,
                agent.canonical_on_tool_error_callbacks,
            )
            for callback in group
        )
        inherited = self._inherited or callback_requirement(
            callbacks, f"A callback of {agent.name!r}"
        )
        self.positions.setdefault(agent.name, AgentPosition(path, position, inherited))
        for entry in agent.tools:
            if isinstance(entry, BaseToolset):
                required = toolset_requirement(entry) or inherited
                self.toolsets.append(PendingToolset(path, entry, position, required))
            elif isinstance(entry, BaseNode):
                self.visit(entry, child_position(position, "tool", entry), above=path)
            else:
                tool = as_tool(entry)
                why = unusable_pattern_of(tool)
                if why is None:
                    self._add(tool, path, position, inherited)
                else:
                    self.left_out.append(LeftOutTool(agent.name, tool.name, why))

    def _add(
        self,
        tool: BaseTool,
        path: str,
        position: ResumablePosition,
        inherited: ApprovalRequirement | None,
        *,
        node: str | None = None,
    ) -> None:
        requirement = requirement_of(tool, self._names, inherited=inherited)
        facts = facts_of(tool, requirement.kind, self._names)
        self.tools.append(
            SurveyedTool(
                path,
                tool.name,
                requirement,
                facts,
                position,
                node,
                is_part_of_adk=_is_part_of_adk(tool),
                terms=terms_of(tool),
            )
        )
        if not position.problem and asks_for_consent(tool):
            self.asking.add(path)
        inner = getattr(tool, "agent", None)
        if isinstance(tool, AgentTool) and isinstance(inner, BaseAgent):
            if delegation_mode(tool) is None:
                inner_position = _called_position(tool, position, inner)
                self.visit(inner, inner_position, above=path, is_called=True)
        elif isinstance(wrapped := getattr(tool, "node", None), BaseNode):
            self.visit(wrapped, child_position(position, "tool", wrapped), above=path)
        else:
            self._visit_function(getattr(tool, "func", None), path, position, "tool")

    def _visit_function(
        self, function: object, path: str, position: ResumablePosition, edge: Edge
    ) -> None:
        """Visit what a function runs by ``run_node``, as far as its names show it."""
        for each in runnables_in(function):
            if isinstance(each, BaseNode):
                self.visit(each, child_position(position, edge, each), above=path)
            else:
                self._add(each, path, position, self._inherited, node=each.name)

    def _visit_function_node(
        self, node: FunctionNode, position: ResumablePosition, path: str
    ) -> None:
        """Add a function of a Workflow, which has only its own setting."""
        setting = node.require_confirmation
        if callable(setting):
            why = "Its require_confirmation is decided per call."
            requirement = ApprovalRequirement("conditional", "sometimes", why)
        elif setting:
            requirement = ApprovalRequirement(
                "gated", "always", "It declares require_confirmation=True."
            )
        elif node.name in self._names.dynamic_gates:
            why = "The setting dynamic_gates names it."
            requirement = ApprovalRequirement("conditional", "sometimes", why)
        else:
            return
        if node.name in self._names.never_gates:
            requirement = ApprovalRequirement("free", requirement.when, requirement.why)
        # ADK: after an approval it runs with the input of the node before it.
        facts = ToolFacts(kind=requirement.kind, editable=False, rememberable=False)
        self.tools.append(SurveyedTool(path, node.name, requirement, facts, position, node.name))


def _called_position(
    tool: AgentTool, position: ResumablePosition, inner: BaseAgent
) -> ResumablePosition:
    """Return the position of the agent of an `AgentTool`."""
    found = child_position(position, "agent-tool", inner)
    if found.problem or tool.include_plugins:
        return found
    problem = (
        f"AgentTool({inner.name}) has include_plugins=False, and approvals need a plugin; leave "
        "include_plugins out"
    )
    return replace(found, problem=problem)


def _is_remote(agent: BaseAgent) -> bool:
    # The class can be imported only with the a2a package.
    names = ((kind.__module__, kind.__name__) for kind in type(agent).__mro__)
    return any(
        module.startswith("google.adk.") and name == "RemoteA2aAgent" for module, name in names
    )


def _is_part_of_adk(tool: BaseTool) -> bool:
    """Whether ADK itself wrote a tool's code (``adk_request_input`` is such a tool)."""
    if hasattr(tool, "agent") or hasattr(tool, "node"):
        return False
    module = getattr(getattr(tool, "func", None) or type(tool), "__module__", None) or ""
    return module.startswith("google.adk.")
