"""The survey of the user's agent before it runs: every tool, and which require approval.

An agent has gated tools if, in its whole tree, a tool declares ``require_confirmation``, a class
overrides ``check_require_confirmation``, a toolset has a confirmation setting, a tool's code names
``request_confirmation``, a toolset cannot be listed in time, or ``dynamic_gates`` names a tool.
``never_gates`` overrides these for listed tools, except client-side ones. The tree is not changed,
apart from the HTTP client of MCP toolsets.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App

from sluicegate.core.tool_facts import ToolFacts
from sluicegate.engine.agents.agent_tree import name_in
from sluicegate.engine.agents.approval_requirements import ToolNames, callback_requirement
from sluicegate.engine.agents.list_toolset_tools import list_tools
from sluicegate.engine.agents.mcp_declaration_limits import bounded_tools_of
from sluicegate.engine.agents.resumable_nestings import root_position
from sluicegate.engine.agents.tool_collector import (
    LeftOutTool,
    PendingToolset,
    SurveyedTool,
    ToolCollector,
)
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.errors import ConfigurationError
from sluicegate.tools.approval_terms import DEFAULT_TERMS
from sluicegate.wire.limits import GRANT_TTL

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.workflow import BaseNode

    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.agents.tool_collector import AgentPosition
    from sluicegate.tools.approval_terms import ApprovalTerms

_SOMEWHERE: Final = "…"
"""Stands in a path for agents that are not known."""

_NO_NAMES: Final = ToolNames()
_FREE: Final = ToolFacts(rememberable=False)
_UNLISTED: Final = ToolFacts(kind="conditional", rememberable=False)
_BY_STRICTNESS: Final = ("free", "client", "conditional", "gated", "gated-client")
_TOOL_CALLBACKS: Final = ("before_tool_callback", "after_tool_callback", "on_tool_error_callback")


@dataclass(frozen=True, slots=True)
class GatedTool:
    """A tool that may require approval, or a toolset that could not be listed, and why."""

    agent: str
    tool: str
    why: str


@dataclass(frozen=True)
class AgentSurvey:
    """Facts of an agent tree; implements ``ToolLookup``.

    ``agents`` are the names of all agents, root first. ``tools`` are the tools of each agent or
    Workflow; ``unlisted`` the toolsets that could not be listed in time, by agent. ``late`` returns
    the facts of tools that come and go while the server runs, by name. ``left_out`` are the tools
    that are not offered. ``grant_ttl`` is the longest lifetime of a grant in seconds. ``as_node``:
    the root is a shell agent that has to run as a node. ``inline_agents`` are those of `AgentTool`s
    in which something may wait; ``hidden`` are they and the agents below them, whose words only
    their caller gets. ``ambiguous`` are agents among them that have several positions.
    ``positions`` are those of agents with a model. ``remote`` are agents on other servers.
    ``of_chats`` returns the tool of a chat that has a name, if the application gives chats tools;
    ``chat`` is the chat that is asked about, else that of the turn.
    """

    agents: tuple[str, ...]
    tools: Mapping[str, tuple[SurveyedTool, ...]]
    unlisted: Mapping[str, tuple[str, ...]]
    may_gate: bool
    gated_tools: list[GatedTool]
    _facts: Mapping[tuple[str, str], ToolFacts] = field(repr=False)
    _by_name: Mapping[str, ToolFacts] = field(repr=False)
    _paths: Mapping[str, str] = field(repr=False)
    late: Callable[[str], ToolFacts | None] | None = None
    left_out: tuple[LeftOutTool, ...] = ()
    grant_ttl: float = GRANT_TTL
    as_node: bool = False
    inline_agents: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    ambiguous: tuple[str, ...] = ()
    positions: Mapping[str, AgentPosition] = field(default_factory=dict)
    remote: tuple[str, ...] = ()
    of_chats: Callable[[ChatKey, str], SurveyedTool | None] | None = None
    chat: ChatKey | None = None

    def of_chat(self, chat: ChatKey) -> AgentSurvey:
        """Return the survey with the tools of one chat, if chats have tools of their own."""
        return self if self.of_chats is None else replace(self, chat=chat)

    def is_hidden(self, author: str) -> bool:
        """Whether only its caller gets the words of an agent."""
        return author in self.hidden

    @property
    def has_approvers(self) -> bool:
        """Whether other people than the user of a chat may have to approve a tool."""
        declared = (tool.terms for tools in self.tools.values() for tool in tools)
        return self.of_chats is not None or any(each.approvers is not None for each in declared)

    def terms(self, agent: str, name: str) -> ApprovalTerms:
        """Return the approval terms of a tool's author, by the path of the agent and the name."""
        of_agent = [tool for tool in self.tools.get(name_in(agent), ()) if tool.name == name]
        found = of_agent or [
            tool for tools in self.tools.values() for tool in tools if tool.name == name
        ]
        own = self._own_tool(name) if not found else None
        terms = (tool.terms for tool in (found if own is None else [own]))
        return next((each for each in terms if each != DEFAULT_TERMS), DEFAULT_TERMS)

    def facts(self, author: str, name: str) -> ToolFacts:
        """Return the facts of a tool as an agent sees it.

        For an author without such a tool (a renamed node), the strictest tool of that name counts,
        without grants. An unknown tool is ``free``, but ``conditional`` if the agent has an
        unlisted toolset.
        """
        facts = self._facts.get((author, name))
        if facts is None:
            path = self._paths.get(author) or _path_below(next(iter(self._paths), ""), author)
            facts = _of_agent(self._facts_elsewhere(author, name), path)
        if facts.grant_ttl == self.grant_ttl:
            return facts
        return replace(facts, grant_ttl=self.grant_ttl)

    def _facts_elsewhere(self, author: str, name: str) -> ToolFacts:
        facts = self._by_name.get(name)
        if facts is not None:
            return replace(facts, rememberable=False)
        own = self._own_tool(name)
        if own is not None:
            return own.facts
        facts = None if self.late is None else self.late(name)
        return facts or (_UNLISTED if author in self.unlisted else _FREE)

    def _own_tool(self, name: str) -> SurveyedTool | None:
        """Return the tool of the chat that has a name."""
        if self.of_chats is None:
            return None
        guard = CURRENT_GUARD.get()
        chat = self.chat or (None if guard is None else guard.chat)
        return None if chat is None else self.of_chats(chat, name)


