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
    check_winners,
    plan_turn,
    still_open,
)
from sluicegate.engine.requests.answer_turn import AnswerTurn
from sluicegate.engine.requests.new_turn import NewTurn
from sluicegate.engine.requests.stored_reader import (
    as_repeats,
    has_ended,
    not_yet,
    repeated,
    repeats_the_running,
    stored,
    was_told,
)
from sluicegate.engine.running.elsewhere import ALONE, Pauses, Place
from sluicegate.engine.running.turns import takes
from sluicegate.errors import HeldElsewhere, TurnRunning

if TYPE_CHECKING:
    from collections.abc import Collection

    from sluicegate.core.keys import ChatKey
    from sluicegate.core.release import Release
    from sluicegate.engine.client import Client
    from sluicegate.engine.parts import EngineParts
    from sluicegate.engine.running.elsewhere import Away
    from sluicegate.engine.running.holder import Holder
    from sluicegate.engine.running.turn_reader import TurnReader
    from sluicegate.wire.requests import ChatRequest

OPEN_LIVE: Final = "This chat is open live elsewhere; write there, or close it first."
HELD_PATIENCE: Final = 2.0
"""Seconds for which new text waits for a chat that another process holds."""

_LAST_WORDS: Final = 6.0
"""Seconds for what a live model of another process says after the last result, if anything."""

_STREAM_PATIENCE: Final = 1.0
"""Seconds between taking a chat and the first chunk, for those who resume elsewhere."""


class ChatRequests:
    """The requests of all chats, one at a time for each."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._locks: WeakValueDictionary[ChatKey, asyncio.Lock] = WeakValueDictionary()
        self._new = NewTurn(parts)
        self._answer = AnswerTurn(parts)

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
                    # A turn of another process may be over soon; the next look tells.
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
            await self._parts.elsewhere.until_left(chat, away.fence, self._longest_turn)
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
                return await self._answers(log, plan, release, client, by)

    async def _answers(
        self, log: ChatLog, plan: Answers, release: Release, client: Client, by: Holder | None
    ) -> TurnReader:
        chat = log.chat
        if plan.decisions:
            rows = await self._answer.decide(plan.decisions, by=chat.user, via=client.via)
            check_winners(plan.decisions, rows)
        while True:
            found = await self._behind_what_runs(chat, plan, client)
            if not isinstance(found, Place):
                return found
            try:
                return await self._go_on(chat, plan, found, release, client, by)
            except HeldElsewhere:
                if found.fence is None:
                    raise
                # Somebody else has taken the chat in between, perhaps with these answers.
                await asyncio.sleep(0)

    async def _go_on(
        self,
        chat: ChatKey,
        plan: Answers,
        place: Place,
        release: Release,
        client: Client,
        by: Holder | None,
    ) -> TurnReader:
        """Run on if nothing is open any more, else say what is."""
        fresh, plan = await self._afresh(chat, plan, place)
        waiting = still_open(plan)
        if waiting and await self._parts.ledger.expire(chat):
            # What nobody answered in time holds nothing back any more (A5).
            fresh, plan = await self._afresh(chat, plan, place)
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
        return repeated(as_repeats(plan), major=client.major)

    async def _behind_what_runs(
        self, chat: ChatKey, plan: Answers, client: Client
    ) -> TurnReader | Place:
        """Wait for the turn that runs on the chat, or join it if it is the one that goes on."""
        running = self._parts.turns.running(chat)
        if running is not None:
            if not plan.decisions and takes(running, client.major):
                return await self._parts.turns.reader(running, major=client.major)
            await running.done.wait()
        known = {turn.id for turn in plan.exchange.turns}
        message = plan.exchange.exchange.message_id
        pause = Pauses(self._longest_turn)
        while (away := (place := await self._parts.elsewhere.place(chat)).away) is not None:
            if away.about is not None and away.about.message == message:
                is_later = away.stream is not None and away.stream.key.turn not in known
                if is_later or not plan.decisions:
                    reader = await self._parts.elsewhere.turn(away, client.major)
                    if reader is not None:
                        return reader
            elif away.is_live:
                reader = await self._told_live(chat, plan, known, client)
                if reader is not None:
                    return reader
            if not await pause():
                raise HeldElsewhere
        return place

    async def _told_live(
        self, chat: ChatKey, plan: Answers, known: Collection[str], client: Client
    ) -> TurnReader | None:
        """What a live run of another process has told of the answers by now."""
        _, now = await self._afresh(chat, plan, ALONE)
        if was_told(now, known):
            pause = Pauses(_LAST_WORDS)
            while not has_ended(now) and await pause():
                _, now = await self._afresh(chat, plan, ALONE)
            return repeated(as_repeats(now), major=client.major)
        if plan.outputs:
            # Only who runs the chat can take these.
            raise HeldElsewhere(OPEN_LIVE)
        return None

    async def _afresh(self, chat: ChatKey, plan: Answers, place: Place) -> tuple[ChatLog, Answers]:
        """The same plan on the conversation as it is now."""
        log = await self._parts.chat_log(chat, place)
        message_id = plan.exchange.exchange.message_id
        exchange = next(e for e in log.exchanges if e.message_id == message_id)
        rebuilt = log.rebuild(exchange)
        return log, Answers(rebuilt, plan.posted, plan.decisions, plan.repeats, plan.outputs)

    def _is_passing(self, chat: ChatKey, place: Place) -> bool:
        """Whether it is a turn of another process that is in the way."""
        if place.fence is None or self._parts.turns.holders.of(chat) is not None:
            return False
        return place.away is None or not place.away.is_live

    @property
    def _longest_turn(self) -> float:
        options = self._parts.options
        return options.turn_timeout + options.tool_timeout + options.lease_ttl
