"""The stores that the settings name, opened together or not at all."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from google.adk.runners import Runner

from sluicegate.core.exchanges import Exchange, TurnStamp, exchanges, in_view
from sluicegate.core.history import RebuiltExchange, rebuild
from sluicegate.core.plan import ChatLog
from sluicegate.engine.agents.agent_copy import build_app
from sluicegate.engine.agents.partial_listeners import unobserved_agents
from sluicegate.engine.agents.refusals import refusals
from sluicegate.engine.agents.survey import AgentSurvey, root_of, survey
from sluicegate.engine.files.chat_files import ChatFiles, FileCache
from sluicegate.engine.guard.plugin import ApprovalPlugin
from sluicegate.engine.models.model_files import ModelFiles
from sluicegate.engine.models.redact_errors import redact_errors
from sluicegate.engine.page_tools import attach_page_tools, refuse_page_tools
from sluicegate.engine.recorder import RecordedSessions
from sluicegate.engine.remote_workers import attach, open_workers, share_workers
from sluicegate.engine.turn.close_open_calls import OpenCallCloser
from sluicegate.engine.turn.lease_monitor import LeaseMonitor
from sluicegate.engine.turn.registry import TurnRegistry
from sluicegate.engine.turn.replicas import UNSEEN, ChatLocation, Replicas
from sluicegate.engine.turn.session_log import SessionLog
from sluicegate.errors import ConfigurationError, StoreError, Unavailable
from sluicegate.media.capabilities import CapabilityTable
from sluicegate.stores.approvals.grants import Grants
from sluicegate.stores.approvals.inbox import ApprovalInbox
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.artifacts import open_artifacts
from sluicegate.stores.chats import ChatIndex
from sluicegate.stores.leases.database_leases import DatabaseLeases
from sluicegate.stores.leases.process_leases import ProcessLeases
from sluicegate.stores.sessions import ChatSessions
from sluicegate.stores.sql.database import Database
from sluicegate.stores.streams.open_streams import open_streams
from sluicegate.stores.uploads import Uploads
from sluicegate.stores.workers import WorkerRegistrations

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import App
    from google.adk.models.base_llm import BaseLlm
    from google.adk.workflow import BaseNode

    from sluicegate.core.keys import ChatKey
    from sluicegate.core.ledger_overlay import Rows
    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.recorder import Recorder
    from sluicegate.stores.leases.base import Leases
    from sluicegate.stores.streams.base import StreamStore
    from sluicegate.tools.gated import Policy
    from sluicegate.tools.worker_registry import WorkerRegistry


class OpenStores(NamedTuple):
    """What chats are kept in."""

    streams: StreamStore
    database: Database
    sessions: ChatSessions


async def open_stores(
    options: EngineOptions, tape: Recorder | None, clock_offset: Callable[[], float]
) -> OpenStores:
    """Open streams, database and sessions, with the tables of all.

    Raises:
        ConfigurationError: one of them cannot be used; none stays open.
    """
    async with AsyncExitStack() as opened:
        streams = await open_streams(
            options.streams,
            max_chunks=options.max_turn_chunks,
            max_bytes=options.max_turn_bytes,
        )
        opened.push_async_callback(streams.aclose)
        database = await Database.open(options.sessions, clock_offset=clock_offset)
        opened.push_async_callback(database.close)
        kept = options.session_cache_bytes
        sessions = (
            ChatSessions(database, max_bytes=kept)
            if tape is None
            else RecordedSessions(tape, database, max_bytes=kept)
        )
        await database.create_session_tables(sessions)
        opened.pop_all()
        return OpenStores(streams, database, sessions)


async def open_leases(database: Database, clock_offset: Callable[[], float]) -> Leases:
    """Return the leases of the chats, which lie in the database where others may be on it.

    Raises:
        StoreError: the database cannot be written.
    """
    if not database.is_exclusive:
        return DatabaseLeases(database)
    return await ProcessLeases.open(database, lambda: time.monotonic() + clock_offset())


SECONDS: Final = 4.5
"""How long the stores may take to answer."""

NOT_SHARED: Final = (
    "streams are kept in memory: with several replicas a turn is read live only at the one that "
    "runs it (--streams)"
)
STREAMS_AWAY: Final = "the stream server does not answer: turns are read live only where they run"


async def readiness(database: Database, streams: StreamStore) -> list[str]:
    """Return notes for whoever runs the server; without any, all is well.

    The stream server decides nothing: without it every approval works, so it is only noted.

    Raises:
        Unavailable: the database does not answer.
    """
    try:
        async with asyncio.timeout(SECONDS):
            shared, _ = await asyncio.gather(streams.check(), database.check())
    except (StoreError, TimeoutError) as error:
        raise Unavailable("The database does not answer; try again.", retry_after=5) from error
    if database.is_exclusive:
        return []
    if not streams.is_shared:
        return [NOT_SHARED]
    return [] if shared else [STREAMS_AWAY]


logger = logging.getLogger("sluicegate")
PROCESS = secrets.token_hex(8)
"""Names this process among all that may share the stores."""


@dataclass(frozen=True, slots=True)
class EngineResources:
    """The agent's copy, the stores and the running turns; ``model`` names the agent's model."""

    app: str
    model: str
    options: EngineOptions
    survey: AgentSurvey
    runner: Runner
    database: Database
    streams: StreamStore
    ledger: Ledger
    grants: Grants
    waiting: ApprovalInbox
    leases: Leases
    chats: ChatIndex
    log: SessionLog
    files: ChatFiles
    uploads: Uploads
    models: ModelFiles
    closing: OpenCallCloser
    turns: TurnRegistry
    elsewhere: Replicas
    watch: LeaseMonitor
    tape: Recorder | None = None
    policy: Policy | None = None
    workers: WorkerRegistry | None = None
    warned: set[str] = field(default_factory=set)

    async def chat_log(self, chat: ChatKey, place: ChatLocation = UNSEEN) -> ChatLog:
        """The stored conversation as it is now; ``place`` was looked up before."""
        if self.workers is not None:
            await self.workers.refresh_new()
        session = await self.log.load(chat)
        found = exchanges(session.events) if session is not None else []
        rows = {row.approval_id: row for row in await self.ledger.rows(chat)}
        running = self.turns.running(chat)
        files_url = self.files_url(chat)
        last = found[-1] if found else None

        def goes_on(exchange: Exchange) -> bool:
            if running is not None:
                return running.stamp.message == exchange.message_id
            away = place.away
            return away is not None and away.is_running(exchange.message_id, last=exchange is last)

        def rebuilt(exchange: Exchange, rows: Rows) -> RebuiltExchange:
            return rebuild(
                exchange, rows, self.survey, files_url=files_url, running=goes_on(exchange)
            )

        def is_over(exchange: Exchange) -> bool:
            return not goes_on(exchange) and not rebuilt(exchange, rows).is_unfinished

        found = in_view(found, is_over)
        limits = self.options.request_limits
        return ChatLog(chat, found, rows, rebuilt, session is None, limits, place.fence)

    def files_url(self, chat: ChatKey) -> str:
        """Where files of the chat are fetched; absolute when the public address is known."""
        root = self.options.public_url or ""
        return f"{root}{self.options.prefix}/chats/{chat.chat}/files/"

    def stamp(self, user_message: str, release: ReleasePolicy) -> TurnStamp:
        """The stamp of the first turn of a new exchange (T1)."""
        return TurnStamp(
            message=f"msg-{secrets.token_hex(12)}",
            turn=new_turn_id(),
            user_message=user_message,
            # ``preview`` rests as ``deferred`` does; only a running turn differs.
            release="progressive" if release == "progressive" else "deferred",
            style=self.options.approval_style,
            created_at=time.time(),
            model=self.model,
        )

    def approval_ttl(self, tool: str) -> float:
        """Seconds an approval of that tool waits: by the settings, or as its author said."""
        declared = self.survey.facts("", tool).expires
        default = self.options.approval_ttl if declared is None else declared
        return self.options.approval_ttls.get(tool, default)

    def warn_unforeseen(self, tool: str) -> None:
        """Say once per tool that it asked although nothing in it shows that it may."""
        if tool not in self.warned:
            self.warned.add(tool)
            logger.warning(
                "tool %s asked for approval unforeseen; name it in the setting dynamic_gates", tool
            )

    async def close(self) -> None:
        """Close the agent's toolsets and the stores."""
        await self.watch.aclose()
        await self.runner.close()
        await self.streams.aclose()
        await self.database.close()


