"""The approvals that a user may see, over all chats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from sqlalchemy import and_, or_, select, tuple_

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import Unknown
from sluicegate.stores.approvals.entitlements import entitled_to, find_entitled
from sluicegate.stores.approvals.ledger_rows import row_of
from sluicegate.stores.approvals.quorum_decisions import with_decisions
from sluicegate.stores.sql.pagination import encode_cursor, parse_cursor
from sluicegate.stores.sql.schema import APPROVALS

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import ColumnElement, Connection

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.stores.sql.database import Database

_C = APPROVALS.c
_TIE_BREAK = (_C.chat, _C.invocation, _C.call)


ListedState = Literal["requested", "unknown"]
"""The states that are listed: what waits for a decision, and what may have happened."""


@dataclass(frozen=True, slots=True)
class ApprovalFilter:
    """A selection of approvals; ``agent`` is a path, ``older_than`` seconds since the request.

    Requests whose deadline has passed are left out.
    """

    tool: str | None = None
    agent: str | None = None
    older_than: float | None = None
    state: ListedState = "requested"


ALL: Final = ApprovalFilter()


@dataclass(frozen=True, slots=True)
class ApprovalPage:
    """A page of requests, newest first; ``next`` is the cursor of the next page, or None."""

    rows: list[ApprovalRow]
    next: str | None


class ApprovalInbox:
    """The approvals that a user may see, over all chats.

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
        selection: ApprovalFilter = ALL,
        roles: Collection[str] | None = None,
    ) -> ApprovalPage:
        """Return up to ``limit`` approvals after the cursor ``after``, newest first.

        With ``roles`` those of other users that name the user or one of the roles are among them.

        Raises:
            Unknown: the cursor is not valid.
        """
        statement = (
            select(APPROVALS)
            .where(visible_to(app, user, roles), *self._conditions(selection))
            .order_by(_C.requested_at.desc(), *(column.desc() for column in _TIE_BREAK))
            .limit(limit + 1)
        )
        if after is not None:
            statement = statement.where(_after(after))

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

    async def chats_with_claims(self, app: str, user: str) -> list[ChatKey]:
        """Return the chats in which a call that the user may see is claimed and has no outcome."""
        statement = (
            select(_C.user, _C.chat)
            .where(visible_to(app, user), _C.state == "executing")
            .distinct()
        )

        def read(connection: Connection) -> list[ChatKey]:
            return [ChatKey(app, row.user, row.chat) for row in connection.execute(statement)]

        return await self._database.read(read)

    async def find(self, app: str, user: str, approval_id: str) -> ApprovalRow | None:
        """Return the newest approval with that id that a user may see, in any state."""
        statement = (
            select(APPROVALS)
            .where(visible_to(app, user), _C.approval_id == approval_id)
            .order_by(_C.requested_at.desc())
            .limit(1)
        )

        def read(connection: Connection) -> ApprovalRow | None:
            row = connection.execute(statement).one_or_none()
            return None if row is None else with_decisions(connection, [row_of(row._asdict())])[0]

        return await self._database.read(read)

    async def find_ruled(self, app: str, approval_id: str) -> ApprovalRow | None:
        """Return the approval of any user, if other people decide it; the caller checks access."""
        return await self._database.read(
            lambda connection: find_entitled(connection, app, approval_id)
        )

    def _conditions(self, selection: ApprovalFilter) -> list[ColumnElement[bool]]:
        found: list[ColumnElement[bool]] = [_C.state == selection.state]
        if selection.state == "requested":
            # An expression: an index by deadline would find all that waits, to be sorted.
            found.append(_C.deadline + 0 > self._database.now())
        if selection.tool is not None:
            found.append(_C.tool == selection.tool)
        if selection.agent is not None:
            found.append(_C.agent == selection.agent)
        if selection.older_than is not None:
            found.append(_C.requested_at <= self._database.now() - selection.older_than)
        return found


def visible_to(app: str, user: str, roles: Collection[str] | None = None) -> ColumnElement[bool]:
    """Return the condition for the approvals that a user may see: those of the user's chats.

    With ``roles`` also those of other users that name the user or one of the roles. Every method of
    `ApprovalInbox` for a person uses it, except `find_ruled`, whose caller checks the user.
    """
    is_own = _C.user == user
    if roles is None:
        return and_(_C.app == app, is_own)
    return and_(_C.app == app, or_(is_own, entitled_to(app, user, roles)))


def _after(cursor: str) -> ColumnElement[bool]:
    """Return the condition for what follows a cursor; raises Unknown."""
    position = parse_cursor(cursor, len(_TIE_BREAK))
    if position is None:
        raise Unknown("This page cannot be found; load the list again from its start.")
    moment, names = position
    same_moment = and_(_C.requested_at == moment, tuple_(*_TIE_BREAK) < tuple_(*names))
    return or_(_C.requested_at < moment, same_moment)
