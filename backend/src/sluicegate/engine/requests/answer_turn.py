"""Going on with an exchange: decisions into the ledger, then everything to ADK at once (A3)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluicegate.core.client_outputs import CONNECTED, outcome_of, response_of, shape_of
from sluicegate.core.delivery import Reply, delivery
from sluicegate.core.exchanges import TurnStamp
from sluicegate.core.keys import TurnKey
from sluicegate.core.signals import Answered
from sluicegate.engine.parts import new_turn_id
from sluicegate.engine.requests.turn_setup import Setup, owner_of, prepare
from sluicegate.engine.running.closing import closed_cards
from sluicegate.engine.running.session_log import replies_content

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.call_state import CallState
    from sluicegate.core.ledger import ApprovalRow, Decision
    from sluicegate.core.release import Release
    from sluicegate.core.turn_plan import Answers, ChatLog
    from sluicegate.engine.client import Client
    from sluicegate.engine.parts import EngineParts
    from sluicegate.engine.running.turn_reader import TurnReader
    from sluicegate.wire.chunks import BaseChunk


class AnswerTurn:
    """Continues exchanges."""

    def __init__(self, parts: EngineParts) -> None:
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
        rows = await self._parts.ledger.decide(timed, by=by, via=via)
        if self._parts.tape is not None and rows:
            self._parts.tape.approvals(rows[0].key.chat_key, rows)
        return rows

    async def start(
        self, log: ChatLog, plan: Answers, release: Release, client: Client
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
            turn = await prepare(parts, setup)
            await parts.chats.touch(chat, title=None)
            message = replies_content(told.message)
            return await parts.turns.launch(turn, message, major=client.major)
        except BaseException:
            await asyncio.shield(parts.turns.release(chat, owner, fence))
            raise


def next_stamp(plan: Answers, turn: str, *, model: str) -> TurnStamp:
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
    log: ChatLog, plan: Answers, key: TurnKey, stamp: TurnStamp, release: Release
) -> Setup:
    """What the turn begins with; the gate of the exchange is fed what the page knows already."""
    rebuilt = plan.exchange
    outputs = _gated_outputs(plan)
    answers = _shown_outputs(plan)
    known = [answer for answer in answers if answer.outcome is not CONNECTED]
    rebuilt.turns[-1].chunks.extend(rebuilt.gate.feed_all(known))
    # The page keeps the provider's answer to itself: its part says only that it is there.
    connected = [answer for answer in answers if answer.outcome is CONNECTED]
    opening = [*_late(log, plan), *rebuilt.gate.feed_all(connected)]
    return Setup(key, stamp, release, rebuilt, client_outputs=outputs, opening=opening)


def outputs_of(plan: Answers) -> list[Reply]:
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
        if state.ask is None
    ]


def _gated_outputs(plan: Answers) -> dict[str, dict[str, Any]]:
    return {
        state.call.id_in_adk: _response(plan, state)
        for state in _with_outputs(plan)
        if state.ask is not None
    }


def _response(plan: Answers, state: CallState) -> dict[str, Any]:
    return response_of(state, plan.outputs[state.call.id], plan.exchange.exchange.events)


def _shown_outputs(plan: Answers) -> list[Answered]:
    return [
        Answered(state.call.id, outcome=outcome_of(state, plan.outputs[state.call.id]))
        for state in _with_outputs(plan)
    ]


def _late(log: ChatLog, plan: Answers) -> list[BaseChunk]:
    """Answers of this request that came too late: their cards say so (A5)."""
    decided = [decision.request.approval_id for decision in plan.decisions]
    rows = [log.rows[approval_id] for approval_id in decided if approval_id in log.rows]
    return closed_cards(rows, plan.exchange.exchange.message_id)


def _with_outputs(plan: Answers) -> list[CallState]:
    calls = plan.exchange.gate.calls.values()
    return [state for state in calls if state.call.id in plan.outputs and state.outcome is None]


def _shapes(plan: Answers) -> dict[str, str]:
    return {
        state.call.id: shape
        for state in _with_outputs(plan)
        if (shape := shape_of(state, plan.outputs[state.call.id])) is not None
    }
