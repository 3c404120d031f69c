"""What is told of stored chats: the list of them, and one with all its messages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from sluicegate.core.history import assistant_message, user_message
from sluicegate.core.plan import ChatLog, ContinueExchange, NewExchange, RepeatExchange, plan_turn
from sluicegate.engine.continue_turn import OPEN_LIVE, ContinueOptions, ContinueTurn, longest_turn
from sluicegate.engine.resources import moment
from sluicegate.engine.start_turn import StartTurn
from sluicegate.engine.stored_responses import repeats_the_running, stored
from sluicegate.engine.turn.replicas import Backoff, ChatLocation
from sluicegate.errors import HeldElsewhere, TurnRunning, Unknown

if TYPE_CHECKING:
    from sluicegate.core.keys import ChatKey
    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.engine.resources import EngineResources
    from sluicegate.engine.turn.owner import ChatOwner
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.engine.turn.replicas import RemoteTurn
    from sluicegate.wire.messages import UIMessage
    from sluicegate.wire.requests import ChatRequest


async def list_of_chats(
    parts: EngineResources, user: str, *, limit: int, after: str | None, query: str | None
) -> dict[str, Any]:
    """``{chats: [{id, title, updatedAt, pendingApprovals}], next}``, newest first."""
    page = await parts.chats.page(parts.app, user, limit=limit, after=after, query=query)
    pending = await parts.ledger.count_pending(parts.app, user)
    chats = [
        {
            "id": entry.key.chat,
            "title": entry.title,
            "updatedAt": moment(entry.updated_at),
            "pendingApprovals": pending.get(entry.key.chat, 0),
        }
        for entry in page.chats
    ]
    return {"chats": chats, "next": page.next}


async def whole_chat(parts: EngineResources, chat: ChatKey) -> dict[str, Any]:
    """``{id, title, messages, status}``; raises Unknown when there is no such chat."""
    entry = await parts.chats.get(chat)
    if entry is None:
        raise Unknown("There is no such chat.")
    place = await parts.elsewhere.place(chat)
    log = await parts.chat_log(chat, place)
    rebuilt = [log.rebuild(exchange) for exchange in log.exchanges]
    running = parts.turns.running(chat) is not None
    if place.away is not None and rebuilt:
        running = place.away.is_running(rebuilt[-1].exchange.message_id, last=True)
    waiting = bool(rebuilt) and rebuilt[-1].is_waiting
    status = "running" if running else "waiting" if waiting else "ready"
    files_url = parts.files_url(chat)
    messages: list[UIMessage] = []
    for exchange in rebuilt:
        question = user_message(exchange.exchange, files_url=files_url)
        if question is not None:
            messages.append(question)
        messages.append(assistant_message(exchange, log.rows))
    return {"id": chat.chat, "title": entry.title, "messages": messages, "status": status}


HELD_PATIENCE: Final = 2.0
"""Seconds for which new text waits for a chat that another process holds."""

_STREAM_PATIENCE: Final = 1.0
"""Seconds between taking a chat and the first chunk, for those who resume elsewhere."""


class ChatRequests:
    """The requests of all chats, one at a time for each."""

    def __init__(self, parts: EngineResources) -> None:
        self._parts = parts
        self._locks: WeakValueDictionary[ChatKey, asyncio.Lock] = WeakValueDictionary()
        self._new = StartTurn(parts)
        self._continuing = ContinueTurn(parts)

    def lock(self, chat: ChatKey) -> asyncio.Lock:
        """One request at a time decides what a chat runs next; who holds or awaits it keeps it."""
        return self._locks.setdefault(chat, asyncio.Lock())

    async def start(
        self,
        request: ChatRequest,
        chat: ChatKey,
        release: ReleasePolicy,
        client: Client,
        by: ChatOwner | None,
    ) -> TurnReader:
        """Begin or continue an exchange; see `ChatEngine.start`."""
        async with self.lock(chat):
            reader = await self._join_here(request, chat, client, by)
            pause = Backoff(HELD_PATIENCE)
            while reader is None:
                place = await self._parts.elsewhere.place(chat)
                log = await self._parts.chat_log(chat, place)
                if place.away is not None and repeats_the_running(request, log, place.away):
                    reader = await self._join_elsewhere(chat, place.away, client)
                    continue
                try:
                    reader = await self._follow(request, log, place, release, client, by)
                except HeldElsewhere:
                    # The next look tells whether it is over.
                    if not self._is_passing(chat, place) or not await pause():
                        raise
            return reader

    async def resume(self, chat: ChatKey, client: Client) -> TurnReader | None:
        """The running message from its beginning, or None when nothing runs (section 7)."""
        running = self._parts.turns.running(chat)
        if running is not None:
            return await self._parts.turns.whole(running, client.major)
        pause = Backoff(_STREAM_PATIENCE)
        while True:
            away = (await self._parts.elsewhere.place(chat)).away
            if away is None:
                return None
            if away.about is not None:
                return await self._parts.elsewhere.whole(away, client.major)
            if away.is_live or not self._parts.streams.is_shared or not await pause():
                return None

    async def stop(self, chat: ChatKey) -> None:
        """Stop the running turn, or supersede what waits; nothing to stop is fine."""
        held = self._parts.turns.holders.of(chat)
        if held is not None:
            await held.stop()
            return
        running = self._parts.turns.running(chat)
        if running is None:
            away = (await self._parts.elsewhere.place(chat)).away
            if away is not None:
                longest = self._parts.options.tool_timeout + self._parts.options.lease_ttl
                await self._parts.elsewhere.stop(chat, away.fence, longest)
                return
            async with self.lock(chat):
                # One that was being prepared runs by now.
                running = self._parts.turns.running(chat)
                if running is None:
                    await self._close_what_waits(chat)
                    return
        await self._parts.turns.stop(running)

    async def _close_what_waits(self, chat: ChatKey) -> None:
        place = await self._parts.elsewhere.place(chat)
        log = await self._parts.chat_log(chat, place)
        last = log.last()
        if last is not None and last.is_unfinished:
            await self._new.close_waiting(log, last)

    async def _join_here(
        self, request: ChatRequest, chat: ChatKey, client: Client, by: ChatOwner | None
    ) -> TurnReader | None:
        """A reader for the same message as the one that is answered here; other text is refused."""
        running = self._parts.turns.running(chat)
        message = request.user_message
        if running is None or message is None:
            return None
        if message.id != running.stamp.user_message or request.message_id is not None:
            if self._parts.turns.holders.of(chat) is not by:
                raise HeldElsewhere(OPEN_LIVE)
            raise TurnRunning("This chat is still being answered; wait or stop it first.")
        reader = await self._parts.turns.whole(running, client.major)
        if reader is None:
            await running.done.wait()
        return reader

    async def _join_elsewhere(
        self, chat: ChatKey, away: RemoteTurn, client: Client
    ) -> TurnReader | None:
        """The same for one that another process answers; without its stream, after its end."""
        reader = await self._parts.elsewhere.whole(away, client.major)
        if reader is None:
            await self._parts.elsewhere.until_left(chat, away.fence, longest_turn(self._parts))
        return reader

    async def _follow(
        self,
        request: ChatRequest,
        log: ChatLog,
        place: ChatLocation,
        release: ReleasePolicy,
        client: Client,
        by: ChatOwner | None,
    ) -> TurnReader:
        """Do what the request asks for, on the conversation as it stands."""
        chat = log.chat
        held = self._parts.turns.holders.of(chat)
        plan = plan_turn(request, log)
        match plan:
            case NewExchange() if held is not None:
                if held is not by:
                    raise HeldElsewhere(OPEN_LIVE)
                return await held.say(plan, release, client)
            case NewExchange():
                if place.away is not None:
                    raise HeldElsewhere(OPEN_LIVE if place.away.is_live else None)
                return await self._new.start(log, plan, release, client)
            case RepeatExchange(exchange=exchange):
                return stored(exchange, 0, major=client.major)
            case ContinueExchange():
                wish = ContinueOptions(release, client, by)
                return await self._continuing.go_on(log, plan, place, wish)

    def _is_passing(self, chat: ChatKey, place: ChatLocation) -> bool:
        """Whether what is in the way is no live chat, and so may be over soon."""
        if self._parts.turns.holders.of(chat) is not None:
            return False
        return place.away is None or not place.away.is_live
