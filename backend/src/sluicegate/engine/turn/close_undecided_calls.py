"""Closes calls whose approvals are superseded, expired or stopped (A5)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.core.closed_approval_outcomes import (
    closed_outcome,
    shown_decision,
)
from sluicegate.core.new_approval import call_key
from sluicegate.core.signals import Answered, Outcome, Settled, Signal
from sluicegate.engine.describe_exceptions import describe
from sluicegate.engine.guard.outcome_lookup import look_up
from sluicegate.engine.turn.closed_approval_cards import closed_cards
from sluicegate.engine.turn.session_log import Closed
from sluicegate.errors import new_error_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.call_state import CallState
    from sluicegate.core.release.base import ReleaseBuffer
    from sluicegate.core.turn_stamp import TurnStamp
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.turn.session_log import SessionLog
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.wire.chunks import BaseChunk

logger = logging.getLogger("sluicegate")


@dataclass(frozen=True, slots=True)
class OpenCallCloser:
    """Closes open calls in the ledger first, then in the session.

    ``survey`` has the terms of each tool, among them the function that looks up an outcome.
    """

    ledger: Ledger
    log: SessionLog
    survey: AgentSurvey

    async def close(
        self,
        chat: ChatKey,
        buffer: ReleaseBuffer,
        invocation: str,
        stamp: TurnStamp,
        *,
        reason: str,
    ) -> list[Signal]:
        """Close every call of an exchange that has not run; returns signals for its buffer.

        A call whose outcome a crash has lost is looked up, if its tool can do that.
        The chat's lease must be held and no Runner may run on the session.
        """
        states = [s for s in buffer.calls.values() if s.outcome is None and _is_open(s)]
        await self.ledger.expire(chat)
        await self.ledger.supersede([call_key(chat, s) for s in states if s.request is not None])
        rows = {row.approval_id: row for row in await self.ledger.rows(chat)}
        signals: list[Signal] = []
        closings: list[Closed] = []
        for state in states:
            row = rows.get(state.request.approval_id) if state.request else None
            row = await self._recovered(row)
            outcome = _outcome(state, row, reason)
            closings.append(_closed(state, outcome))
            if row is not None:
                approved, shown_reason = shown_decision(row)
                signals.append(
                    Answered(state.call.id, row.approval_id, approved=approved, reason=shown_reason)
                )
            signals.append(Settled(state.call.id, outcome))
        await self.log.append_closings(chat, closings, invocation, stamp)
        return signals

    async def cards(
        self, chat: ChatKey, buffer: ReleaseBuffer, message_id: str
    ) -> Sequence[BaseChunk]:
        """One transient ``data-approval`` per card that was closed (D7)."""
        rows = {row.approval_id: row for row in await self.ledger.rows(chat)}
        found = (
            rows.get(s.request.approval_id) for s in buffer.calls.values() if s.request is not None
        )
        return closed_cards([row for row in found if row is not None], message_id)

    async def _recovered(self, row: ApprovalRow | None) -> ApprovalRow | None:
        """The row with the outcome that a look-up of the tool has found."""
        if row is None or row.state != "unknown":
            return row
        chat = ChatKey(row.key.app, row.key.user, row.key.chat)
        find = self.survey.of_chat(chat).terms(row.agent or "", row.tool).find
        found = await look_up(self.ledger, find, row, owner=row.owner or "", report=_log_failure)
        return found or row


def _log_failure(error: BaseException) -> str:
    error_id = new_error_id()
    logger.error("a look-up failed error=%s %s", error_id, describe(error, with_text=True))
    return error_id


def _is_open(state: CallState) -> bool:
    return state.request is not None or state.is_client_side


def _outcome(state: CallState, row: ApprovalRow | None, reason: str) -> Outcome:
    """The outcome of a call that will not run any more (T8)."""
    if row is None:
        kind: Literal["error", "denied"] = "denied" if state.request is not None else "error"
        return Outcome(kind, text=f"Not run: {reason}")
    return closed_outcome(row)


def _closed(state: CallState, outcome: Outcome) -> Closed:
    unanswered = state.answer is None or not state.answer.delivered
    if outcome.kind == "output":
        result = outcome.output
        response: dict[str, object] = {"result": result}
        if isinstance(result, dict):
            response = dict(result)
        return Closed(state, response, None, was_unanswered=False)
    note = {"kind": outcome.kind, "text": outcome.text}
    return Closed(state, {"error": outcome.text}, note, was_unanswered=unanswered)