async def survey(
    root: BaseAgent | BaseNode | App,
    names: ToolNames = _NO_NAMES,
    *,
    resolve_timeout: float = 5.0,
) -> AgentSurvey:
    """Walk the whole tree and determine for every tool whether it requires approval.

    Toolsets are listed once, concurrently, each for at most ``resolve_timeout`` seconds; the tools
    of one that fails or takes longer may require approval.
    """
    node = root_of(root)
    plugins = root.plugins if isinstance(root, App) else []
    inherited = callback_requirement(_tool_callbacks(plugins), "A plugin of the App")
    walk = ToolCollector(names, inherited)
    walk.visit(node, root_position(node))
    found = await _listed(walk, resolve_timeout)
    is_shell = isinstance(node, BaseAgent) and not isinstance(node, LlmAgent)
    return replace(found, as_node=is_shell and bool(found.inline_agents))


async def _listed(walk: ToolCollector, resolve_timeout: float) -> AgentSurvey:
    """List the toolsets of a tree, and assemble the survey."""
    unlisted: dict[str, list[str]] = {}
    left_out: list[LeftOutTool] = []
    while walk.toolsets:
        pending, walk.toolsets = walk.toolsets, []
        listed = await asyncio.gather(*(_list(each, resolve_timeout, left_out) for each in pending))
        for each, tools in zip(pending, listed, strict=True):
            if tools is None:
                unlisted.setdefault(each.agent, []).append(type(each.toolset).__name__)
            else:
                walk.add_listed(each, tools)
    skipped = tuple(dict.fromkeys([*walk.left_out, *left_out]))
    found = replace(_assemble(walk, unlisted, resolve_timeout), left_out=skipped)
    return _with_inline_agents(found, walk)


def _with_inline_agents(found: AgentSurvey, walk: ToolCollector) -> AgentSurvey:
    """Note the agents of `AgentTool`s in which something may wait, or may turn out to.

    Those whose code may ask the user for something else than an approval stay as they are where
    they could not be resumed: most of them never ask.
    """
    waiting = {tool.path for tool in walk.tools if tool.may_wait}
    waiting.update(path for agent in found.unlisted for path in walk.paths.get(agent, ()))
    twice = {name_in(path) for path in walk.called & walk.not_called}
    several = {name for name, paths in walk.paths.items() if name in twice or len(paths) > 1}
    inline: set[str] = set()
    hidden: set[str] = set()
    for called in walk.called:
        below = _is_below(called)
        names = {name for name, paths in walk.paths.items() if any(map(below, paths))}
        asks = any(map(below, walk.asking)) and names.isdisjoint(several)
        if asks or any(map(below, waiting)):
            inline.add(called)
            hidden |= names
    return replace(
        found,
        inline_agents=frozenset(map(name_in, inline)),
        hidden=frozenset(hidden),
        ambiguous=tuple(sorted(hidden & several)),
    )