def new_turn_id() -> str:
    """A fresh id of a turn."""
    return f"turn-{secrets.token_hex(8)}"


def moment(seconds: float) -> str:
    """Seconds since the epoch as an ISO 8601 moment in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


async def open_resources(
    target: BaseAgent | BaseNode | App,
    options: EngineOptions,
    *,
    model: BaseLlm | str | None,
    clock_offset: Callable[[], float],
    tape: Recorder | None,
    policy: Policy | None,
) -> EngineResources:
    """Survey and copy the agent, open the stores.

    Raises:
        ConfigurationError: the agent cannot be gated as it is, or a store cannot be opened.
    """
    found = await survey(
        target,
        dynamic_gates=options.dynamic_gates,
        never_gates=options.never_gates,
        client_tools=options.client_tools,
    )
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
        FileCache(options.file_cache_bytes),
        turns=options.file_turns,
        untrusted=frozenset(options.page_tools),
    )
    # A recorder stores every event as ADK emits it, partial ones too.
    uses_fast_lane = options.fast_lane == "auto" and tape is None
    plugin = ApprovalPlugin(unobserved_agents(target) if uses_fast_lane else ())
    app = build_app(
        target,
        plugins_first=[plugin],
        model=model or options.model,
        client_tools=options.client_tools,
        wrap_model=lambda model: redact_errors(models.around(model)),
    )
    if workers is not None:
        found = attach(app, workers, found, options)
    if options.page_tools:
        found = attach_page_tools(app, options.page_tools, found)
    streams, database, sessions = await open_stores(options, tape, clock_offset)
    if workers is not None:
        if not database.is_exclusive:
            share_workers(workers, WorkerRegistrations(database, app.name), options)
        await workers.refresh()
    runner = Runner(app=app, session_service=sessions, artifact_service=artifacts)
    ledger, leases = Ledger(database), await open_leases(database, clock_offset)
    log = SessionLog(sessions)
    closing = OpenCallCloser(ledger, log, found.terms)
    turns = TurnRegistry(runner, streams, leases, log, closing, options)
    elsewhere = Replicas(leases, streams, turns.is_here, alone=database.is_exclusive)
    watch = LeaseMonitor(turns, elsewhere, leases, streams)
    if not database.is_exclusive:
        watch.begin()
    return EngineResources(
        app=app.name,
        model=_model_name(app.root_agent),
        options=options,
        survey=found,
        runner=runner,
        database=database,
        streams=streams,
        ledger=ledger,
        grants=Grants(database, ledger),
        waiting=ApprovalInbox(database),
        leases=leases,
        chats=ChatIndex(database),
        log=log,
        files=files,
        uploads=Uploads(database),
        models=models,
        closing=closing,
        turns=turns,
        elsewhere=elsewhere,
        watch=watch,
        tape=tape,
        policy=policy,
        workers=workers,
    )


def _model_name(root: object) -> str:
    """The name of the first model of a tree, as responses without a version are told (T3)."""
    model = getattr(root, "model", None)
    if model:
        return model if isinstance(model, str) else str(getattr(model, "model", type(model)))
    below = getattr(root, "sub_agents", None) or getattr(root, "nodes", None) or ()
    return next((name for agent in below if (name := _model_name(agent))), "")
