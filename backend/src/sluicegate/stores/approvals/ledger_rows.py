"""Rows of the ledger, and the keys by which statements find them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.approvals import ApprovalRow, GrantScope
from sluicegate.core.approvers import ApproverRule
from sluicegate.core.call_keys import CallKey
from sluicegate.errors import StoreError
from sluicegate.stores.sql.schema import APPROVALS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from sluicegate.core.chat_and_turn_keys import ChatKey

KEY: Final = (
    APPROVALS.c.app,
    APPROVALS.c.user,
    APPROVALS.c.chat,
    APPROVALS.c.invocation,
    APPROVALS.c.call,
)
_JSON: Final = (
    "outcome",
    "actions",
    "arguments",
    "edits",
    "changed",
    "remember",
    "payload",
    "edited_payload",
    "response",
    "preview",
)


def key_values(key: CallKey | ChatKey) -> dict[str, Any]:
    """Return the values that select a call or the calls of a chat."""
    return {f"its_{name}": value for name, value in key._asdict().items()}


def row_of(row: Mapping[str, Any]) -> ApprovalRow:
    """Convert a row of the table, given by column name."""
    values = dict(row)
    key = CallKey(*(values.pop(column.name) for column in KEY))
    approvers = values.pop("approvers")
    answer = values.pop("answer")
    for name in _JSON:
        values[name] = None if values[name] is None else json.loads(values[name])
    remember = values.pop("remember")
    return ApprovalRow(
        key=key,
        # SQLite returns numbers for booleans.
        answer=None if answer is None else bool(answer),
        remember=None
        if remember is None
        else GrantScope(remember["ttl"], tuple(remember.get("where", ()))),
        approvers=None if approvers is None else ApproverRule.from_json(json.loads(approvers)),
        **values,
    )


def to_json(value: JsonValue) -> str:
    """Encode a value as the table stores it; raises StoreError."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError) as error:
        raise StoreError(f"a value is not JSON: {type(error).__name__}") from error
