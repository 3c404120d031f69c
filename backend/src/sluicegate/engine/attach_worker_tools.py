"""Attaches the tools of remote workers to the root agent."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from google.adk.agents.llm_agent import LlmAgent

from sluicegate.engine.agents.approval_requirements import requirement_of
from sluicegate.engine.agents.read_tool_facts import facts_of
from sluicegate.engine.agents.survey import GatedTool
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from google.adk.apps.app import App

    from sluicegate.core.tool_facts import ToolFacts
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.options import EngineOptions
    from sluicegate.tools.worker_registry import WorkerRegistry


_WHY: Final = "Tools of remote workers ask unless the setting ungated_worker_tools names them."


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


def attach_worker_tools(
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
