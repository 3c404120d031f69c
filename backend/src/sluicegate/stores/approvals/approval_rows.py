"""Rows of the ledger as the database has them, and as everybody else does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam

from sluicegate.core.keys import CallKey
from sluicegate.core.ledger import ApprovalRow
from sluicegate.errors import StoreError
from sluicegate.stores.sql.schema import APPROVALS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue
    from sqlalchemy import ColumnElement

    from sluicegate.core.keys import ChatKey

_C = APPROVALS.c
KEY: Final = (_C.app, _C.user, _C.chat, _C.invocation, _C.call)
_JSON: Final = ("outcome", "arguments", "edits")

IS_ROW: Final = and_(*(column == bindparam(f"its_{column.name}") for column in KEY))
OF_CHAT: Final = and_(*(column == bindparam(f"its_{column.name}") for column in KEY[:3]))
"""Conditions of statements that are made once; `key_values` binds them."""


def key_values(key: CallKey | ChatKey) -> dict[str, Any]:
    """What binds a call's or a chat's key."""
    return {f"its_{name}": value for name, value in key._asdict().items()}


def row_of(row: Mapping[str, Any]) -> ApprovalRow:
    """A row of the table, by the names of its columns."""
    values = dict(row)
    key = CallKey(*(values.pop(column.name) for column in KEY))
    del values["edits_hash"]
    answer = values.pop("answer")
    for name in _JSON:
        values[name] = None if values[name] is None else json.loads(values[name])
    # SQLite has numbers for booleans.
    return ApprovalRow(key=key, answer=None if answer is None else bool(answer), **values)


def to_json(value: JsonValue) -> str:
    """A value as the table keeps it; raises StoreError."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (RecursionError, TypeError, ValueError) as error:
        raise StoreError(f"a value is not JSON: {type(error).__name__}") from error


def is_row(key: CallKey) -> ColumnElement[bool]:
    """Whether a row is that call's."""
    return and_(of_chat(key.chat_key), _C.invocation == key.invocation, _C.call == key.call)


def of_chat(chat: ChatKey) -> ColumnElement[bool]:
    """Whether a row is of that chat."""
    return and_(_C.app == chat.app, _C.user == chat.user, _C.chat == chat.chat)
