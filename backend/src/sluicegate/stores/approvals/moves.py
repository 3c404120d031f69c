"""Moves of calls, each with its line in the audit trail: both are there or neither (A10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, case, func, insert, select
from sqlalchemy.types import Text

from sluicegate.stores.approvals.approval_rows import IS_ROW, KEY, key_values, row_of
from sluicegate.stores.sql.schema import APPROVALS, AUDIT, NOW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Executable, FromClause, Insert, Select
    from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

    from sluicegate.core.ledger import ApprovalRow
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


class Moves:
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
