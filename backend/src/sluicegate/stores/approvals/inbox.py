"""The pending approvals of a user over all chats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, or_, select, tuple_

from sluicegate.errors import Unknown
from sluicegate.stores.approvals.statements import row_of
from sluicegate.stores.sql.pagination import encode_cursor, parse_cursor
from sluicegate.stores.sql.schema import APPROVALS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.stores.sql.database import Database

_C = APPROVALS.c
_TIE_BREAK = (_C.chat, _C.invocation, _C.call)


@dataclass(frozen=True, slots=True)
class ApprovalPage:
    """A page of requests, newest first; ``next`` is the cursor of the next page, or None."""

    rows: list[ApprovalRow]
    next: str | None


class ApprovalInbox:
    """The approval requests of a user over all chats.

    Every method raises StoreError when the database fails.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, app: str, user: str, *, limit: int, after: str | None) -> ApprovalPage:
        """Return up to ``limit`` pending requests after the cursor ``after``, newest first.

        Raises:
            Unknown: the cursor is not valid.
        """
        statement = (
            select(APPROVALS)
            .where(_of(app, user), _C.state == "requested", _C.deadline > self._database.now())
            .order_by(_C.requested_at.desc(), *(column.desc() for column in _TIE_BREAK))
            .limit(limit + 1)
        )
        if after is not None:
            position = parse_cursor(after, len(_TIE_BREAK))
            if position is None:
                raise Unknown("This page cannot be found; load the list again from its start.")
            moment, names = position
            same_moment = and_(_C.requested_at == moment, tuple_(*_TIE_BREAK) < tuple_(*names))
            statement = statement.where(or_(_C.requested_at < moment, same_moment))

        def read(connection: Connection) -> list[ApprovalRow]:
            return [row_of(row._asdict()) for row in connection.execute(statement)]

        rows = await self._database.read(read)
        page = rows[:limit]
        if len(rows) <= limit:
            return ApprovalPage(page, None)
        last = page[-1]
        key = last.key
        return ApprovalPage(
            page, encode_cursor(last.requested_at, key.chat, key.invocation, key.call)
        )

    async def find(self, app: str, user: str, approval_id: str) -> ApprovalRow | None:
        """Return the newest approval with that id, in any state."""
        statement = (
            select(APPROVALS)
            .where(_of(app, user), _C.approval_id == approval_id)
            .order_by(_C.requested_at.desc())
            .limit(1)
        )

        def read(connection: Connection) -> ApprovalRow | None:
            row = connection.execute(statement).one_or_none()
            return None if row is None else row_of(row._asdict())

        return await self._database.read(read)


def _of(app: str, user: str) -> ColumnElement[bool]:
    return and_(_C.app == app, _C.user == user)
