"""Grants: the tools that a user has approved for the rest of a chat (A8)."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, select

from sluicegate.core.approvals import Grant
from sluicegate.stores.approvals.audit import GRANTED, REVOKED, audit_grant
from sluicegate.stores.sql.schema import GRANTS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Row

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.keys import ChatKey
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.stores.sql.database import Database

_C = GRANTS.c


class Grants:
    """The grants of a chat; `Ledger.record_decisions` adds to them.

    Every method raises StoreError when the database fails.
    """

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._database = database
        self._ledger = ledger

    async def all(self, chat: ChatKey) -> list[Grant]:
        """Return the grants of a chat, oldest first."""
        statement = select(GRANTS).where(_of(chat)).order_by(_C.granted_at, _C.tool)

        def read(connection: Connection) -> list[Grant]:
            return [_grant(row) for row in connection.execute(statement)]

        return await self._database.read(read)

    async def revoke(self, chat: ChatKey, tool: str, *, by: str, via: str = "") -> bool:
        """Revoke a grant; False when there is none.

        A call that it has approved and that has not begun is refused.
        """

        def delete_grant(connection: Connection) -> bool:
            # The grant goes first: an approval by it holds a lock on it until the call is stored.
            statement = delete(GRANTS).where(_of(chat), _C.tool == tool).returning(GRANTS)
            row = connection.execute(statement).one_or_none()
            if row is None:
                return False
            revoked = replace(_grant(row), granted_by=by)
            audit_grant(connection, chat, revoked, REVOKED, now=self._database.now(), via=via)
            self._ledger.refuse_granted(connection, chat, tool)
            return True

        return await self._database.write(delete_grant)

    async def delete_all(self, chat: ChatKey) -> None:
        """Delete the grants of a deleted chat."""
        statement = delete(GRANTS).where(_of(chat))
        await self._database.write(lambda connection: connection.execute(statement).rowcount)


def find_grant(connection: Connection, chat: ChatKey, tool: str) -> Grant | None:
    """Return the grant of a tool, locked until the end of the transaction."""
    statement = select(GRANTS).where(_of(chat), _C.tool == tool).with_for_update(read=True)
    row = connection.execute(statement).one_or_none()
    return None if row is None else _grant(row)


def add_grant(connection: Connection, database: Database, row: ApprovalRow) -> None:
    """Add a grant for the tool of an approval, unless the chat has one already."""
    chat = row.key.chat_key
    grant = Grant(row.tool, row.approval_id, row.decided_by or "", row.decided_at or 0.0)
    new = database.insert(GRANTS).values(**chat._asdict(), **asdict(grant))
    if connection.execute(new.on_conflict_do_nothing()).rowcount > 0:
        audit_grant(connection, chat, grant, GRANTED, now=database.now(), via=row.via or "")


def _of(chat: ChatKey) -> ColumnElement[bool]:
    return and_(_C.app == chat.app, _C.user == chat.user, _C.chat == chat.chat)


def _grant(row: Row[Any]) -> Grant:
    return Grant(row.tool, row.approval_id, row.granted_by, row.granted_at)
