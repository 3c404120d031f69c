"""The engine's face: starts, resumes and stops turns, and tells what is stored."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

from sluicegate.core.history import for_reader, resumable
from sluicegate.core.keys import ChatKey
from sluicegate.core.turn_plan import (
    Answers,
    ChatLog,
    NewExchange,
    Repeat,
    check_winners,
    plan_turn,
    still_open,
)
from sluicegate.engine.answer_turn import AnswerTurn
from sluicegate.engine.approvals import Approvals
from sluicegate.engine.attachments import shown
from sluicegate.engine.chat_listing import list_of_chats, whole_chat
from sluicegate.engine.new_turn import NewTurn
from sluicegate.engine.parts import EngineParts, open_parts
from sluicegate.engine.rates import TOO_MANY_MESSAGES, Rate
from sluicegate.engine.stored_reader import not_yet, repeated, stored
from sluicegate.errors import HeldElsewhere, Malformed, TurnRunning, Unknown
from sluicegate.wire.chunks import StartChunk

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import App
    from google.adk.models.base_llm import BaseLlm
    from google.adk.workflow import BaseNode

    from sluicegate.core.release import Release
    from sluicegate.engine.agent_tree import AgentSurvey
    from sluicegate.engine.client import Client
    from sluicegate.engine.holder import Holder
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.running_turn import RunningTurn
    from sluicegate.engine.tape import Tape
    from sluicegate.engine.turn_reader import TurnReader
    from sluicegate.tools.approval import Policy
    from sluicegate.wire.requests import ChatRequest

OPEN_LIVE = "This chat is open live elsewhere; write there, or close it first."


class ChatEngine:
    """One agent, its stores and its running turns; the same for every transport."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._locks: WeakValueDictionary[ChatKey, asyncio.Lock] = WeakValueDictionary()
        self._new = NewTurn(parts)
        self._answer = AnswerTurn(parts)
        self.survey: AgentSurvey = parts.survey
        self.approvals = Approvals(parts, self.start)
        self._rate = Rate(parts.options.max_messages_per_minute, TOO_MANY_MESSAGES)

    @property
    def parts(self) -> EngineParts:
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
        tape: Tape | None = None,
        policy: Policy | None = None,
    ) -> Self:
        """Open stores and prepare a copy of the agent; the caller's objects stay as they were.

        ``model`` takes the place of every model of the agent. ``clock_offset`` is added to the
        database's clock, in seconds; deadlines go by it. ``tape`` is told what happens.
        ``policy`` is asked about every gated call (A9).

        Raises:
            ConfigurationError: one sentence that names the tool or setting and the way out.
        """
        parts = await open_parts(
            target, options, model=model, clock_offset=clock_offset, tape=tape, policy=policy
        )
        return cls(parts)

    async def close(self) -> None:
        """Stop the turns, then close the stores."""
        await self.approvals.close()
        await self._parts.turns.close()
        await self._parts.close()

    async def ready(self) -> None:
        """Raise Unavailable when the database does not answer."""
        await self._parts.check_database()

    async def start(
        self, request: ChatRequest, *, user: str, client: Client, by: Holder | None = None
    ) -> TurnReader:
        """Begin or continue an exchange; the response is the reader's chunks.

        ``by`` is the holder of the chat, where the request came to it.

        Raises:
            RequestError: nothing has changed.
        """
        chat = self._key(user, request.chat_id)
        release = self.release_for(client)
        self._rate.take(user)
        async with self.alone(chat):
            running = self._parts.turns.running(chat)
            held = self._parts.turns.holders.of(chat)
            message = request.user_message
            if running is not None and message is not None:
                if message.id != running.stamp.user_message or request.message_id is not None:
                    if held is not by:
                        raise HeldElsewhere(OPEN_LIVE)
                    raise TurnRunning("This chat is still being answered; wait or stop it first.")
                reader = await self._from_the_beginning(running, client)
                if reader is not None:
                    return reader
                await running.done.wait()
            log = await self._parts.chat_log(chat)
            plan = plan_turn(request, log)
            match plan:
                case NewExchange() if held is not None:
                    if held is not by:
                        raise HeldElsewhere(OPEN_LIVE)
                    return await held.say(plan, release, client)
                case NewExchange():
                    return await self._new.start(chat, plan, release, client)
                case Repeat(exchange=exchange):
                    return stored(exchange, 0, major=client.major)
                case Answers():
                    return await self._answers(log, plan, release, client, by)

    async def resume(self, chat_id: str, *, user: str, client: Client) -> TurnReader | None:
        """The running message from its beginning, or None when nothing runs (section 7)."""
        running = self._parts.turns.running(self._key(user, chat_id))
        return None if running is None else await self._from_the_beginning(running, client)

    async def _from_the_beginning(self, running: RunningTurn, client: Client) -> TurnReader | None:
        """A reader of all turns of the exchange; None for a client that cannot take them."""
        rebuilt = running.before
        if not _takes(running, client) or (
            rebuilt is not None and not resumable(rebuilt, major=client.major)
        ):
            return None
        start = StartChunk(message_id=running.stamp.message)
        prefix = for_reader(running.prefix, major=client.major)
        return await self._parts.turns.reader(running, major=client.major, head=[start, *prefix])

    async def stop(self, chat_id: str, *, user: str) -> None:
        """Stop the running turn, or supersede what waits; nothing to stop is fine."""
        chat = self._key(user, chat_id)
        held = self._parts.turns.holders.of(chat)
        if held is not None:
            await held.stop()
            return
        running = self._parts.turns.running(chat)
        if running is None:
            async with self.alone(chat):
                # One that was being prepared runs by now.
                running = self._parts.turns.running(chat)
                if running is None:
                    last = (await self._parts.chat_log(chat)).last()
                    if last is not None and last.is_unfinished:
                        await self._new.close_waiting(chat, last)
                    return
        await self._parts.turns.stop(running)

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
        async with self.alone(chat):
            turns = self._parts.turns
            if turns.running(chat) is not None:
                raise TurnRunning("This chat is still being answered; wait or stop it first.")
            if turns.holders.of(chat) is not None:
                raise TurnRunning("This chat is open live; close it there first.")
            if not await self._parts.chats.delete(chat):
                raise Unknown("There is no such chat.")
            await self._parts.log.delete(chat)
            await self._parts.files.delete_all(chat)
            await self._parts.grants.forget(chat)
            rows = await self._parts.ledger.rows(chat)
            await self._parts.ledger.supersede([row.key for row in rows])
            await self._parts.ledger.forget(chat)

    async def save_file(
        self, chat_id: str, data: bytes, media_type: str, *, title: str | None, user: str
    ) -> dict[str, Any]:
        """Store an attachment: ``{url, mediaType, name, filename?}``, as a file part has them.

        Raises:
            RequestError: it is not accepted, or could not be stored.
        """
        chat = self._key(user, chat_id)
        file = await self._parts.files.attach(chat, data, media_type, title)
        return shown(file, self._parts.files_url(chat))

    async def get_file(self, chat_id: str, name: str, *, user: str) -> tuple[bytes, str]:
        """The bytes and media type of a file of the chat; raises Unknown."""
        return await self._parts.files.read(self._key(user, chat_id), name)

    async def _answers(
        self, log: ChatLog, plan: Answers, release: Release, client: Client, by: Holder | None
    ) -> TurnReader:
        chat = log.chat
        if plan.decisions:
            rows = await self._answer.decide(plan.decisions, by=chat.user, via=client.via)
            check_winners(plan.decisions, rows)
        running = self._parts.turns.running(chat)
        if running is not None:
            if not plan.decisions and _takes(running, client):
                return await self._parts.turns.reader(running, major=client.major)
            await running.done.wait()
        fresh, plan = await self._afresh(chat, plan)
        waiting = still_open(plan)
        if waiting and await self._parts.ledger.expire(chat):
            # What nobody answered in time holds nothing back any more (A5).
            fresh, plan = await self._afresh(chat, plan)
            waiting = still_open(plan)
        if waiting:
            return not_yet(plan, [s.call.id for s in waiting], major=client.major)
        held = self._parts.turns.holders.of(chat)
        if held is None:
            reader = await self._answer.start(fresh, plan, release, client)
        else:
            reader = await held.go_on(fresh, plan, release, client, own=held is by)
        if reader is not None:
            return reader
        return repeated(plan, major=client.major)

    async def _afresh(self, chat: ChatKey, plan: Answers) -> tuple[ChatLog, Answers]:
        """The same plan on the conversation as it is now."""
        log = await self._parts.chat_log(chat)
        message_id = plan.exchange.exchange.message_id
        exchange = next(e for e in log.exchanges if e.message_id == message_id)
        rebuilt = log.rebuild(exchange)
        return log, Answers(rebuilt, plan.posted, plan.decisions, plan.repeats, plan.outputs)

    def release_for(self, client: Client) -> Release:
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
        return self._locks.setdefault(chat, asyncio.Lock())


def _takes(running: RunningTurn, client: Client) -> bool:
    """Whether chunks of a running turn fit a client: a 6 client cannot take text back (D4)."""
    return client.major == 7 or not running.is_previewed
