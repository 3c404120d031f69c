"""What a request does with a chat: it begins a turn, joins one, answers, resumes or stops it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from sluicegate.core.turn_plan import (
    Answers,
    ChatLog,
    NewExchange,
    Repeat,
    plan_turn,
)
from sluicegate.engine.requests.continuing import OPEN_LIVE, Continuing, Wish, longest_turn
from sluicegate.engine.requests.new_turn import NewTurn
from sluicegate.engine.requests.stored_reader import (
    repeats_the_running,
    stored,
)
from sluicegate.engine.running.elsewhere import Pauses, Place
from sluicegate.errors import HeldElsewhere, TurnRunning

if TYPE_CHECKING:
    from sluicegate.core.keys import ChatKey
    from sluicegate.core.release import Release
    from sluicegate.engine.client import Client
    from sluicegate.engine.parts import EngineParts
    from sluicegate.engine.running.elsewhere import Away
    from sluicegate.engine.running.holder import Holder
    from sluicegate.engine.running.turn_reader import TurnReader
    from sluicegate.wire.requests import ChatRequest

HELD_PATIENCE: Final = 2.0
"""Seconds for which new text waits for a chat that another process holds."""

_STREAM_PATIENCE: Final = 1.0
"""Seconds between taking a chat and the first chunk, for those who resume elsewhere."""


class ChatRequests:
    """The requests of all chats, one at a time for each."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._locks: WeakValueDictionary[ChatKey, asyncio.Lock] = WeakValueDictionary()
        self._new = NewTurn(parts)
        self._continuing = Continuing(parts)

    def lock(self, chat: ChatKey) -> asyncio.Lock:
        """One request at a time decides what a chat runs next; who holds or awaits it keeps it."""
        return self._locks.setdefault(chat, asyncio.Lock())

    async def start(
        self,
        request: ChatRequest,
        chat: ChatKey,
        release: Release,
        client: Client,
        by: Holder | None,
    ) -> TurnReader:
        """Begin or continue an exchange; see `ChatEngine.start`."""
        async with self.lock(chat):
            reader = await self._join_here(request, chat, client, by)
            pause = Pauses(HELD_PATIENCE)
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
        pause = Pauses(_STREAM_PATIENCE)
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
        self, request: ChatRequest, chat: ChatKey, client: Client, by: Holder | None
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

    async def _join_elsewhere(self, chat: ChatKey, away: Away, client: Client) -> TurnReader | None:
        """The same for one that another process answers; without its stream, after its end."""
        reader = await self._parts.elsewhere.whole(away, client.major)
        if reader is None:
            await self._parts.elsewhere.until_left(chat, away.fence, longest_turn(self._parts))
        return reader

    async def _follow(
        self,
        request: ChatRequest,
        log: ChatLog,
        place: Place,
        release: Release,
        client: Client,
        by: Holder | None,
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
            case Repeat(exchange=exchange):
                return stored(exchange, 0, major=client.major)
            case Answers():
                wish = Wish(release, client, by)
                return await self._continuing.go_on(log, plan, place, wish)

    def _is_passing(self, chat: ChatKey, place: Place) -> bool:
        """Whether what is in the way is no live chat, and so may be over soon."""
        if self._parts.turns.holders.of(chat) is not None:
            return False
        return place.away is None or not place.away.is_live
