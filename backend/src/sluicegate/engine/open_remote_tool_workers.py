"""Remote tool workers of an engine: opened from its options, attached to the root agent."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent

from sluicegate.engine.agents.approval_requirements import requirement_of
from sluicegate.engine.agents.read_tool_facts import facts_of
from sluicegate.engine.agents.survey import GatedTool
from sluicegate.errors import ConfigurationError
from sluicegate.tools.mcp_package import require_mcp
from sluicegate.tools.worker_token_file import TokenFile

if TYPE_CHECKING:
    from google.adk.apps.app import App

    from sluicegate.core.tool_facts import ToolFacts
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.options import EngineOptions
    from sluicegate.stores.tool_workers import WorkerRegistrations
    from sluicegate.tools.worker_registry import WorkerRegistry

_UNNAMED: Final = "worker"
_WHY: Final = "Tools of remote workers ask unless the setting ungated_worker_tools names them."


def open_workers(options: EngineOptions, survey: AgentSurvey) -> WorkerRegistry | None:
    """Open the registry of the workers in the options; None if no worker is configured.

    Raises:
        ConfigurationError: A worker or a file is not valid, or the package mcp is missing.
    """
    if not options.workers and options.worker_registrations is None:
        return None
    require_mcp()
    registries: Any = importlib.import_module("sluicegate.tools.worker_registry")
    settings = importlib.import_module("sluicegate.tools.remote_tools").RemoteToolSettings(
        allowed=frozenset(options.worker_tools) or None,
        ungated=frozenset(options.ungated_worker_tools),
        idempotent=frozenset(options.idempotent_worker_tools),
        seconds=options.worker_timeout,
        held_seconds=options.approval_ttl,
    )
    reserved = {tool.name for tools in survey.tools.values() for tool in tools}
    reserved |= set(options.page_tools)
    registry: WorkerRegistry = registries.WorkerRegistry(
        settings,
        hosts=importlib.import_module("sluicegate.tools.outbound_hosts").WorkerHosts(
            options.worker_hosts
        ),
        lease=options.worker_lease,
        reserved_names=reserved,
    )
    tokens = TokenFile(options.worker_tokens)
    for entry in options.workers:
        prefix, equals, address = entry.partition("=")
        is_named = bool(equals) and ":" not in prefix
        name, url = (prefix, address) if is_named else (_UNNAMED, entry)
        registry.add(name, url, lambda name=name: tokens.token(name))  # type: ignore[misc]
    return registry


def share_workers(
    registry: WorkerRegistry, store: WorkerRegistrations, options: EngineOptions
) -> None:
    """Share the registrations of a registry with other servers of the same database.

    Raises:
        ConfigurationError: The file of the credentials cannot be read.
    """
    if options.worker_registrations is None:
        return
    registries = importlib.import_module("sluicegate.tools.worker_registry")
    registry.share(registries.WorkerSharing(store, TokenFile(options.worker_tokens).token))


def agent_of_workers(root: object) -> LlmAgent:
    """Return the agent that may call the tools of workers.

    Raises:
        ConfigurationError: The root is not an agent with a model.
    """
    if not isinstance(root, LlmAgent):
        raise ConfigurationError(
            "Tools of remote workers need a root agent with a model; "
            f"{getattr(root, 'name', 'the root')!r} has none."
        )
    return root


def attach(
    app: App, registry: WorkerRegistry, survey: AgentSurvey, options: EngineOptions
) -> AgentSurvey:
    """Let the root agent of the engine's copy call the tools of workers.

    Returns:
        The survey with these tools: they come and go, so any may require approval.

    Raises:
        ConfigurationError: The root is not an agent with a model.
    """
    root = agent_of_workers(app.root_agent)
    toolset = importlib.import_module("sluicegate.tools.worker_toolset").WorkerToolset(registry)
    # ADK: of two tools of the same name the later one runs; the agent's own must win.
    root.tools = [toolset, *root.tools]
    # Tools of workers have a setting of their own.
    names = replace(options.tool_names, gate_mcp=False)

    def late(name: str) -> ToolFacts | None:
        tool = registry.find(name)
        return None if tool is None else facts_of(tool, requirement_of(tool, names).kind, names)

    unlisted = {**survey.unlisted}
    unlisted[root.name] = (*unlisted.get(root.name, ()), type(toolset).__name__)
    gated = GatedTool(root.name, type(toolset).__name__, _WHY)
    return replace(
        survey,
        may_gate=True,
        gated_tools=[*survey.gated_tools, gated],
        unlisted=unlisted,
        late=late,
    )
