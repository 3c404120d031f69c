"""Going on with an exchange that waits: what is decided, who runs it, and what is still open."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sluicegate.core.turn_plan import Answers, ChatLog, check_winners, still_open
from sluicegate.engine.requests.answer_turn import AnswerTurn
from sluicegate.engine.requests.stored_reader import (
    as_repeats,
    has_ended,
    not_yet,
    repeated,
    was_told,
)
from sluicegate.engine.running.elsewhere import UNSEEN, Pauses, Place
from sluicegate.engine.running.turns import takes
from sluicegate.errors import HeldElsewhere

if TYPE_CHECKING:
    from collections.abc import Collection

    from sluicegate.core.keys import ChatKey
    from sluicegate.core.release import Release
    from sluicegate.engine.client import Client
    from sluicegate.engine.parts import EngineParts
    from sluicegate.engine.running.holder import Holder
    from sluicegate.engine.running.turn_reader import TurnReader

OPEN_LIVE: Final = "This chat is open live elsewhere; write there, or close it first."

_LAST_WORDS: Final = 6.0
"""Seconds for what a live model of another process says after the last result, if anything."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How a client wants an exchange to go on; ``by`` is the live socket that brought it."""

    release: Release
    client: Client
    by: Holder | None


class Continuing:
    """Goes on with exchanges; one request at a time for each chat."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._answer = AnswerTurn(parts)

    async def go_on(self, log: ChatLog, plan: Answers, place: Place, wish: Wish) -> TurnReader:
        """Record the decisions, then run on or say what is open; ``log`` was read at ``place``.

        Raises:
            RequestError: nothing has changed, or the decisions stay in the ledger.
        """
        chat = log.chat
        log, plan = await self._decided(log, plan, wish)
        if self._is_free(chat, place):
            # The lease tells whether somebody has been here since the log was read.
            with contextlib.suppress(HeldElsewhere):
                return await self._run_on(log, plan, place, wish)
        while True:
            found = await self._behind_what_runs(chat, plan, wish.client)
            if not isinstance(found, Place):
                return found
            try:
                return await self._run_on(*await self._afresh(chat, plan, found), found, wish)
            except HeldElsewhere:
                if self._parts.database.is_exclusive:
                    raise
                # Somebody else has taken the chat in between, perhaps with these answers.
                await asyncio.sleep(0)

    async def _decided(self, log: ChatLog, plan: Answers, wish: Wish) -> tuple[ChatLog, Answers]:
        """Record the decisions; returns the log with them, and the plan on it."""
        if not plan.decisions:
            return log, plan
        chat = log.chat
        rows = await self._answer.decide(plan.decisions, by=chat.user, via=wish.client.via)
        check_winners(plan.decisions, rows)
        if not self._parts.database.is_exclusive:
            # Of two who give the last two answers at once, one at least has to see both.
            rows = await self._parts.ledger.rows(chat)
        known = {**log.rows, **{row.approval_id: row for row in rows}}
        log = replace(log, rows=known)
        return log, _on(log, plan)

    def _is_free(self, chat: ChatKey, place: Place) -> bool:
        turns = self._parts.turns
        return place.away is None and not turns.is_here(chat)

    async def _run_on(self, log: ChatLog, plan: Answers, place: Place, wish: Wish) -> TurnReader:
        """Run on if nothing is open any more, else say what is."""
        chat, major = log.chat, wish.client.major
        waiting = still_open(plan)
        if waiting and await self._parts.ledger.expire(chat):
            # What nobody answered in time holds nothing back any more (A5).
            log, plan = await self._afresh(chat, plan, place)
            waiting = still_open(plan)
        if waiting:
            return not_yet(plan, [s.call.id for s in waiting], major=major)
        held = self._parts.turns.holders.of(chat)
        if held is None:
            reader = await self._answer.start(log, plan, wish.release, wish.client)
        else:
            own = held is wish.by
            reader = await held.go_on(log, plan, wish.release, wish.client, own=own)
        return repeated(as_repeats(plan), major=major) if reader is None else reader

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
        pause = Pauses(longest_turn(self._parts))
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
        _, now = await self._afresh(chat, plan, UNSEEN)
        if was_told(now, known):
            pause = Pauses(_LAST_WORDS)
            while not has_ended(now) and await pause():
                _, now = await self._afresh(chat, plan, UNSEEN)
            return repeated(as_repeats(now), major=client.major)
        if plan.outputs:
            # Only who runs the chat can take these.
            raise HeldElsewhere(OPEN_LIVE)
        return None

    async def _afresh(self, chat: ChatKey, plan: Answers, place: Place) -> tuple[ChatLog, Answers]:
        """The conversation as it is now, and the same plan on it."""
        log = await self._parts.chat_log(chat, place)
        return log, _on(log, plan)


def _on(log: ChatLog, plan: Answers) -> Answers:
    """The same plan on another state of the conversation."""
    message_id = plan.exchange.exchange.message_id
    exchange = next(e for e in log.exchanges if e.message_id == message_id)
    return replace(plan, exchange=log.rebuild(exchange))


def longest_turn(parts: EngineParts) -> float:
    """Seconds after which a turn is over, wherever it runs."""
    options = parts.options
    return options.turn_timeout + options.tool_timeout + options.lease_ttl
