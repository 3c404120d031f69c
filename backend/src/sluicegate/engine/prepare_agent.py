"""The copy of the agent that the engine runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from google.adk.apps.app import App

from sluicegate.engine.agents.agent_copy import CopyChanges
from sluicegate.engine.agents.app_copy import build_app
from sluicegate.engine.agents.fast_lane_agents import unobserved_agents
from sluicegate.engine.agents.survey import AgentSurvey, root_of, survey
from sluicegate.engine.agents.text_and_live_models import ModelSettings
from sluicegate.engine.agents.unsupported_agents import refusals
from sluicegate.engine.application_chat_tools import ChatTools, attach_chat_tools
from sluicegate.engine.attach_worker_tools import attach_worker_tools
from sluicegate.engine.current_guard import CURRENT_GUARD
from sluicegate.engine.guard.adk_plugins import ApprovalPlugin, GuardPlugin
from sluicegate.engine.models.explain_model_errors import missing_key
from sluicegate.engine.models.intercept_model_calls import redact_errors, report_model_errors_once
from sluicegate.engine.open_remote_tool_workers import open_workers
from sluicegate.engine.page_tools import attach_page_tools, refuse_page_tools
from sluicegate.errors import ConfigurationError
from sluicegate.media.adk_plugin import MediaPlugin
from sluicegate.media.chat_files import ChatFiles
from sluicegate.media.file_cache import FileCache
from sluicegate.media.model_capability_table import CapabilityTable
from sluicegate.media.model_wrapper import ModelFiles
from sluicegate.stores.open_artifacts import open_artifacts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.models.base_llm import BaseLlm
    from google.adk.workflow import BaseNode

    from sluicegate.engine.agents.text_and_live_models import AgentModels
    from sluicegate.engine.hooks import ToolsFor
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.timeouts_and_intervals import EngineTimings
    from sluicegate.tools.worker_registry import WorkerRegistry


class PreparedAgent(NamedTuple):
    """The engine's copy of an agent, and what belongs to it."""

    app: App
    survey: AgentSurvey
    artifacts: BaseArtifactService
    files: ChatFiles
    models: ModelFiles
    live_models: Mapping[str, str]
    observes_events: bool
    workers: WorkerRegistry | None
    missing_keys: Collection[str]
    chat_tools: ChatTools | None


async def prepare_agent(
    target: BaseAgent | BaseNode | App,
    options: EngineOptions,
    model: BaseLlm | str | None,
    tools_for: ToolsFor | None,
    timings: EngineTimings,
    *,
    fast_lane: bool,
) -> PreparedAgent:
    """Survey the agent and copy it for the engine; ``fast_lane`` allows the fast lane.

    Raises:
        ConfigurationError: the agent cannot be gated as it is.
    """
    found = await survey(target, options.tool_names)
    found = replace(found, grant_ttl=options.grant_ttl)
    refused = refusals(target, found)
    if refused:
        raise ConfigurationError(refused[0])
    refuse_page_tools(options.page_tools, found, root_of(target))
    artifacts = open_artifacts(options.artifacts)
    files = ChatFiles(artifacts, options.file_types, options.max_file_bytes)
    workers = open_workers(options, found, timings)
    models = ModelFiles(
        files,
        CapabilityTable.load(options.model_table),
        FileCache(options.file_cache_bytes, options.file_cache_ttl),
        CURRENT_GUARD.get,
        turns=options.file_turns,
        untrusted=frozenset(options.page_tools),
    )
    # A recorder stores every event as ADK emits it, partial ones too.
    uses_fast_lane = options.fast_lane == "auto" and fast_lane
    unobserved = unobserved_agents(target) if uses_fast_lane else frozenset[str]()
    chat_tools = None if tools_for is None else ChatTools(tools_for, found, options.tool_names)
    plugin = ApprovalPlugin(unobserved, chat_tools)
    live_models: dict[str, str] = {}

    missing_keys: dict[str, None] = {}

    def wrap(agent: str, chosen: AgentModels) -> BaseLlm:
        live_models[agent] = chosen.live.model
        missing = missing_key(chosen.text)
        if missing is not None:
            missing_keys[str(missing)] = None
        return redact_errors(models.wrap(chosen.text), chosen.live)

    app = build_app(
        _without_media_plugin(target),
        plugins_first=[plugin],
        plugins_last=[GuardPlugin()],
        changes=CopyChanges(
            models=options.models if model is None else ModelSettings(model),
            names=options.tool_names,
            inline_agents=found.inline_agents,
            wrap_models=wrap,
        ),
    )
    report_model_errors_once()
    live_models = {name: live_models[name] for name in found.agents if name in live_models}
    if workers is not None:
        found = attach_worker_tools(app, workers, found, options)
    if options.page_tools:
        found = attach_page_tools(app, options.page_tools, found)
    if chat_tools is not None:
        found = attach_chat_tools(app, chat_tools, found)
    observes_events = not unobserved.issuperset(live_models)
    return PreparedAgent(
        app,
        found,
        artifacts,
        files,
        models,
        live_models,
        observes_events,
        workers,
        missing_keys,
        chat_tools,
    )


def _without_media_plugin(target: BaseAgent | BaseNode | App) -> BaseAgent | BaseNode | App:
    """Return the target without the plugin that does for any Runner what the engine does."""
    if not isinstance(target, App):
        return target
    others = [plugin for plugin in target.plugins if not isinstance(plugin, MediaPlugin)]
    return target.model_copy(update={"plugins": others})
