"""The engine: starts, resumes and stops turns, and reads what is stored."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from sluicegate.core.keys import ChatKey
from sluicegate.engine.approvals import ChatApprovals
from sluicegate.engine.files.uploads import PendingUploads, shown
from sluicegate.engine.limits import TOO_MANY_MESSAGES, RateLimit
from sluicegate.engine.page_tools import offered
from sluicegate.engine.requests import ChatRequests, list_of_chats, whole_chat
from sluicegate.engine.resources import EngineResources, open_resources, readiness
from sluicegate.engine.turn.registry import drain
from sluicegate.errors import Malformed, TurnRunning, Unavailable, Unknown

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import App
    from google.adk.models.base_llm import BaseLlm
    from google.adk.workflow import BaseNode

    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.recorder import Recorder
    from sluicegate.engine.turn.owner import ChatOwner
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.tools.gated import Policy
    from sluicegate.tools.worker_registry import WorkerRegistry
    from sluicegate.wire.requests import ChatRequest


class ChatEngine:
    """One agent, its stores and its running turns; the same for every transport."""

    def __init__(self, parts: EngineResources) -> None:
        self._parts = parts
        self._requests = ChatRequests(parts)
        self.survey: AgentSurvey = parts.survey
        self.approvals = ChatApprovals(parts, self.start)
        self._unsent = PendingUploads(parts, self.alone)
        self._rate = RateLimit(parts.options.max_messages_per_minute, TOO_MANY_MESSAGES)

    @property
    def parts(self) -> EngineResources:
        """What the engine is made of, for those who run turns in another way."""
        return self._parts

    @classmethod
    async def open(
        cls,
        target: BaseAgent | BaseNode | App,
        options: EngineOptions,
        *,
        model: BaseLlm | str | None = None,
        clock_offset: Callable[[], float] = lambda: 0.0,
        tape: Recorder | None = None,
        policy: Policy | None = None,
    ) -> Self:
        """Open stores and prepare a copy of the agent; the caller's objects stay as they were.

        ``model`` takes the place of every model of the agent. ``clock_offset`` is added to the
        database's clock, in seconds; deadlines go by it. ``tape`` is told what happens.
        ``policy`` is asked about every gated call (A9).

        Raises:
            ConfigurationError: one sentence that names the tool or setting and the way out.
        """
        parts = await open_resources(
            target, options, model=model, clock_offset=clock_offset, tape=tape, policy=policy
        )
        engine = cls(parts)
        await engine._unsent.sweep()
        return engine

    async def drain(self, *, within: float, hurried: asyncio.Event) -> None:
        """End every turn before `close`: refuse new ones, wait for claimed calls.

        ``within`` is in seconds; after them, or once ``hurried`` is set, claimed calls are cut,
        and their outcome is unknown.
        """
        await drain(self._parts.turns, within=within, hurried=hurried)

    async def close(self) -> None:
        """Stop the turns, then close the stores."""
        await self.approvals.close()
        await self._parts.turns.close()
        await self._parts.close()

    async def ready(self) -> list[str]:
        """Return notes for whoever runs the server; raises Unavailable without a database."""
        return await readiness(self._parts.database, self._parts.streams)

    async def start(
        self, request: ChatRequest, *, user: str, client: Client, by: ChatOwner | None = None
    ) -> TurnReader:
        """Begin or continue an exchange; the response is the reader's chunks.

        ``by`` is the holder of the chat, where the request came to it.

        Raises:
            RequestError: nothing has changed.
        """
        chat = self._key(user, request.chat_id)
        release = self.release_for(client)
        client = replace(client, tools=offered(request.tools))
        self._rate.take(user)
        return await self._requests.start(request, chat, release, client, by)

    async def resume(self, chat_id: str, *, user: str, client: Client) -> TurnReader | None:
        """The running message from its beginning, or None when nothing runs (section 7)."""
        return await self._requests.resume(self._key(user, chat_id), client)

    def resumed(self, reader: TurnReader, chat_id: str, *, user: str, client: Client) -> TurnReader:
        """A reader of a message that a holder of its chat has found; the same, or one beside it."""
        return reader

    async def stop(self, chat_id: str, *, user: str) -> None:
        """Stop the running turn, or supersede what waits; nothing to stop is fine."""
        await self._requests.stop(self._key(user, chat_id))

    async def list_chats(
        self, *, user: str, limit: int, after: str | None, query: str | None
    ) -> dict[str, Any]:
        """``{chats: [{id, title, updatedAt, pendingApprovals}], next}``, newest first."""
        return await list_of_chats(self._parts, user, limit=limit, after=after, query=query)

    async def get_chat(self, chat_id: str, *, user: str) -> dict[str, Any]:
        """``{id, title, messages, status}``.

        Raises:
            Unknown: no such chat of this user.
        """
        return await whole_chat(self._parts, self._key(user, chat_id))

    async def rename_chat(self, chat_id: str, title: str, *, user: str) -> None:
        """Set the title; raises Unknown."""
        if not await self._parts.chats.rename(self._key(user, chat_id), title):
            raise Unknown("There is no such chat.")

    async def delete_chat(self, chat_id: str, *, user: str) -> None:
        """Delete the conversation; who decided what stays, without what it was about.

        Raises:
            Unknown: no such chat of this user.
            TurnRunning: it is being answered.
        """
        chat = self._key(user, chat_id)
        turns = self._parts.turns
        async with self.alone(chat):
            place = await self._parts.elsewhere.place(chat)
            if turns.running(chat) is not None or place.away is not None:
                raise TurnRunning("This chat is still being answered; wait or stop it first.")
            if turns.holders.of(chat) is not None:
                raise TurnRunning("This chat is open live; close it there first.")
            async with turns.leases.holding(chat, after=place.fence):
                await self._delete(chat)

    async def _delete(self, chat: ChatKey) -> None:
        if not await self._parts.chats.delete(chat):
            raise Unknown("There is no such chat.")
        await self._parts.log.delete(chat)
        await self._parts.files.delete_all(chat)
        await self._parts.uploads.delete_all(chat)
        await self._parts.grants.delete_all(chat)
        rows = await self._parts.ledger.rows(chat)
        await self._parts.ledger.supersede([row.key for row in rows])
        await self._parts.ledger.erase_details(chat)

    async def save_file(
        self, chat_id: str, data: bytes, media_type: str, *, title: str | None, user: str
    ) -> dict[str, Any]:
        """Store an attachment: ``{url, mediaType, name, filename?}``, as a file part has them.

        Raises:
            RequestError: it is not accepted, or could not be stored.
        """
        chat = self._key(user, chat_id)
        file = await self._unsent.save(chat, data, media_type, title)
        return shown(file, self._parts.files_url(chat))

    async def get_file(self, chat_id: str, name: str, *, user: str) -> tuple[bytes, str]:
        """The bytes and media type of a file of the chat; raises Unknown."""
        return await self._parts.files.read(self._key(user, chat_id), name)

    async def worker_registry(self) -> WorkerRegistry:
        """The registry in which remote tool workers announce themselves; raises Unavailable."""
        if self._parts.workers is None:
            raise Unavailable
        return self._parts.workers

    def release_for(self, client: Client) -> ReleasePolicy:
        """The release a client gets; raises Malformed if its wish is refused (section 5)."""
        options = self._parts.options
        wish = client.release or options.release
        if options.release_fixed and wish != options.release:
            raise Malformed(f"This server releases {options.release} only; leave x-release out.")
        if not self._parts.survey.may_gate:
            return "progressive"
        return "deferred" if wish == "preview" and client.major == 6 else wish

    def _key(self, user: str, chat_id: str) -> ChatKey:
        return ChatKey(self._parts.app, user, chat_id)

    def alone(self, chat: ChatKey) -> asyncio.Lock:
        """One request at a time decides what a chat runs next; who holds or awaits it keeps it."""
        return self._requests.lock(chat)
