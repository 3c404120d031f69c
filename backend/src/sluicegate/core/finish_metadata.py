"""What the last chunk of a turn tells of the whole exchange (T3)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic import JsonValue

    from sluicegate.core.gate import Gate
    from sluicegate.core.ledger import ApprovalRow
    from sluicegate.core.signals import TurnFacts


def metadata(
    facts: TurnFacts, *, created_at: float, edits: Mapping[str, JsonValue]
) -> dict[str, Any]:
    """``messageMetadata`` of ``finish``: the exchange's total so far (T3).

    ``edits`` are the arguments that were approved in place of others, by approval id (A7).
    """
    usage = facts.usage
    found: dict[str, Any] = {
        "usage": {
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": usage.total_tokens,
            "reasoningTokens": usage.reasoning_tokens,
            "cachedInputTokens": usage.cached_input_tokens,
        },
        "createdAt": datetime.fromtimestamp(created_at, UTC).isoformat(timespec="milliseconds"),
    }
    if facts.model is not None:
        found["model"] = facts.model
    if edits:
        found["approvals"] = {name: {"edits": arguments} for name, arguments in edits.items()}
    return found


def edits_in(gate: Gate, rows: Iterable[ApprovalRow]) -> dict[str, JsonValue]:
    """What people changed in the calls of this exchange before they approved them (A7)."""
    asked = {state.ask.approval_id for state in gate.calls.values() if state.ask is not None}
    return {
        row.approval_id: row.edits
        for row in rows
        if row.edits is not None and row.approval_id in asked
    }
