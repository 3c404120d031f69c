"""The resources of an engine: the agent's copy, the stores and the turns, opened together."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App

from sluicegate.adk_private_runs import TreeRunner
from sluicegate.engine.agents.agent_callbacks import hide_answers
from sluicegate.engine.agents.agent_copy import CopyChanges, build_app
from sluicegate.engine.agents.agent_models import ModelSettings
from sluicegate.engine.agents.refusals import refusals
from sluicegate.engine.agents.survey import AgentSurvey, root_of, survey
from sluicegate.engine.agents.unobserved_agents import unobserved_agents
from sluicegate.engine.chat_tools import ChatTools, attach_chat_tools
from sluicegate.engine.continue_turn import ContinueTurn
from sluicegate.engine.entitlement import Entitlement
from sluicegate.engine.files.upload_quotas import UploadQuotas
from sluicegate.engine.guard.adk_plugin import ApprovalPlugin, LastPlugin
from sluicegate.engine.guard.previews import PREVIEWS_SETTING, TOO_MANY_PREVIEWS, Previews
from sluicegate.engine.load_conversation import ChatLogs
from sluicegate.engine.models.intercept_model_calls import redact_errors, report_model_errors_once
from sluicegate.engine.models.model_errors import missing_key
from sluicegate.engine.open_stores import open_stores
from sluicegate.engine.page_tools import attach_page_tools, refuse_page_tools
from sluicegate.engine.preview_edits import PreviewEdits
from sluicegate.engine.rate_limits import RateLimit
from sluicegate.engine.remote_workers import attach, open_workers, share_workers
from sluicegate.engine.start_turn import StartTurn
from sluicegate.engine.telemetry import OBSERVED, ApprovalTelemetry
from sluicegate.engine.turn.approval_expiry import ApprovalExpiry
from sluicegate.engine.turn.builder import TurnBuilder
from sluicegate.engine.turn.close_open_calls import OpenCallCloser
from sluicegate.engine.turn.leases import ChatLeases
from sluicegate.engine.turn.local_turns import LocalTurns
from sluicegate.engine.turn.replica_monitor import ReplicaMonitor
from sluicegate.engine.turn.replicas import Replicas
from sluicegate.engine.turn.session_log import SessionLog
from sluicegate.engine.turn_context import CURRENT_TURN
from sluicegate.engine.webhooks.opening import open_webhooks, webhook_options
from sluicegate.errors import ConfigurationError
from sluicegate.media.adk_plugin import MediaPlugin
from sluicegate.media.capabilities import CapabilityTable
from sluicegate.media.chat_files import ChatFiles, FileCache
from sluicegate.media.model_wrapper import ModelFiles
from sluicegate.stores.approvals.due import DueApprovals
from sluicegate.stores.approvals.grants import Grants
from sluicegate.stores.approvals.inbox import ApprovalInbox
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.chats import ChatIndex
from sluicegate.stores.open_artifacts import open_artifacts
from sluicegate.stores.sql.time_limits import DatabaseTimings
from sluicegate.stores.tool_workers import WorkerRegistrations
from sluicegate.stores.upload_records import Uploads
from sluicegate.stores.user_roles import UserRoles

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.models.base_llm import BaseLlm
    from google.adk.workflow import BaseNode

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.engine.agents.agent_models import AgentModels
    from sluicegate.engine.chat_tools import EngineHooks, ToolsFor
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.recorder import Recorder
    from sluicegate.engine.webhooks.delivery import WebhookDelivery
    from sluicegate.stores.sql.database import Database
    from sluicegate.stores.streams.base import StreamStore
    from sluicegate.stores.streams.user_events import UserEvents
    from sluicegate.stores.streams.valkey_rates import ValkeyRates
    from sluicegate.tools.gated import Policy
    from sluicegate.tools.worker_registry import WorkerRegistry

logger = logging.getLogger("sluicegate")


@dataclass(frozen=True, slots=True)
class EngineTimings:
    """Waits and intervals in seconds that are no settings, and the database's clock."""

    clock_offset: Callable[[], float] = lambda: 0.0
    """Added to the database's clock; deadlines go by it."""
    decision: float = 2.0
    """For which a decision from outside the chat page waits for the turn that runs."""
    lease: float = 2.0
    """For which a user's message waits for a chat that another process holds."""
    stream: float = 1.0
    """From a lease to the first chunk of its turn, for a reader in another process."""
    lease_poll: float = 1.0
    """Between two polls of the leases."""
    expiry: float = 30.0
    """Between two looks for approvals whose deadline has passed or whose process has died."""
    webhook_poll: float = 0.25
    """Between two looks for events of webhooks that another process has written."""
    readiness: float = 4.5
    """In which the stores must answer to be ready."""
    database: DatabaseTimings = field(default_factory=DatabaseTimings)
    """The time limits of the database."""


