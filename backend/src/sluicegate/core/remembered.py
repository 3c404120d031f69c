"""Calls that a remembered approval let run (A8): nobody asked, so the log of ADK has no question.

Rule: the ledger's row is the trace. The question and its answer are told right before the call's
first outcome, live and rebuilt alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.signals import Ask, Asked, Settled, Signal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluicegate.core.call_state import CallState
    from sluicegate.core.gate import Gate
    from sluicegate.core.ledger import ApprovalRow
    from sluicegate.core.noted import Rows


def remembered_in(rows: Rows) -> dict[str, ApprovalRow]:
    """The rows of calls that were approved without asking."""
    return {row.key.call: row for row in rows.values() if row.is_automatic}


def with_remembered(
    signals: Sequence[Signal], gate: Gate, remembered: Mapping[str, ApprovalRow]
) -> list[Signal]:
    """Tell of a remembered approval before the first outcome of its call."""
    if not remembered:
        return list(signals)
    told: set[str] = set()
    found: list[Signal] = []
    for signal in signals:
        if isinstance(signal, Settled) and signal.call_id not in told:
            told.add(signal.call_id)
            state = gate.calls.get(signal.call_id)
            found.extend([] if state is None else _asked(state, remembered))
        found.append(signal)
    return found


def remembered_open(gate: Gate, remembered: Mapping[str, ApprovalRow]) -> list[Signal]:
    """Tell of the remembered approvals of calls that have no outcome yet, or will have none."""
    return [s for state in gate.calls.values() for s in _asked(state, remembered)]


def _asked(state: CallState, remembered: Mapping[str, ApprovalRow]) -> list[Signal]:
    row = remembered.get(state.call.id_in_adk)
    if row is None or state.ask is not None or state.outcome is not None:
        return []
    ask = Ask(
        approval_id=row.approval_id,
        call_id=state.call.id,
        confirmation_id="",
        answer_name="adk_request_confirmation",
        hint="",
        payload=None,
        branch=state.call.branch,
        invocation=row.key.invocation,
        automatic=True,
    )
    return [Asked(ask)]
