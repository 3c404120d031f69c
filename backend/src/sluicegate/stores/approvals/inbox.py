"""The approvals of a user over all chats, in the sessions' database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, or_, select, tuple_

from sluicegate.errors import Malformed
from sluicegate.stores.approvals.approval_ports import WaitingPage
from sluicegate.stores.approvals.statements import row_of
from sluicegate.stores.sql.pagination import cursor, read_cursor
from sluicegate.stores.sql.schema import APPROVALS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.stores.sql.database import Database

_C = APPROVALS.c
_PLACE = (_C.chat, _C.invocation, _C.call)


class DatabaseWaiting:
    """What waits for a user (the port is `Waiting`)."""

    def __init__(self, database: Database) -> None:
        """Take the database whose tables are there."""
        self._database = database

    async def page(self, app: str, user: str, *, limit: int, after: str | None) -> WaitingPage:
        """Return up to ``limit`` requests that wait, newest first."""
        statement = (
            select(APPROVALS)
            .where(_of(app, user), _C.state == "requested", _C.deadline > self._database.now())
            .order_by(_C.requested_at.desc(), *(column.desc() for column in _PLACE))
            .limit(limit + 1)
        )
        if after is not None:
            place = read_cursor(after, len(_PLACE))
            if place is None:
                raise Malformed("This page cannot be found; load the list again from its start.")
            moment, names = place
            behind = and_(_C.requested_at == moment, tuple_(*_PLACE) < tuple_(*names))
            statement = statement.where(or_(_C.requested_at < moment, behind))

        def find(connection: Connection) -> list[ApprovalRow]:
            return [row_of(row._asdict()) for row in connection.execute(statement)]

        rows = await self._database.read(find)
        shown = rows[:limit]
        more = len(rows) > limit
        last = shown[-1] if more else None
        return WaitingPage(shown, None if last is None else _cursor(last))

    async def find(self, app: str, user: str, approval_id: str) -> ApprovalRow | None:
        """Return the newest approval of that id, whatever has become of it."""
        statement = (
            select(APPROVALS)
            .where(_of(app, user), _C.approval_id == approval_id)
            .order_by(_C.requested_at.desc())
            .limit(1)
        )

        def find(connection: Connection) -> ApprovalRow | None:
            row = connection.execute(statement).one_or_none()
            return None if row is None else row_of(row._asdict())

        return await self._database.read(find)


def _of(app: str, user: str) -> ColumnElement[bool]:
    return and_(_C.app == app, _C.user == user)


def _cursor(row: ApprovalRow) -> str:
    return cursor(row.requested_at, row.key.chat, row.key.invocation, row.key.call)