DEFAULT_TIMINGS: Final = EngineTimings()


@dataclass(frozen=True, slots=True)
class EngineResources:
    """What an engine is built from.

    ``app`` is the name of the agent's application, ``live_models`` are those of its live models, by
    agent, the root first. ``observes_events``: a plugin, a callback or a class of the user, or the
    recorder, may see what ADK passes on.
    """

    app: str
    options: EngineOptions
    survey: AgentSurvey
    runner: TreeRunner
    database: Database
    streams: StreamStore
    events: UserEvents
    rates: ValkeyRates | None
    session_log: SessionLog
    ledger: Ledger
    grants: Grants
    inbox: ApprovalInbox
    chats: ChatIndex
    files: ChatFiles
    uploads: Uploads
    upload_quotas: UploadQuotas
    models: ModelFiles
    live_models: Mapping[str, str]
    observes_events: bool
    leases: ChatLeases
    turns: LocalTurns
    replicas: Replicas
    replica_monitor: ReplicaMonitor
    expiry: ApprovalExpiry
    logs: ChatLogs
    builder: TurnBuilder
    start_turn: StartTurn
    continue_turn: ContinueTurn
    entitlement: Entitlement
    previews: Previews
    recorder: Recorder | None = None
    policy: Policy | None = None
    workers: WorkerRegistry | None = None
    webhooks: WebhookDelivery | None = None

    @property
    def live_model(self) -> str:
        """The name of the live model of the first agent that has one."""
        return next(iter(self.live_models.values()), "")

    async def close(self) -> None:
        """Close the agent's toolsets and the stores."""
        await self.replica_monitor.aclose()
        await self.expiry.aclose()
        OBSERVED.remove_engine(self.turns)
        if self.webhooks is not None:
            await self.webhooks.aclose()
        self.previews.close()
        await self.runner.close()
        await self.streams.aclose()
        await self.events.aclose()
        if self.rates is not None:
            await self.rates.aclose()
        await self.database.close()


class _Agent(NamedTuple):
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