def _is_below(above: str) -> Callable[[str], bool]:
    return lambda path: path == above or path.startswith(f"{above}/")


def root_of(target: BaseAgent | BaseNode | App) -> BaseNode:
    """Return the root node of a target.

    Raises:
        ConfigurationError: The App has none.
    """
    node = target.root_agent if isinstance(target, App) else target
    if node is None:
        raise ConfigurationError(f"The App {target.name!r} has no root_agent.")
    return node


def _assemble(
    walk: ToolCollector, unlisted: Mapping[str, list[str]], seconds: float
) -> AgentSurvey:
    tools: dict[str, list[SurveyedTool]] = {}
    by_name: dict[str, ToolFacts] = {}
    for tool in walk.tools:
        tools.setdefault(tool.agent, []).append(tool)
        known = by_name.get(tool.name)
        if known is None or _BY_STRICTNESS.index(tool.kind) > _BY_STRICTNESS.index(known.kind):
            by_name[tool.name] = tool.facts
    paths = _unique_paths(walk)
    named = [(tool.node, tool) for tool in walk.tools if tool.node is not None]
    named += [(tool.agent, tool) for tool in walk.tools]
    facts = {
        (author, tool.name): _of_agent(tool.facts, paths.get(tool.agent, tool.path))
        for author, tool in named
    }
    gated = [
        GatedTool(tool.agent, tool.name, tool.requirement.why)
        for tool in walk.tools
        if tool.kind in ("gated", "conditional", "gated-client")
    ]
    gated += [
        GatedTool(agent, toolset, f"Its tools could not be listed within {seconds:g} s.")
        for agent, toolsets in unlisted.items()
        for toolset in toolsets
    ]
    return AgentSurvey(
        agents=tuple(dict.fromkeys(walk.agents)),
        tools=MappingProxyType({agent: tuple(found) for agent, found in tools.items()}),
        unlisted=MappingProxyType({agent: tuple(names) for agent, names in unlisted.items()}),
        may_gate=bool(gated),
        positions=MappingProxyType(walk.positions),
        remote=tuple(dict.fromkeys(walk.remote)),
        gated_tools=list(dict.fromkeys(gated)),
        _facts=facts,
        _by_name=by_name,
        _paths=MappingProxyType(paths),
    )


def _unique_paths(walk: ToolCollector) -> dict[str, str]:
    """Return the path of each agent and Workflow.

    Where a name has several paths, which of them an event belongs to is not known.
    """
    root = next(iter(walk.paths), "")
    several = {name for name, found in walk.paths.items() if len(found) > 1}
    return {
        name: next(iter(found))
        if several.isdisjoint(next(iter(found)).split("/"))
        else _path_below(root, name)
        for name, found in walk.paths.items()
    }


def _path_below(root: str, name: str) -> str:
    return f"{root}/{_SOMEWHERE}/{name}"


def _of_agent(facts: ToolFacts, path: str) -> ToolFacts:
    """Return the facts of a tool of the agent at a path; a grant needs one whole path."""
    is_known = _SOMEWHERE not in path.split("/")
    return replace(facts, agent=path, rememberable=facts.rememberable and is_known)


async def _list(
    pending: PendingToolset, seconds: float, left_out: list[LeftOutTool]
) -> list[object] | None:
    bounded = bounded_tools_of(pending.toolset)
    try:
        async with asyncio.timeout(seconds):
            tools = list(await list_tools(pending.toolset, bounded))
    except Exception:  # noqa: BLE001 - a toolset may fail in any way; ADK drops its tools then
        return None
    if bounded is not None:
        for name, why in bounded.left_out.items():
            left_out.append(LeftOutTool(pending.agent, name, why, toolset=True))
    return list[object](tools)


def _tool_callbacks(plugins: Collection[BasePlugin]) -> Iterator[object]:
    return (getattr(plugin, name) for plugin in plugins for name in _TOOL_CALLBACKS)
