"""What the engine knows of the user's agent before it runs: every tool, and which of them ask.

An agent *may gate* if, over its whole tree, a tool declares ``require_confirmation``, a class
overrides ``check_require_confirmation``, a toolset has a confirmation setting, a tool's code names
``request_confirmation``, a toolset cannot be listed in time, or ``dynamic_gates`` names a tool.
``never_gates`` overrides all of it. The tree is read, never changed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from google.adk.apps.app import App

from sluicegate.core.signals import ToolFacts
from sluicegate.engine.agents.resumable_positions import root_position
from sluicegate.engine.agents.tool_facts import ToolNames, asking_callback
from sluicegate.engine.agents.tree_walk import FoundTool, FoundToolset, TreeWalk, tools_of
from sluicegate.errors import ConfigurationError
from sluicegate.tools.gated import DEFAULT_TERMS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.workflow import BaseNode

    from sluicegate.tools.gated import ApprovalTerms

_FREE: Final = ToolFacts()
_UNSEEN: Final = ToolFacts(kind="conditional")
_STRENGTH: Final = ("free", "client", "conditional", "gated", "gated-client")
_TOOL_HOOKS: Final = ("before_tool_callback", "after_tool_callback", "on_tool_error_callback")


@dataclass(frozen=True, slots=True)
class GateFinding:
    """Why an agent may gate: one tool (or one toolset that could not be listed) and a sentence."""

    agent: str
    tool: str
    why: str


@dataclass(frozen=True)
class AgentSurvey:
    """Facts of an agent tree; implements ``ToolLookup``.

    ``agents`` are the names of all agents, root first. ``tools`` lists per agent (or Workflow)
    what it can call; ``unlisted`` the toolsets that could not be listed in time, by agent. The
    facts of a tool are one dictionary look-up.
    """

    agents: tuple[str, ...]
    tools: Mapping[str, tuple[FoundTool, ...]]
    unlisted: Mapping[str, tuple[str, ...]]
    may_gate: bool
    gates: list[GateFinding]
    _facts: Mapping[tuple[str, str], ToolFacts] = field(repr=False)
    _by_name: Mapping[str, ToolFacts] = field(repr=False)
    late: Callable[[str], ToolFacts | None] | None = None
    """Facts of tools that come and go while the server runs, by name."""

    def terms(self, name: str) -> ApprovalTerms:
        """What the author of a tool of that name said of its approvals."""
        all_terms = [
            tool.terms for tools in self.tools.values() for tool in tools if tool.name == name
        ]
        said = [terms for terms in all_terms if terms != DEFAULT_TERMS]
        return said[0] if said else DEFAULT_TERMS

    def facts(self, author: str, name: str) -> ToolFacts:
        """Facts of tool ``name`` as agent ``author`` sees it.

        An author that has no such tool (a renamed node) gets the facts of the tool of that name
        that asks most. An unknown tool is ``free``, but ``conditional`` where the agent has a
        toolset that could not be listed.
        """
        found = self._facts.get((author, name)) or self._by_name.get(name)
        if found is None and self.late is not None:
            found = self.late(name)
        if found is not None:
            return found
        return _UNSEEN if author in self.unlisted else _FREE


async def survey(
    root: BaseAgent | BaseNode | App,
    *,
    dynamic_gates: Collection[str],
    never_gates: Collection[str],
    client_tools: Collection[str],
    resolve_timeout: float = 5.0,
) -> AgentSurvey:
    """Walk the whole tree and judge every tool in it.

    Toolsets are asked for their tools once, all at the same time, each for at most
    ``resolve_timeout`` seconds; one that fails or takes longer counts as one that may ask.

    ``never_gates`` makes a tool's kind ``free``. A tool that declares ``require_confirmation=True``
    asks in ADK all the same; the engine then treats it as an unforeseen gate.
    """
    node = root_of(root)
    plugins = root.plugins if isinstance(root, App) else []
    names = ToolNames(frozenset(dynamic_gates), frozenset(never_gates), frozenset(client_tools))
    walk = TreeWalk(names, asking_callback(_hooks(plugins), "A plugin of the App"))
    walk.visit(node, root_position(node))
    unlisted: dict[str, list[str]] = {}
    while walk.toolsets:
        waiting, walk.toolsets = walk.toolsets, []
        listed = await asyncio.gather(*(_listed(each, resolve_timeout) for each in waiting))
        for each, tools in zip(waiting, listed, strict=True):
            if tools is None:
                unlisted.setdefault(each.agent, []).append(type(each.toolset).__name__)
            else:
                walk.add_listed(each, tools)
    return _assembled(walk, unlisted, resolve_timeout)


def root_of(target: BaseAgent | BaseNode | App) -> BaseNode:
    """The root node of a target.

    Raises:
        ConfigurationError: The App has none.
    """
    node = target.root_agent if isinstance(target, App) else target
    if node is None:
        raise ConfigurationError(f"The App {target.name!r} has no root_agent.")
    return node


def _assembled(walk: TreeWalk, unlisted: Mapping[str, list[str]], seconds: float) -> AgentSurvey:
    tools: dict[str, list[FoundTool]] = {}
    by_name: dict[str, ToolFacts] = {}
    for found in walk.found:
        tools.setdefault(found.agent, []).append(found)
        known = by_name.get(found.name)
        if known is None or _STRENGTH.index(found.kind) > _STRENGTH.index(known.kind):
            by_name[found.name] = found.facts
    named = [(found.node, found) for found in walk.found if found.node is not None]
    named += [(found.agent, found) for found in walk.found]
    facts = {(author, found.name): found.facts for author, found in named}
    gates = [
        GateFinding(found.agent, found.name, found.judgement.why)
        for found in walk.found
        if found.kind in ("gated", "conditional", "gated-client")
    ]
    gates += [
        GateFinding(agent, toolset, f"Its tools could not be listed within {seconds:g} s.")
        for agent, toolsets in unlisted.items()
        for toolset in toolsets
    ]
    return AgentSurvey(
        agents=tuple(dict.fromkeys(walk.agents)),
        tools=MappingProxyType({agent: tuple(found) for agent, found in tools.items()}),
        unlisted=MappingProxyType({agent: tuple(names) for agent, names in unlisted.items()}),
        may_gate=bool(gates),
        gates=list(dict.fromkeys(gates)),
        _facts=facts,
        _by_name=by_name,
    )


async def _listed(found: FoundToolset, seconds: float) -> list[object] | None:
    try:
        async with asyncio.timeout(seconds):
            return list(await tools_of(found.toolset))
    except Exception:  # noqa: BLE001 - a toolset may fail in any way; ADK drops its tools then
        return None


def _hooks(plugins: Collection[BasePlugin]) -> Iterator[object]:
    for plugin in plugins:
        for hook in _TOOL_HOOKS:
            yield getattr(plugin, hook)
