"""The copy of an agent tree that the engine runs."""

from __future__ import annotations

import copy
import logging
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import START, BaseNode

from sluicegate.adk_private import Graph, delegation_mode, function_of
from sluicegate.engine.agents.agent_tree import runnables_in
from sluicegate.engine.agents.approval_requirements import ToolNames, requirement_of
from sluicegate.engine.agents.inline_agent_tools import CalledAgentTool, InlineAgentTool
from sluicegate.engine.agents.mcp_declaration_limits import bounded_tools_of
from sluicegate.engine.agents.read_tool_facts import as_tool, unusable_pattern_of
from sluicegate.engine.agents.resumed_agent_nodes import resume_as_node
from sluicegate.engine.agents.run_copies_in_functions import run_copies, running_copies
from sluicegate.engine.agents.text_and_live_models import ModelSettings
from sluicegate.engine.agents.tool_declarations import schema_of
from sluicegate.engine.agents.wait_for_concurrent_calls import letting_others_end
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.tools.client_tools import ClientTool, client_tool
from sluicegate.tools.gated import asking_first

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeAlias

    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.models.base_llm import BaseLlm
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.engine.agents.text_and_live_models import AgentModels

    WrapModels: TypeAlias = Callable[[str, AgentModels], BaseLlm]

logger = logging.getLogger("sluicegate")

AnyNode = TypeVar("AnyNode", bound=BaseNode)

_NOT_COPIED: Final = frozenset({"parent_agent", "edges"})
"""Links that are set at the end, and the edges that a Workflow's graph was compiled from."""

_NO_MODELS: Final = ModelSettings()
_NO_NAMES: Final = ToolNames()
_NO_ARGUMENTS: Final = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class CopyChanges:
    """The differences between the user's tree and its copy.

    ``models`` replaces models of the tree, in ``AgentTool`` and Workflow graphs too, and the model
    that summarizes events for compaction. ``names`` are the tools that become client-side tools
    with the same declaration, and those of MCP servers that require approval. ``inline_agents`` are
    the agents of `AgentTool`s that run in the session of the chat. ``wrap_models`` gets the name of
    an agent and its two models; it returns the model that the agent has.
    """

    models: ModelSettings = _NO_MODELS
    names: ToolNames = _NO_NAMES
    inline_agents: Collection[str] = ()
    wrap_models: WrapModels | None = None


NO_CHANGES: Final = CopyChanges()