async def open_resources(
    target: BaseAgent | BaseNode | App,
    options: EngineOptions,
    *,
    model: BaseLlm | str | None,
    timings: EngineTimings,
    recorder: Recorder | None,
    hooks: EngineHooks,
) -> EngineResources:
    """Survey and copy the agent, open the stores.

    Raises:
        ConfigurationError: the agent cannot be gated as it is, or a store cannot be opened.
    """
    agent = await _copy(target, options, model, hooks.tools_for, fast_lane=recorder is None)
    endpoints = webhook_options(options)
    stores = await open_stores(options, recorder, timings, app=agent.app.name)
    for sentence in agent.missing_keys:
        logger.warning("the model cannot answer: %s", sentence)
    database, workers = stores.database, agent.workers
    if workers is not None:
        if not database.is_exclusive:
            share_workers(workers, WorkerRegistrations(database, agent.app.name), options)
        await workers.refresh()
    events = stores.events
    leases = ChatLeases(stores.leases, options.lease_ttl)
    webhooks = await open_webhooks(
        endpoints, database, leases, agent.app.name, timings.webhook_poll
    )

    traces = ApprovalTelemetry()

    def changed(rows: Iterable[ApprovalRow]) -> None:
        traces(rows)
        if workers is not None:
            workers.held.settle(rows)
        if webhooks is not None:
            webhooks.wake()

    ledger, session_log = Ledger(database, events, changed), SessionLog(stores.sessions)
    closer = OpenCallCloser(ledger, session_log, agent.survey)
    turns = LocalTurns(stores.streams, leases, session_log, closer, options, events)
    replicas = Replicas(stores.leases, stores.streams, turns.is_local, alone=database.is_exclusive)
    monitor = ReplicaMonitor(turns, replicas, stores.leases, stores.streams)
    if not database.is_exclusive:
        monitor.start(timings.lease_poll)
    due = DueApprovals(database, agent.app.name)
    expiry = ApprovalExpiry(agent.app.name, ledger, due, leases, turns)
    expiry.start(timings.expiry, reminds=webhooks is not None)
    OBSERVED.add_engine(turns, turns.state)
    chats = ChatIndex(database, events)
    uploads = Uploads(database)
    upload_quotas = UploadQuotas(options, uploads)
    runner = TreeRunner(
        app=agent.app,
        session_service=stores.sessions,
        artifact_service=agent.artifacts,
        as_node=agent.survey.as_node,
    )
    hide_answers(runner.plugin_manager)
    logs = ChatLogs(options, agent.survey, session_log, ledger, turns, workers, agent.chat_tools)
    entitlement = Entitlement(UserRoles(database), max_age=options.role_max_age)
    previews = Previews(
        agent.files,
        options.preview_timeout,
        RateLimit(options.max_previews_per_minute, TOO_MANY_PREVIEWS, name=PREVIEWS_SETTING),
    )
    builder = TurnBuilder(
        options=options,
        survey=agent.survey,
        model=_model_name(agent.app.root_agent),
        ledger=ledger,
        turns=turns,
        files=agent.files,
        models=agent.models,
        last_speaker=_last_speaker(agent.app.root_agent),
        policy=hooks.policy,
        recorder=recorder,
        entitlement=entitlement,
        previews=previews,
    )
    return EngineResources(
        app=agent.app.name,
        options=options,
        survey=agent.survey,
        runner=runner,
        database=database,
        streams=stores.streams,
        events=events,
        rates=stores.rates,
        session_log=session_log,
        ledger=ledger,
        grants=Grants(database, ledger),
        inbox=ApprovalInbox(database),
        chats=chats,
        files=agent.files,
        uploads=uploads,
        upload_quotas=upload_quotas,
        models=agent.models,
        live_models=agent.live_models,
        observes_events=agent.observes_events,
        leases=leases,
        turns=turns,
        replicas=replicas,
        replica_monitor=monitor,
        expiry=expiry,
        logs=logs,
        builder=builder,
        start_turn=StartTurn(
            runner=runner,
            builder=builder,
            turns=turns,
            leases=leases,
            logs=logs,
            closer=closer,
            files=agent.files,
            uploads=uploads,
            upload_quotas=upload_quotas,
            chats=chats,
        ),
        continue_turn=ContinueTurn(
            runner=runner,
            builder=builder,
            turns=turns,
            replicas=replicas,
            leases=leases,
            logs=logs,
            chats=chats,
            alone=database.is_exclusive,
            entitlement=entitlement,
            preview_edits=PreviewEdits(agent.survey, previews, ledger),
        ),
        entitlement=entitlement,
        previews=previews,
        recorder=recorder,
        policy=hooks.policy,
        workers=workers,
        webhooks=webhooks,
    )


async def _copy(
    target: BaseAgent | BaseNode | App,
    options: EngineOptions,
    model: BaseLlm | str | None,
    tools_for: ToolsFor | None,
    *,
    fast_lane: bool,
) -> _Agent:
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
    workers = open_workers(options, found)
    models = ModelFiles(
        files,
        CapabilityTable.load(options.model_table),
        FileCache(options.file_cache_bytes, options.file_cache_ttl),
        CURRENT_TURN.get,
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
        plugins_last=[LastPlugin()],
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
        found = attach(app, workers, found, options)
    if options.page_tools:
        found = attach_page_tools(app, options.page_tools, found)
    if chat_tools is not None:
        found = attach_chat_tools(app, chat_tools, found)
    observes_events = not unobserved.issuperset(live_models)
    return _Agent(
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


def _last_speaker(root: object) -> str | None:
    """The root LlmAgent: ADK runs it until its final response, and nothing after it.

    A subclass may go on, and an agent with a code executor calls its model again.
    """
    if type(root) is LlmAgent and root.code_executor is None:
        return root.name
    return None


def _model_name(root: object) -> str:
    """The name of the first model of a tree, for responses without a model version (T3)."""
    model = getattr(root, "model", None)
    if model:
        return model if isinstance(model, str) else str(getattr(model, "model", type(model)))
    below = getattr(root, "sub_agents", None) or getattr(root, "nodes", None) or ()
    return next((name for agent in below if (name := _model_name(agent))), "")
