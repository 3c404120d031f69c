"""What ADK is told of an exchange's answers: everything together, branch by branch (A3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluicegate.core.ledger import EFFECTFUL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.core.history import RebuiltExchange
    from sluicegate.core.noted import Rows


@dataclass(frozen=True, slots=True)
class Reply:
    """One function response for ADK."""

    id: str
    name: str
    response: dict[str, object]
    branch: str | None
    invocation: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """What ADK is told (A3): groups to append as user events, then the message to run with."""

    appended: Sequence[Sequence[Reply]]
    message: Sequence[Reply]


def delivery(exchange: RebuiltExchange, rows: Rows, outputs: Sequence[Reply]) -> Delivery | None:
    """Group the answers of an exchange by branch (A3); None when nothing is left to tell."""
    groups: dict[str | None, list[Reply]] = {}
    for state in exchange.gate.calls.values():
        if state.ask is None or not state.was_asked or state.outcome is not None:
            continue
        row = rows.get(state.ask.approval_id)
        confirmed = row is not None and (row.state == "approved" or row.state in EFFECTFUL)
        ask = state.ask
        reply = Reply(
            ask.confirmation_id,
            ask.answer_name,
            {"confirmed": confirmed},
            ask.branch,
            ask.invocation,
        )
        groups.setdefault(ask.branch, []).append(reply)
    others: dict[str | None, list[Reply]] = {}
    for output in outputs:
        others.setdefault(output.branch, []).append(output)
    ordered = [*others.values(), *groups.values()]
    if not ordered:
        return None
    return Delivery(ordered[:-1], ordered[-1])
