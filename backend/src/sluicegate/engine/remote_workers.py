"""Remote tool workers of an engine: opened by its options, put before the root agent's model."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent

from sluicegate.engine.agents.survey import GatedTool
from sluicegate.engine.agents.tool_facts import ToolNames, facts_of, requirement_of
from sluicegate.errors import ConfigurationError
from sluicegate.tools.worker_protocol import require_mcp

if TYPE_CHECKING:
    from google.adk.apps.app import App

    from sluicegate.core.signals import ToolFacts
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.options import EngineOptions
    from sluicegate.stores.workers import WorkerRegistrations
    from sluicegate.tools.worker_registry import WorkerRegistry

_UNNAMED: Final = "worker"
_WHY: Final = "Tools of remote workers ask unless the setting ungated_worker_tools names them."


class TokenFile:
    """The credentials for workers, ``NAME TOKEN`` on a line each; read again for each session."""

    def __init__(self, path: str | None) -> None:
        """Take the file's name; without one no worker wants a credential.

        Raises:
            ConfigurationError: The file cannot be read.
        """
        self._path = None if path is None else Path(path)
        self.token(_UNNAMED)

    def token(self, name: str) -> str | None:
        """The credential for a worker; None where it wants none."""
        if self._path is None:
            return None
        try:
            lines = self._path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigurationError(
                f"The file {self._path} of worker_tokens cannot be read: {reason}."
            ) from None
        words = (line.partition("#")[0].split() for line in lines)
        return next((found[1] for found in words if len(found) == 2 and found[0] == name), None)


def open_workers(options: EngineOptions, found: AgentSurvey) -> WorkerRegistry | None:
    """The registry that the options ask for; None where there can be no worker.

    Raises:
        ConfigurationError: A worker or a file cannot be used, or the package mcp is missing.
    """
    if not options.workers and options.worker_registrations is None:
        return None
    require_mcp()
    room: Any = importlib.import_module("sluicegate.tools.worker_registry")
    terms = importlib.import_module("sluicegate.tools.remote_tools").RemoteToolSettings(
        allowed=frozenset(options.worker_tools) or None,
        ungated=frozenset(options.ungated_worker_tools),
        seconds=options.worker_timeout,
    )
    taken = {tool.name for tools in found.tools.values() for tool in tools}
    taken |= set(options.page_tools)
    registry: WorkerRegistry = room.WorkerRegistry(
        terms, lease=options.worker_lease, reserved_names=taken
    )
    tokens = TokenFile(options.worker_tokens)
    for entry in options.workers:
        head, equals, rest = entry.partition("=")
        is_named = bool(equals) and "://" not in head
        name, url = (head, rest) if is_named else (_UNNAMED, entry)
        registry.add(name, url, lambda name=name: tokens.token(name))  # type: ignore[misc]
    return registry


def share_workers(
    registry: WorkerRegistry, store: WorkerRegistrations, options: EngineOptions
) -> None:
    """Let a registry know what registers with other servers of the same database.

    Raises:
        ConfigurationError: The file of the credentials cannot be read.
    """
    if options.worker_registrations is None:
        return
    sharing = importlib.import_module("sluicegate.tools.worker_registry")
    registry.share(sharing.WorkerSharing(store, TokenFile(options.worker_tokens).token))


def agent_of_workers(root: object) -> LlmAgent:
    """The agent that may call the tools of workers.

    Raises:
        ConfigurationError: The root is no agent with a model.
    """
    if not isinstance(root, LlmAgent):
        raise ConfigurationError(
            "Tools of remote workers need a root agent with a model; "
            f"{getattr(root, 'name', 'the root')!r} has none."
        )
    return root


def attach(
    app: App, registry: WorkerRegistry, found: AgentSurvey, options: EngineOptions
) -> AgentSurvey:
    """Let the root agent of the engine's copy call the tools of workers.

    Returns:
        The survey, which now knows of them: they come and go, so the agent may gate.

    Raises:
        ConfigurationError: The root is no agent with a model.
    """
    root = agent_of_workers(app.root_agent)
    toolset = importlib.import_module("sluicegate.tools.worker_registry").WorkerToolset(registry)
    # ADK: of two tools of the same name the later one runs; the agent's own must win.
    root.tools = [toolset, *root.tools]
    names = ToolNames(options.dynamic_gates, options.never_gates, options.client_tools)

    def late(name: str) -> ToolFacts | None:
        tool = registry.find(name)
        return None if tool is None else facts_of(tool, requirement_of(tool, names).kind)

    unlisted = {**found.unlisted}
    unlisted[root.name] = (*unlisted.get(root.name, ()), type(toolset).__name__)
    gate = GatedTool(root.name, type(toolset).__name__, _WHY)
    return replace(
        found, may_gate=True, gated_tools=[*found.gated_tools, gate], unlisted=unlisted, late=late
    )
