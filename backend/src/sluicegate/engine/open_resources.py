"""The resources of an engine: the agent's copy, the stores and the turns, opened together."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.adk_private_resumption import TreeRunner
from sluicegate.engine.agents.hide_answers_from_plugins import hide_answers
from sluicegate.engine.agents.root_agent import last_speaker_of, model_name_of
from sluicegate.engine.continue_turn import ContinueTurn
from sluicegate.engine.entitlement import Entitlement
from sluicegate.engine.files.upload_quotas import UploadQuotas
from sluicegate.engine.guard.compute_previews import PREVIEWS_SETTING, TOO_MANY_PREVIEWS, Previews
from sluicegate.engine.load_chat_log import ChatLogs
from sluicegate.engine.open_remote_tool_workers import share_workers
from sluicegate.engine.open_stores import open_stores
from sluicegate.engine.prepare_agent import prepare_agent
from sluicegate.engine.preview_edited_calls import PreviewEdits
from sluicegate.engine.rate_limits import RateLimit
from sluicegate.engine.start_turn import StartTurn
from sluicegate.engine.telemetry import OBSERVED, ApprovalTelemetry
from sluicegate.engine.turn.approval_sweep import ApprovalSweep
from sluicegate.engine.turn.builder import TurnBuilder
from sluicegate.engine.turn.chat_leases import ChatLeases
from sluicegate.engine.turn.close_undecided_calls import OpenCallCloser
from sluicegate.engine.turn.lease_request_monitor import LeaseMonitor
from sluicegate.engine.turn.local_turns import LocalTurns
from sluicegate.engine.turn.remote_turns import Replicas
from sluicegate.engine.turn.session_log import SessionLog
from sluicegate.engine.webhooks.open_webhooks import open_webhooks, webhook_options
from sluicegate.stores.approvals.grants import Grants
from sluicegate.stores.approvals.inbox import ApprovalInbox
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.approvals.sweep_queries import SweepQueries
from sluicegate.stores.chats import ChatIndex
from sluicegate.stores.last_seen_roles import LastSeenRoles
from sluicegate.stores.tool_workers import WorkerRegistrations
from sluicegate.stores.upload_records import Uploads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import App
    from google.adk.models.base_llm import BaseLlm
    from google.adk.workflow import BaseNode

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.hooks import EngineHooks
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.recorder import Recorder
    from sluicegate.engine.timeouts_and_intervals import EngineTimings
    from sluicegate.engine.webhooks.outbox_delivery import WebhookDelivery
    from sluicegate.media.chat_files import ChatFiles
    from sluicegate.media.model_wrapper import ModelFiles
    from sluicegate.stores.sql.database import Database
    from sluicegate.stores.streams.base import StreamStore
    from sluicegate.stores.streams.user_events import UserEvents
    from sluicegate.stores.streams.valkey_shared_rate_limits import ValkeyRates
    from sluicegate.tools.approval_terms import Policy
    from sluicegate.tools.worker_registry import WorkerRegistry

logger = logging.getLogger("sluicegate")


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
    lease_monitor: LeaseMonitor
    sweep: ApprovalSweep
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
        """Stop the background tasks; close the agent's toolsets and the stores."""
        await self.lease_monitor.aclose()
        await self.sweep.aclose()
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
    agent = await prepare_agent(
        target, options, model, hooks.tools_for, timings, fast_lane=recorder is None
    )
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
    monitor = LeaseMonitor(turns, replicas, stores.leases, stores.streams)
    if not database.is_exclusive:
        monitor.start(timings.lease_poll)
    due = SweepQueries(database, agent.app.name)
    sweep = ApprovalSweep(agent.app.name, ledger, due, leases, turns)
    sweep.start(timings.sweep, reminds=webhooks is not None)
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
    entitlement = Entitlement(LastSeenRoles(database), max_age=options.role_max_age)
    previews = Previews(
        agent.files,
        options.preview_timeout,
        RateLimit(options.max_previews_per_minute, TOO_MANY_PREVIEWS, name=PREVIEWS_SETTING),
    )
    builder = TurnBuilder(
        options=options,
        survey=agent.survey,
        model=model_name_of(agent.app.root_agent),
        ledger=ledger,
        turns=turns,
        files=agent.files,
        models=agent.models,
        last_speaker=last_speaker_of(agent.app.root_agent),
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
        lease_monitor=monitor,
        sweep=sweep,
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
