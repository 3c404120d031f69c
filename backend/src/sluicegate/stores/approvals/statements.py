"""Rows of the ledger as the database has them, and as everybody else does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, case, func, insert, or_, select, update
from sqlalchemy.sql.elements import Null
from sqlalchemy.types import Double, Text

from sluicegate.core.approvals import ApprovalRow, sources
from sluicegate.core.keys import CallKey
from sluicegate.errors import StoreError
from sluicegate.stores.sql.schema import APPROVALS, AUDIT, NOW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue
    from sqlalchemy import ColumnElement, Select
    from sqlalchemy.sql.dml import ReturningUpdate

    from sluicegate.core.approvals import ApprovalState
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


_IS_OWNERS = _C.owner == bindparam("its_owner")
_IS_LATE = _C.deadline <= NOW
_HAS_ARGUMENTS = _C.args_hash == bindparam("its_args_hash")


def _move(target: ApprovalState, *where: Any, **values: Any) -> ReturningUpdate[Any]:
    """The compare-and-set to ``target`` of one call: from the states that may be before it."""
    changed = update(APPROVALS).where(IS_ROW, *where, _from(target))
    return changed.values(state=target, **values).returning(APPROVALS)


def _from(target: ApprovalState) -> ColumnElement[bool]:
    # An IN would be put together anew each time.
    return or_(*(_C.state == source for source in sources(target)))


ROW: Final[Select[Any]] = select(APPROVALS).where(IS_ROW)
ROW_LOCKED: Final = ROW.with_for_update()
ROWS: Final[Select[Any]] = select(APPROVALS).where(OF_CHAT).order_by(_C.requested_at, *KEY)

ANSWER: Final[ReturningUpdate[Any]] = (
    update(APPROVALS)
    .where(IS_ROW, _HAS_ARGUMENTS, _from("approved"))
    .values(
        # A late answer is kept and does nothing; the database's clock judges.
        state=case((_IS_LATE, "expired"), else_=bindparam("new_state", type_=Text)),
        answer=bindparam("new_answer"),
        reason=bindparam("new_reason"),
        decided_by=bindparam("new_decided_by"),
        via=bindparam("new_via"),
        edits=bindparam("new_edits"),
        edits_hash=bindparam("new_edits_hash"),
        decided_at=NOW,
        finished_at=case(
            (or_(_IS_LATE, bindparam("new_state", type_=Text) == "denied"), NOW), else_=Null()
        ),
    )
    .returning(APPROVALS)
)
"""The states after a request are reached from it alone, so one list of sources serves for all."""

_CLAIMED: Final[dict[str, Any]] = {"owner": bindparam("new_owner"), "claimed_at": NOW}
CLAIM: Final = _move("executing", _HAS_ARGUMENTS, _C.state == "approved", **_CLAIMED)
CLAIM_AGAIN: Final = _move("executing", _HAS_ARGUMENTS, _C.state == "unknown", **_CLAIMED)

_ENDED: Final[dict[str, Any]] = {"outcome": bindparam("new_outcome"), "finished_at": NOW}
EXECUTED: Final = _move("executed", or_(_IS_OWNERS, _C.state == "unknown"), **_ENDED)
FAILED: Final = _move("failed", _IS_OWNERS, **_ENDED)

NEW: Final[dict[str, Any]] = {
    "requested_at": NOW,
    "deadline": NOW + bindparam("new_ttl", type_=Double),
    "state": "requested",
    **{name: bindparam(f"its_{name}") for name in (*(column.name for column in KEY), "args_hash")},
    **{name: bindparam(f"new_{name}") for name in ("approval_id", "tool", "arguments", "hint")},
}
"""The values of a request; each database has an INSERT of its own."""


if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Executable, FromClause, Insert, Select
    from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

    from sluicegate.stores.sql.database import Database

    Move = ReturningInsert[Any] | ReturningUpdate[Any]

_SAME: Final = (*KEY, APPROVALS.c.approval_id, APPROVALS.c.tool, APPROVALS.c.via)


def _line(of: FromClause) -> Select[Any]:
    """The line of the trail for rows that have just come into their state.

    ``noted_reason`` is bound: why a call failed or was refused, in place of the person's words.
    """
    row = of.c
    at = case(
        (row.state == "requested", row.requested_at),
        (row.state == "approved", row.decided_at),
        (row.state == "denied", row.decided_at),
        (row.state == "executing", row.claimed_at),
        # That an owner is gone is noticed, it has no moment of its own.
        (row.state == "unknown", NOW),
        else_=row.finished_at,
    )
    reason = func.coalesce(bindparam("noted_reason", type_=Text), row.reason)
    return select(
        *(row[column.name] for column in _SAME),
        at.label("at"),
        row.state.label("action"),
        row.decided_by.label("by"),
        reason.label("reason"),
        # Rows of schema 5 have no hash of their edits; the line of their approval has it.
        case((row.edits.is_(None), row.args_hash), else_=row.edits_hash).label("args_hash"),
    )


def _note(line: Select[Any]) -> Insert:
    return insert(AUDIT).from_select([column.name for column in line.selected_columns], line)


_NOTE_ROW: Final = _note(_line(APPROVALS).where(IS_ROW))


def _in_one(move: Move) -> Executable:
    moved = move.cte("moved")
    return select(moved).add_cte(_note(_line(moved)).cte("noted"))


class LedgerTransitions:
    """Makes moves: statements that change or add rows of the ledger and return them.

    PostgreSQL does a move and its note in one statement, which needs no transaction around it;
    SQLite, where a statement costs no round trip, in two.
    """

    def __init__(self, database: Database, single: Mapping[str, Move]) -> None:
        """Prepare moves of one call, by name."""
        self._database = database
        self._is_one = database.sessions.dialect.name == "postgresql"
        self._single = single
        note = None if self._is_one else database.prepare(_NOTE_ROW)
        self._prepared = {
            name: database.prepare(self._noted(move), then=note) for name, move in single.items()
        }

    async def make_alone(
        self,
        name: str,
        values: Mapping[str, Any],
        *,
        reason: str | None = None,
        is_lasting: bool = False,
        patience: float = 0.0,
    ) -> list[ApprovalRow]:
        """Make a move of one call in a transaction of its own; returns the row if it changed."""
        bound = {**values, "noted_reason": reason}
        rows = await self._database.execute(
            self._prepared[name], bound, is_lasting=is_lasting, patience=patience
        )
        return [row_of(row) for row in rows]

    def make(
        self,
        connection: Connection,
        move: str | Move,
        values: Mapping[str, Any],
        *,
        reason: str | None = None,
    ) -> list[ApprovalRow]:
        """Make a move in a transaction; returns the rows that changed."""
        statement = self._single[move] if isinstance(move, str) else move
        noted = {**self._database.clock(), "noted_reason": reason}
        found = connection.execute(self._noted(statement), {**values, **noted})
        rows = [row_of(row._asdict()) for row in found]
        if not self._is_one:
            for row in rows:
                connection.execute(_NOTE_ROW, {**key_values(row.key), **noted})
        return rows

    def _noted(self, move: Move) -> Executable:
        return _in_one(move) if self._is_one else move
