"""The pending approvals of a user over all chats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, or_, select, tuple_

from sluicegate.errors import Unknown
from sluicegate.stores.approvals.decisions import entitled_to, find_entitled, with_decisions
from sluicegate.stores.approvals.statements import row_of
from sluicegate.stores.sql.pagination import encode_cursor, parse_cursor
from sluicegate.stores.sql.schema import APPROVALS

if TYPE_CHECKING:
    from collections.abc import Collection

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

    async def page(
        self,
        app: str,
        user: str,
        *,
        limit: int,
        after: str | None,
        roles: Collection[str] | None = None,
    ) -> ApprovalPage:
        """Return up to ``limit`` pending requests after the cursor ``after``, newest first.

        With ``roles`` those of other users that name the user or one of the roles are among them.

        Raises:
            Unknown: the cursor is not valid.
        """
        statement = (
            select(APPROVALS)
            .where(_C.state == "requested", _C.deadline > self._database.now())
            .where(_of(app, user) if roles is None else _for(app, user, roles))
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
            found = [row_of(row._asdict()) for row in connection.execute(statement)]
            return with_decisions(connection, found)

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
            return None if row is None else with_decisions(connection, [row_of(row._asdict())])[0]

        return await self._database.read(read)

    async def find_ruled(self, app: str, approval_id: str) -> ApprovalRow | None:
        """Return the approval of any user with that id, if other people decide it."""
        return await self._database.read(
            lambda connection: find_entitled(connection, app, approval_id)
        )


def _for(app: str, user: str, roles: Collection[str]) -> ColumnElement[bool]:
    is_own = _C.user == user
    return and_(_C.app == app, or_(is_own, entitled_to(app, user, roles)))


def _of(app: str, user: str) -> ColumnElement[bool]:
    return and_(_C.app == app, _C.user == user)
