"""The engine that runs an agent: plans requests, one at a time for each chat, and runs turns."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.core.plan import ChatLog, ContinueExchange, NewExchange, RepeatExchange, plan_turn
from sluicegate.engine.approval_history import ApprovalHistory
from sluicegate.engine.approvals import ChatApprovals
from sluicegate.engine.continue_turn import OPEN_LIVE, ContinueOptions
from sluicegate.engine.entitled_user_events import EntitledEvents, no_roles
from sluicegate.engine.files.pending_uploads import PendingUploads, file_ui_part
from sluicegate.engine.hooks import NO_HOOKS
from sluicegate.engine.open_resources import EngineResources, open_resources
from sluicegate.engine.page_tools import convert_page_tools
from sluicegate.engine.polling_backoff import Backoff
from sluicegate.engine.rate_limits import TOO_MANY_MESSAGES, RateLimit
from sluicegate.engine.readiness import readiness
from sluicegate.engine.repeated_requests import repeats_remote
from sluicegate.engine.respond_without_turn import stored
from sluicegate.engine.stored_chats import StoredChats
from sluicegate.engine.timeouts_and_intervals import DEFAULT_TIMINGS
from sluicegate.engine.turn.drain import drain, finish_turns
from sluicegate.engine.unknown_outcomes import open_unknown_outcomes
from sluicegate.errors import HeldByAnotherOwner, Malformed, TurnRunning, Unavailable
from sluicegate.stores.approvals.audit_reading import AuditTrail
from sluicegate.stores.cookie_sessions import DatabaseCookieSessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import App
    from google.adk.models.base_llm import BaseLlm
    from google.adk.workflow import BaseNode

    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.entitlement import RolesOf
    from sluicegate.engine.hooks import EngineHooks
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.recorder import Recorder
    from sluicegate.engine.timeouts_and_intervals import EngineTimings
    from sluicegate.engine.turn.live_chat_registry import ChatOwner
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.engine.turn.remote_turns import ChatLocation, RemoteTurn
    from sluicegate.stores.streams.valkey_shared_rate_limits import SharedLimit
    from sluicegate.tools.worker_registry import WorkerRegistry
    from sluicegate.wire.requests import ChatRequest


class ChatEngine:
    """One agent, its stores and its running turns; the same for every transport."""

    def __init__(
        self, resources: EngineResources, timings: EngineTimings = DEFAULT_TIMINGS
    ) -> None:
        self.resources = resources
        """The stores and turns, for live chats, which run turns in another way."""
        self.cookie_sessions = DatabaseCookieSessions(resources.database, resources.events)
        self._timings = timings
        self._turns = resources.turns
        self._replicas = resources.replicas
        self._logs = resources.logs
        self._options = resources.options
        self._locks: WeakValueDictionary[ChatKey, asyncio.Lock] = WeakValueDictionary()
        self._rate = RateLimit(
            resources.options.max_messages_per_minute,
            TOO_MANY_MESSAGES,
            name="max_messages_per_minute",
        )
        self._stored = StoredChats(
            app=resources.app,
            chats=resources.chats,
            logs=resources.logs,
            replicas=resources.replicas,
            leases=resources.leases,
            files=resources.files,
            models=resources.models,
            uploads=resources.uploads,
            grants=resources.grants,
        )
        self.approvals = ChatApprovals(
            app=resources.app,
            survey=resources.survey,
            inbox=resources.inbox,
            grant_store=resources.grants,
            chats=resources.chats,
            logs=resources.logs,
            start_from_log=self.start_from_log,
            unknown=open_unknown_outcomes(resources, patience=timings.decision),
            patience=timings.decision,
            entitlement=resources.entitlement,
            files=resources.files,
        )
        self.history = ApprovalHistory(
            resources.app,
            AuditTrail(resources.database),
            resources.entitlement,
            resources.options.sessions,
        )
        self._uploads = PendingUploads(
            app=resources.app,
            ttl=resources.options.upload_ttl,
            uploads=resources.uploads,
            limits=resources.upload_quotas,
            files=resources.files,
            logs=resources.logs,
            replicas=resources.replicas,
            leases=resources.leases,
            lock=self.lock,
        )
        of_uploads, of_previews = resources.upload_quotas.rates, resources.previews.rate
        for limit in (self._rate, resources.turns.rate, *of_uploads, of_previews):
            self.share_rate(limit)

    @classmethod
    async def open(
        cls,
        target: BaseAgent | BaseNode | App,
        options: EngineOptions,
        *,
        model: BaseLlm | str | None = None,
        timings: EngineTimings = DEFAULT_TIMINGS,
        recorder: Recorder | None = None,
        hooks: EngineHooks = NO_HOOKS,
    ) -> Self:
        """Open stores and copy the agent; in the caller's objects only MCP HTTP clients change.

        ``model`` replaces every model of the agent. ``recorder`` records what happens in chats.
        ``hooks`` are the functions of the application.

        Raises:
            ConfigurationError: one sentence that names the tool or setting and the way out.
        """
        resources = await open_resources(
            target, options, model=model, timings=timings, recorder=recorder, hooks=hooks
        )
        engine = cls(resources, timings)
        await engine._uploads.sweep()
        return engine

    @property
    def survey(self) -> AgentSurvey:
        """The agents and tools that the engine serves."""
        return self.resources.survey

    def share_rate(self, limit: SharedLimit) -> None:
        """Count a limit together with other processes, if they share streams."""
        if self.resources.rates is not None:
            self.resources.rates.share(limit)

    async def finish_turns(self, *, within: float, hurried: asyncio.Event) -> bool:
        """Wait until no turn runs, ``within`` seconds at most, or until ``hurried`` is set.

        Returns whether none runs.
        """
        return await finish_turns(self._turns, within=within, hurried=hurried)

    async def drain(self, *, within: float, hurried: asyncio.Event) -> None:
        """End every turn before `close`: refuse new ones, wait for claimed calls.

        ``within`` is in seconds; after them, or once ``hurried`` is set, claimed calls are cut,
        and their outcome is unknown.
        """
        await drain(self._turns, within=within, hurried=hurried)

    async def close(self) -> None:
        """Stop the turns, then close the stores."""
        await self.approvals.close()
        await self._turns.close()
        await self.resources.close()

    async def ready(self) -> list[str]:
        """Return notes for the operator; raises Unavailable without a database."""
        resources = self.resources
        return await readiness(
            resources.database, resources.streams, within=self._timings.readiness
        )

    async def start(
        self,
        request: ChatRequest,
        *,
        user: str,
        client: RequestingClient,
        origin: ChatOwner | None = None,
    ) -> TurnReader:
        """Start or continue an exchange; the reader yields its chunks.

        ``origin`` is the open live chat that the request came to.

        Raises:
            RequestError: nothing has changed.
        """
        chat = self._key(user, request.chat_id)
        options = ContinueOptions(
            self.release_for(client),
            replace(client, tools=convert_page_tools(request.tools)),
            origin,
        )
        self._rate.take(client.decided_by or user)
        async with self.lock(chat):
            reader = await self._join(request, chat, options)
            if reader is not None:
                return reader
            return await self._start(chat, lambda _log: request, options)

    async def start_from_log(
        self,
        request_of: Callable[[ChatLog], ChatRequest],
        *,
        chat: ChatKey,
        client: RequestingClient,
    ) -> TurnReader:
        """As `start`, with a request that is made from the chat as it stands.

        Raises:
            RequestError: nothing has changed; ``request_of`` may raise it.
        """
        self._rate.take(client.decided_by or chat.user)
        options = ContinueOptions(self.release_for(client), client, None)
        async with self.lock(chat):
            return await self._start(chat, request_of, options)

    async def resume(
        self, chat_id: str, *, user: str, client: RequestingClient
    ) -> TurnReader | None:
        """Read the running message from its beginning; None when nothing runs (section 7)."""
        chat = self._key(user, chat_id)
        running = self._turns.running(chat)
        if running is not None:
            return await self._turns.message_reader(running, client.major)
        pause = Backoff(self._timings.stream)
        while True:
            remote = (await self._replicas.locate(chat)).remote
            if remote is None:
                return None
            if remote.description is not None:
                return await self._replicas.message_reader(remote, client.major)
            if remote.is_live or not self.resources.streams.is_shared or not await pause():
                return None

    def resumed(
        self, reader: TurnReader, chat_id: str, *, user: str, client: RequestingClient
    ) -> TurnReader:
        """Called with each reader that a live chat resumes; returns the one to use."""
        return reader

    async def stop(self, chat_id: str, *, user: str) -> None:
        """Stop the running turn, or supersede the open approvals; without both, do nothing.

        Raises:
            HeldByAnotherOwner: another process has taken the waiting chat meanwhile.
        """
        chat = self._key(user, chat_id)
        owner = self._turns.chat_owners.of(chat)
        if owner is not None:
            await owner.stop()
            return
        running = self._turns.running(chat)
        if running is None:
            remote = (await self._replicas.locate(chat)).remote
            if remote is not None:
                within = self._options.tool_timeout + self._options.lease_ttl
                if not await self._replicas.stop(chat, remote.fence, within):
                    return
            async with self.lock(chat):
                # A turn that was being prepared runs by now.
                running = self._turns.running(chat)
                if running is None:
                    await self._supersede_waiting(chat)
                    return
        await self._turns.stop(running)

    async def read_events(self, after: str | None, *, user: str) -> EntitledEvents:
        """Read what changes for a user, after the event with the id ``after`` if it is known.

        Raises:
            StoreError: The roles of the user cannot be read.
        """
        resources = self.resources
        has_approvers = resources.survey.has_approvers
        roles_now = partial(resources.entitlement.roles, user) if has_approvers else no_roles
        return await EntitledEvents.open(resources.events, user, after, roles_now=roles_now)

    async def list_chats(
        self, *, user: str, limit: int, after: str | None, query: str | None
    ) -> dict[str, Any]:
        """``{chats: [{id, title, updatedAt, pendingApprovals, status}], next}``, newest first."""
        return await self._stored.list(user, limit=limit, after=after, query=query)

    async def get_chat(self, chat_id: str, *, user: str) -> dict[str, Any]:
        """``{id, title, messages, status}``; raises Unknown."""
        return await self._stored.get(self._key(user, chat_id))

    async def get_version(
        self, chat_id: str, message_id: str, version: int, *, user: str
    ) -> dict[str, Any]:
        """What a message replaced: ``{version, messages}``; raises Unknown."""
        return await self._stored.get_version(self._key(user, chat_id), message_id, version)

    async def rename_chat(self, chat_id: str, title: str, *, user: str) -> None:
        """Set the title; raises Unknown."""
        await self._stored.rename(self._key(user, chat_id), title)

    async def delete_chat(self, chat_id: str, *, user: str) -> None:
        """Delete the conversation; the audit trail keeps the decisions.

        Raises:
            Unknown: no such chat of this user.
            TurnRunning: it is being answered.
        """
        chat = self._key(user, chat_id)
        async with self.lock(chat):
            await self._stored.delete(chat)

    async def save_file(
        self, chat_id: str, data: bytes, media_type: str, *, title: str | None, user: str
    ) -> dict[str, Any]:
        """Store an attachment: ``{url, mediaType, name, filename?}``, as a file part has them.

        A file that no model of the agent reads has a ``notice`` for the user beside them.

        Raises:
            RequestError: it is not accepted, or could not be stored.
        """
        chat = self._key(user, chat_id)
        file = await self._uploads.save(chat, data, media_type, title)
        part = file_ui_part(file, self._options.files_url_of(chat_id))
        notice = self.resources.models.notice_before_sending(file)
        return part if notice is None else {**part, "notice": notice}

    async def get_file(self, chat_id: str, name: str, *, user: str) -> tuple[bytes, str]:
        """The bytes and media type of a file of the chat; raises Unknown."""
        return await self.resources.files.read(self._key(user, chat_id), name)

    def ask_roles(self, roles_of: RolesOf) -> None:
        """Ask a function for the roles of users, instead of noting them."""
        self.resources.entitlement.ask(roles_of)

    async def record_roles(self, user: str, roles: frozenset[str]) -> None:
        """Record the roles with which a user is seen; raises StoreError."""
        await self.resources.entitlement.record(user, roles)

    async def worker_registry(self) -> WorkerRegistry:
        """The registry in which remote tool workers announce themselves; raises Unavailable."""
        if self.resources.workers is None:
            raise Unavailable
        return self.resources.workers

    def release_for(self, client: RequestingClient) -> ReleasePolicy:
        """The release policy for a client; Malformed if the setting fixes another (section 5)."""
        options = self._options
        release = client.release or options.release
        if options.release_fixed and release != options.release:
            raise Malformed(f"This server releases {options.release} only; leave x-release out.")
        if not self.survey.may_gate:
            return "progressive"
        return "deferred" if release == "preview" and client.major == 6 else release

    def lock(self, chat: ChatKey) -> asyncio.Lock:
        """The lock under which one request at a time decides what a chat runs next."""
        return self._locks.setdefault(chat, asyncio.Lock())

    def _key(self, user: str, chat_id: str) -> ChatKey:
        return ChatKey(self.resources.app, user, chat_id)

    async def _start(
        self,
        chat: ChatKey,
        request_of: Callable[[ChatLog], ChatRequest],
        options: ContinueOptions,
    ) -> TurnReader:
        pause = Backoff(self._timings.lease)
        while True:
            running = self._turns.running(chat)
            location = await self._replicas.locate(chat)
            log = await self._logs.load(chat, location)
            if running is not None and self._turns.running(chat) is not running:
                # The log may have been read before the turn had stored its end.
                continue
            request, remote = request_of(log), location.remote
            if remote is not None and repeats_remote(request, log, remote):
                reader = await self._join_remote(chat, remote, options.client)
                if reader is not None:
                    return reader
                continue
            try:
                return await self._run(request, log, location, options)
            except HeldByAnotherOwner:
                # A turn of another process may be over soon, a live chat is not.
                is_live = remote is not None and remote.is_live
                if is_live or self._turns.chat_owners.of(chat) is not None:
                    raise
                if not await pause():
                    raise

    async def _join(
        self, request: ChatRequest, chat: ChatKey, options: ContinueOptions
    ) -> TurnReader | None:
        """A reader of the turn that runs here, if it answers the same message.

        Raises:
            TurnRunning: it answers another message.
        """
        running = self._turns.running(chat)
        message = request.user_message
        if running is None or message is None:
            return None
        if message.id != running.stamp.user_message or request.message_id is not None:
            if self._turns.chat_owners.of(chat) is not options.origin:
                raise HeldByAnotherOwner(OPEN_LIVE)
            raise TurnRunning("This chat is still being answered; wait or stop it first.")
        reader = await self._turns.message_reader(running, options.client.major)
        if reader is None:
            await running.done.wait()
        return reader

    async def _join_remote(
        self, chat: ChatKey, remote: RemoteTurn, client: RequestingClient
    ) -> TurnReader | None:
        """A reader of the turn of another process; None, after its end, without its stream."""
        reader = await self._replicas.message_reader(remote, client.major)
        if reader is None:
            await self._replicas.wait_released(chat, remote.fence, self._options.longest_turn)
        return reader

    async def _run(
        self,
        request: ChatRequest,
        log: ChatLog,
        location: ChatLocation,
        options: ContinueOptions,
    ) -> TurnReader:
        """Plan the request on the conversation as it stands, and carry the plan out."""
        owner = self._turns.chat_owners.of(log.chat)
        user = options.client.decided_by or log.chat.user
        decider = await self.resources.entitlement.decider(log.rows, user)
        plan = plan_turn(request, log, decider)
        match plan:
            case NewExchange() if owner is not None:
                if owner is not options.origin:
                    raise HeldByAnotherOwner(OPEN_LIVE)
                return await owner.start_exchange(plan, options.release, options.client)
            case NewExchange():
                if location.remote is not None:
                    raise HeldByAnotherOwner(OPEN_LIVE if location.remote.is_live else None)
                return await self.resources.start_turn.start(
                    log, plan, options.release, options.client
                )
            case RepeatExchange(exchange=exchange):
                reader = None
                if owner is None and location.remote is None:
                    reader = await self.resources.continue_turn.run_on(
                        log, exchange, options.release, options.client, first_missing=0
                    )
                return stored(exchange, 0, major=options.client.major) if reader is None else reader
            case ContinueExchange():
                return await self.resources.continue_turn.continue_exchange(
                    log, plan, location, options
                )

    async def _supersede_waiting(self, chat: ChatKey) -> None:
        location = await self._replicas.locate(chat)
        log = await self._logs.load(chat, location)
        last = log.last()
        if last is not None and last.is_unfinished:
            await self.resources.start_turn.close_waiting(log, last)
