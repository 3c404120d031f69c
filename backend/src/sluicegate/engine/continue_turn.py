"""Going on with an exchange: decisions into the ledger, then everything to ADK at once (A3)."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.exchanges import TurnStamp
from sluicegate.core.function_responses import (
    Reply,
    delivery,
    outcome_of,
    response_of,
    shape_of,
)
from sluicegate.core.keys import TurnKey
from sluicegate.core.plan import ChatLog, ContinueExchange, check_winners, still_open
from sluicegate.core.signals import CONNECTED, Answered
from sluicegate.engine.resources import new_turn_id
from sluicegate.engine.start_turn import TurnSetup, owner_of, prepare_turn
from sluicegate.engine.stored_responses import as_repeats, has_ended, not_yet, repeated, was_told
from sluicegate.engine.turn.close_open_calls import closed_cards
from sluicegate.engine.turn.registry import takes
from sluicegate.engine.turn.replicas import UNSEEN, Backoff, ChatLocation
from sluicegate.engine.turn.session_log import replies_content
from sluicegate.errors import HeldElsewhere

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sluicegate.core.approvals import ApprovalRow, Decision
    from sluicegate.core.calls import CallState
    from sluicegate.core.keys import ChatKey
    from sluicegate.core.release.policy import ReleasePolicy
    from sluicegate.engine.resources import EngineResources
    from sluicegate.engine.turn.owner import ChatOwner
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.wire.chunks import BaseChunk


class AnswerTurn:
    """Continues exchanges."""

    def __init__(self, parts: EngineResources) -> None:
        self._parts = parts

    async def decide(
        self, decisions: Sequence[Decision], *, by: str, via: str
    ) -> list[ApprovalRow]:
        """Record decisions; the first one wins. Needs no lease (A2)."""
        timed = [
            replace(
                decision,
                request=replace(
                    decision.request, ttl=self._parts.approval_ttl(decision.request.tool)
                ),
            )
            for decision in decisions
        ]
        rows = await self._parts.ledger.record_decisions(timed, by=by, via=via)
        if self._parts.tape is not None and rows:
            self._parts.tape.approvals(rows[0].key.chat_key, rows)
        return rows

    async def start(
        self, log: ChatLog, plan: ContinueExchange, release: ReleasePolicy, client: Client
    ) -> TurnReader | None:
        """Tell ADK everything it waits for and run on; None when there is nothing to tell.

        Raises:
            RequestError: the chat or the server is busy; the decisions stay in the ledger.
        """
        parts, chat, rebuilt = self._parts, log.chat, plan.exchange
        told = delivery(rebuilt, log.rows, outputs_of(plan))
        if told is None:
            return None
        parts.turns.admit(chat.user)
        stamp = next_stamp(plan, new_turn_id(), model=parts.model)
        owner = owner_of(stamp)
        fence = await parts.turns.lease(chat, owner, after=log.fence)
        try:
            await parts.log.append_replies(chat, told.appended, stamp)
            key = TurnKey(chat, stamp.turn, fence)
            setup = going_on(log, plan, key, stamp, release)
            setup = replace(setup, tools=client.tools, rows=list(log.rows.values()))
            turn = await prepare_turn(parts, setup)
            await parts.chats.touch(chat, title=None)
            message = replies_content(told.message)
            return await parts.turns.launch(turn, message, major=client.major)
        except BaseException:
            await asyncio.shield(parts.turns.release(chat, owner, fence))
            raise


def next_stamp(plan: ContinueExchange, turn: str, *, model: str) -> TurnStamp:
    """The stamp of the turn that continues the exchange; ``model`` where it does not say."""
    exchange = plan.exchange.exchange
    return TurnStamp(
        message=exchange.message_id,
        turn=turn,
        user_message=exchange.user_message_id,
        release=exchange.release,
        style=exchange.style,
        created_at=exchange.created_at,
        model=exchange.model or model,
        outputs=_shapes(plan),
    )


def going_on(
    log: ChatLog, plan: ContinueExchange, key: TurnKey, stamp: TurnStamp, release: ReleasePolicy
) -> TurnSetup:
    """What the turn begins with; the gate of the exchange is fed what the page knows already."""
    rebuilt = plan.exchange
    outputs = _gated_outputs(plan)
    answers = _shown_outputs(plan)
    known = [answer for answer in answers if answer.outcome is not CONNECTED]
    rebuilt.turns[-1].chunks.extend(rebuilt.buffer.feed_all(known))
    # The page keeps the provider's answer to itself: its part says only that it is there.
    connected = [answer for answer in answers if answer.outcome is CONNECTED]
    opening = [*_late(log, plan), *rebuilt.buffer.feed_all(connected)]
    return TurnSetup(key, stamp, release, rebuilt, client_outputs=outputs, opening=opening)


def outputs_of(plan: ContinueExchange) -> list[Reply]:
    """The outputs of ungated client-side calls as function responses."""
    return [
        Reply(
            id=state.call.id_in_adk,
            name=state.call.name,
            response=_response(plan, state),
            branch=state.call.branch,
            invocation=plan.exchange.exchange.invocation,
        )
        for state in _with_outputs(plan)
        if state.request is None
    ]


def _gated_outputs(plan: ContinueExchange) -> dict[str, dict[str, Any]]:
    return {
        state.call.id_in_adk: _response(plan, state)
        for state in _with_outputs(plan)
        if state.request is not None
    }


def _response(plan: ContinueExchange, state: CallState) -> dict[str, Any]:
    return response_of(state, plan.outputs[state.call.id], plan.exchange.exchange.events)


def _shown_outputs(plan: ContinueExchange) -> list[Answered]:
    return [
        Answered(state.call.id, outcome=outcome_of(state, plan.outputs[state.call.id]))
        for state in _with_outputs(plan)
    ]


def _late(log: ChatLog, plan: ContinueExchange) -> list[BaseChunk]:
    """Answers of this request that came too late: their cards say so (A5)."""
    decided = [decision.request.approval_id for decision in plan.decisions]
    rows = [log.rows[approval_id] for approval_id in decided if approval_id in log.rows]
    return closed_cards(rows, plan.exchange.exchange.message_id)


def _with_outputs(plan: ContinueExchange) -> list[CallState]:
    calls = plan.exchange.buffer.calls.values()
    return [state for state in calls if state.call.id in plan.outputs and state.outcome is None]


def _shapes(plan: ContinueExchange) -> dict[str, str]:
    return {
        state.call.id: shape
        for state in _with_outputs(plan)
        if (shape := shape_of(state, plan.outputs[state.call.id])) is not None
    }


OPEN_LIVE: Final = "This chat is open live elsewhere; write there, or close it first."

_LAST_WORDS: Final = 6.0
"""Seconds for what a live model of another process says after the last result, if anything."""


@dataclass(frozen=True, slots=True)
class ContinueOptions:
    """How a client wants an exchange to go on; ``by`` is the live socket that brought it."""

    release: ReleasePolicy
    client: Client
    by: ChatOwner | None


class ContinueTurn:
    """Goes on with exchanges; one request at a time for each chat."""

    def __init__(self, parts: EngineResources) -> None:
        self._parts = parts
        self._answer = AnswerTurn(parts)

    async def go_on(
        self, log: ChatLog, plan: ContinueExchange, place: ChatLocation, wish: ContinueOptions
    ) -> TurnReader:
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
            if not isinstance(found, ChatLocation):
                return found
            try:
                return await self._run_on(*await self._afresh(chat, plan, found), found, wish)
            except HeldElsewhere:
                if self._parts.database.is_exclusive:
                    raise
                # Somebody else has taken the chat in between, perhaps with these answers.
                await asyncio.sleep(0)

    async def _decided(
        self, log: ChatLog, plan: ContinueExchange, wish: ContinueOptions
    ) -> tuple[ChatLog, ContinueExchange]:
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

    def _is_free(self, chat: ChatKey, place: ChatLocation) -> bool:
        turns = self._parts.turns
        return place.away is None and not turns.is_here(chat)

    async def _run_on(
        self, log: ChatLog, plan: ContinueExchange, place: ChatLocation, wish: ContinueOptions
    ) -> TurnReader:
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
        self, chat: ChatKey, plan: ContinueExchange, client: Client
    ) -> TurnReader | ChatLocation:
        """Wait for the turn that runs on the chat, or join it if it is the one that goes on."""
        running = self._parts.turns.running(chat)
        if running is not None:
            if not plan.decisions and takes(running, client.major):
                return await self._parts.turns.reader(running, major=client.major)
            await running.done.wait()
        known = {turn.id for turn in plan.exchange.turns}
        message = plan.exchange.exchange.message_id
        pause = Backoff(longest_turn(self._parts))
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
        self, chat: ChatKey, plan: ContinueExchange, known: Collection[str], client: Client
    ) -> TurnReader | None:
        """What a live run of another process has told of the answers by now."""
        _, now = await self._afresh(chat, plan, UNSEEN)
        if was_told(now, known):
            pause = Backoff(_LAST_WORDS)
            while not has_ended(now) and await pause():
                _, now = await self._afresh(chat, plan, UNSEEN)
            return repeated(as_repeats(now), major=client.major)
        if plan.outputs:
            # Only who runs the chat can take these.
            raise HeldElsewhere(OPEN_LIVE)
        return None

    async def _afresh(
        self, chat: ChatKey, plan: ContinueExchange, place: ChatLocation
    ) -> tuple[ChatLog, ContinueExchange]:
        """The conversation as it is now, and the same plan on it."""
        log = await self._parts.chat_log(chat, place)
        return log, _on(log, plan)


def _on(log: ChatLog, plan: ContinueExchange) -> ContinueExchange:
    """The same plan on another state of the conversation."""
    message_id = plan.exchange.exchange.message_id
    exchange = next(e for e in log.exchanges if e.message_id == message_id)
    return replace(plan, exchange=log.rebuild(exchange))


def longest_turn(parts: EngineResources) -> float:
    """Seconds after which a turn is over, wherever it runs."""
    options = parts.options
    return options.turn_timeout + options.tool_timeout + options.lease_ttl
