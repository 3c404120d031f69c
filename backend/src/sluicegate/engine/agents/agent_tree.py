"""The nodes of an agent tree: those that a node declares, and those that its functions run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from google.adk.tools.base_tool import BaseTool
from google.adk.workflow import START, BaseNode, Workflow

from sluicegate.engine.agents.code_inspection import names_in, reachable_functions, values_in

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent

_RUNS_NODES: Final = "run_node"
_NOT_CHILDREN: Final = frozenset({"parent_agent", "tools", "edges", "graph"})


def children_of(node: BaseNode) -> Iterator[BaseNode]:
    """Yield the nodes that a node declares: sub-agents, graph nodes, nodes in its fields."""
    seen = {id(node), id(START)}
    for child in _nodes_in(node):
        if id(child) not in seen:
            seen.add(id(child))
            yield child


def runnables_in(function: object) -> Iterator[BaseNode | BaseTool]:
    """Yield nodes and tools that a function can name, if its code calls ``run_node``."""
    for each in reachable_functions(function):
        if _RUNS_NODES in names_in(each.__code__):
            yield from (each for each in values_in(each) if isinstance(each, BaseNode | BaseTool))


def _nodes_in(node: BaseNode) -> Iterator[BaseNode]:
    if isinstance(node, Workflow) and node.graph is not None:
        yield from node.graph.nodes
    fields: Mapping[str, object] = {**vars(node), **(node.__pydantic_private__ or {})}
    for name, value in fields.items():
        if name not in _NOT_CHILDREN:
            yield from _nodes_of(value)


def _nodes_of(value: object) -> Iterator[BaseNode]:
    if isinstance(value, BaseNode):
        yield value
    elif isinstance(value, Mapping):
        yield from (each for each in value.values() if isinstance(each, BaseNode))
    elif isinstance(value, list | tuple):
        yield from (each for each in value if isinstance(each, BaseNode))


def agents_in(agent: BaseAgent) -> Iterator[BaseAgent]:
    """An agent, and those below it."""
    yield agent
    for each in agent.sub_agents:
        yield from agents_in(each)


def name_in(path: str) -> str:
    """The name of the agent at a path."""
    return path.rpartition("/")[2]