class TreeCopy:
    """Copies agents, Workflow graphs and the agents inside tools, each node once.

    The copy shares with the original what may hold connections, counters or memory: models that
    are not replaced, toolsets, callbacks, tools and collections without changes.
    """

    def __init__(self, changes: CopyChanges) -> None:
        self._models = changes.models
        self._wrap_models = changes.wrap_models
        self._names = changes.names
        self._inline_agents = changes.inline_agents
        self._copies: dict[int, Any] = {id(START): START}
        self._agents: list[BaseAgent] = []

    def tree(self, root: AnyNode) -> AnyNode:
        """Return the copy of a tree; a root that is a sub-agent is detached from its parent."""
        fresh = self.node(root)
        for agent in self._agents:
            agent.parent_agent = self._copies.get(id(agent.parent_agent), agent.parent_agent)
        if isinstance(fresh, BaseAgent) and fresh.parent_agent is not None:
            if isinstance(fresh, LlmAgent) and not fresh.model:
                fresh.model = _inherited_model(fresh.parent_agent)
            fresh.parent_agent = None
        self._set_models()
        return fresh

    def _set_models(self) -> None:
        chosen = {} if self._wrap_models is None else self._models.choose(self._agents)
        for agent in self._agents:
            if not isinstance(agent, LlmAgent):
                continue
            if self._wrap_models is None:
                agent.model = self._models.model or agent.model
            elif id(agent) in chosen:
                agent.model = self._wrap_models(agent.name, chosen[id(agent)])

    def node(self, original: AnyNode) -> AnyNode:
        """Return the copy of a node and of everything below it."""
        copied: AnyNode | None = self._copies.get(id(original))
        if copied is not None:
            return copied
        # ADK: clone() recurses into sub_agents but leaves their delegation tools, agents in other
        # fields and Workflow graphs pointing at the originals; so every link is set here.
        fresh = original.model_copy()
        self._copies[id(original)] = fresh
        for name, value in vars(original).items():
            object.__setattr__(fresh, name, self._attribute(name, value))
        if original.__pydantic_private__ and fresh.__pydantic_private__ is not None:
            for name, value in original.__pydantic_private__.items():
                fresh.__pydantic_private__[name] = self._value(value)
        if isinstance(fresh, BaseAgent):
            self._agents.append(fresh)
            resume_as_node(fresh)
        elif runs := self._agents_run_by(function_of(original)):
            run_copies(fresh, runs)
        elif isinstance(tool := getattr(fresh, "tool", None), BaseTool):
            vars(fresh)["tool"] = asking_in_node(tool)
        return fresh

    def _agents_run_by(self, function: object) -> dict[int, BaseAgent]:
        """Return the copies of the agents that a function runs, by the id of the original."""
        agents = [each for each in runnables_in(function) if isinstance(each, BaseAgent)]
        return {id(each): self.node(each) for each in agents}

    def _attribute(self, name: str, value: Any) -> Any:
        if name in _NOT_COPIED:
            return value
        if name == "tools" and isinstance(value, list):
            return [self._entry(entry) for entry in value if _is_offered(entry)]
        return self._graph(value) if isinstance(value, Graph) else self._value(value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, BaseNode):
            return self.node(value)
        if isinstance(value, BaseTool):
            return self._tool(value)
        if isinstance(value, MethodType):
            owner = self._copies.get(id(value.__self__))
            return value if owner is None else value.__func__.__get__(owner)
        if type(value) in (list, tuple):
            fresh = [self._value(each) for each in value]
            is_same = all(one is other for one, other in zip(value, fresh, strict=True))
            return value if is_same else type(value)(fresh)
        if type(value) is dict:
            changed = {key: self._value(each) for key, each in value.items()}
            return value if all(changed[key] is value[key] for key in value) else changed
        return value

    def _graph(self, graph: Graph) -> Graph:
        edges = [
            edge.model_copy(
                update={"from_node": self.node(edge.from_node), "to_node": self.node(edge.to_node)}
            )
            for edge in graph.edges
        ]
        nodes = [self.node(each) for each in graph.nodes]
        return graph.model_copy(update={"edges": edges, "nodes": nodes})

    def _entry(self, entry: Any) -> Any:
        if isinstance(entry, BaseToolset):
            return self._toolset(entry)
        if isinstance(entry, BaseNode):
            return self.node(entry)
        if isinstance(entry, BaseTool):
            return self._tool(entry)
        tool = as_tool(entry)
        is_client = tool.name in self._names.client_tools
        return _as_client(tool) if is_client else self._value(entry)

    def _tool(self, tool: BaseTool) -> BaseTool:
        copied: BaseTool | None = self._copies.get(id(tool))
        if copied is not None:
            return copied
        fresh = self._inline(tool) or as_named(tool, tool.name, self._names)
        if fresh is tool:
            for name in ("agent", "node"):
                inner = getattr(tool, name, None)
                if isinstance(inner, BaseNode):
                    fresh = copy.copy(tool)
                    setattr(fresh, name, self.node(inner))
                    vars(fresh)["run_async"] = letting_others_end(fresh.run_async)
            if runs := self._agents_run_by(getattr(tool, "func", None)):
                fresh = copy.copy(tool)
                vars(fresh)["run_async"] = running_copies(fresh.run_async, runs)
        self._copies[id(tool)] = fresh
        return fresh

    def _inline(self, tool: BaseTool) -> InlineAgentTool | None:
        """Return what replaces a tool whose agent runs in the session of the chat."""
        if not isinstance(tool, AgentTool):
            return None
        mode, agent = delegation_mode(tool), tool.agent
        if mode == "single_turn":
            return InlineAgentTool(self.node(agent))
        if mode is not None or agent.name not in self._inline_agents:
            return None
        return CalledAgentTool(tool, self.node(agent))

    def _toolset(self, toolset: BaseToolset) -> BaseToolset:
        """Return the toolset, or a copy that bounds an MCP server, or makes tools client-side.

        A copy with shadowed methods keeps the class, which ADK and user code check.
        """
        bounded = bounded_tools_of(toolset)
        if not self._names.client_tools and bounded is None:
            return toolset
        prefix = f"{toolset.tool_name_prefix}_" if toolset.tool_name_prefix else ""

        async def get_tools(readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
            tools = await toolset.get_tools(readonly_context)
            offered = tools if bounded is None else await bounded.select(tools)
            return [as_named(tool, prefix + tool.name, self._names) for tool in offered]

        fresh = copy.copy(toolset)
        for name in ("close", "get_auth_config", "process_llm_request"):
            vars(fresh)[name] = getattr(toolset, name)
        vars(fresh)["get_tools"] = get_tools
        return fresh


def as_named(tool: BaseTool, name: str, names: ToolNames) -> BaseTool:
    """Return a tool as the settings require; ``name`` is the name that the model calls."""
    if name in names.client_tools and not isinstance(tool, ClientTool):
        return _as_client(tool)
    return asking_first(tool) if names.gates(tool, name) else tool


def asking_in_node(tool: BaseTool) -> BaseTool:
    """Return a copy of a node's tool that passes each further request of a call to the guard."""
    # ADK: no callback sees what a node requests after its tool has run.
    fresh, run = copy.copy(tool), tool.run_async

    async def run_async(*, args: dict[str, Any], tool_context: ToolContext) -> Any:
        result = await run(args=args, tool_context=tool_context)
        guard = CURRENT_GUARD.get()
        return result if guard is None else await guard.after_node(fresh, tool_context, result)

    vars(fresh)["run_async"] = run_async
    return fresh


def _as_client(tool: BaseTool) -> ClientTool:
    gated = requirement_of(tool, ToolNames()).when != "never"
    schema: Mapping[str, Any] = schema_of(tool) or _NO_ARGUMENTS
    fresh = client_tool(tool.name, tool.description, schema, require_confirmation=gated)
    fresh.custom_metadata = tool.custom_metadata
    return fresh


def _is_offered(entry: Any) -> bool:
    """Whether an entry of ``LlmAgent.tools`` can be offered; the reason goes to the log."""
    if isinstance(entry, BaseToolset | BaseNode):
        return True
    tool = as_tool(entry)
    why = unusable_pattern_of(tool)
    if why is not None:
        logger.warning("the tool %s is left out: %s", tool.name, why)
    return why is None


def _inherited_model(agent: BaseAgent | None) -> str | BaseLlm:
    while agent is not None:
        if isinstance(agent, LlmAgent) and agent.model:
            return agent.model
        agent = agent.parent_agent
    return ""
