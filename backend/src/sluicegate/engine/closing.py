"""Closing approvals that will not be answered: superseded, expired, stopped (A5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sluicegate.core.noted import closing_words, shown_answer
from sluicegate.core.signals import Answered, Outcome, Settled, Signal
from sluicegate.core.turn_plan import call_key
from sluicegate.engine.outcomes import UNKNOWN
from sluicegate.engine.session_log import Closed
from sluicegate.wire.chunks import BaseChunk, DataChunk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.call_state import CallState
    from sluicegate.core.exchanges import TurnStamp
    from sluicegate.core.gate import Gate
    from sluicegate.core.keys import ChatKey
    from sluicegate.core.ledger import ApprovalRow
    from sluicegate.engine.session_log import SessionLog
    from sluicegate.stores.base import Ledger


class Closing:
    """Closes open calls in the ledger first, then in the session."""

    def __init__(self, ledger: Ledger, log: SessionLog) -> None:
        self._ledger = ledger
        self._log = log

    async def close(
        self, chat: ChatKey, gate: Gate, invocation: str, stamp: TurnStamp, *, reason: str
    ) -> list[Signal]:
        """Close every call of an exchange that has not run; returns what the gate should know.

        The chat's lease must be held and no Runner may run on the session.
        """
        states = [s for s in gate.calls.values() if s.outcome is None and _is_open(s)]
        await self._ledger.expire(chat)
        await self._ledger.supersede([call_key(chat, s) for s in states if s.ask is not None])
        rows = {row.approval_id: row for row in await self._ledger.rows(chat)}
        signals: list[Signal] = []
        closings: list[Closed] = []
        for state in states:
            row = rows.get(state.ask.approval_id) if state.ask else None
            outcome = _outcome(state, row, reason)
            closings.append(_closed(state, outcome))
            if row is not None:
                approved, said = shown_answer(row)
                signals.append(
                    Answered(state.call.id, row.approval_id, approved=approved, reason=said)
                )
            signals.append(Settled(state.call.id, outcome))
        await self._log.append_closings(chat, closings, invocation, stamp)
        return signals

    async def cards(self, chat: ChatKey, gate: Gate, message_id: str) -> Sequence[BaseChunk]:
        """One transient ``data-approval`` per card that was closed (D7)."""
        rows = {row.approval_id: row for row in await self._ledger.rows(chat)}
        found = (rows.get(s.ask.approval_id) for s in gate.calls.values() if s.ask is not None)
        return closed_cards([row for row in found if row is not None], message_id)


def closed_cards(rows: Sequence[ApprovalRow], message_id: str) -> list[BaseChunk]:
    """A transient ``data-approval`` per approval that nobody can give any more."""
    return [
        DataChunk(
            type="data-approval",
            data={
                "approvalId": row.approval_id,
                "messageId": message_id,
                "state": row.state,
                "reason": closing_words(row)[1],
            },
            transient=True,
        )
        for row in rows
        if row.state in ("superseded", "expired") and not row.is_automatic
    ]


def _is_open(state: CallState) -> bool:
    return state.ask is not None or state.is_client_side


def _outcome(state: CallState, row: ApprovalRow | None, reason: str) -> Outcome:
    """How a call ends that nobody will run any more (T8)."""
    if row is None:
        kind: Literal["error", "denied"] = "denied" if state.ask is not None else "error"
        return Outcome(kind, text=f"Not run: {reason}")
    if row.state in ("executing", "unknown"):
        return Outcome("error", text=UNKNOWN)
    if row.state == "failed" and isinstance(row.outcome, dict):
        return Outcome("error", text=str(row.outcome.get("error")))
    if row.state == "executed":
        return Outcome("output", output=row.outcome)
    approved, sentence = closing_words(row)
    return Outcome("error" if approved else "denied", text=sentence)


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
