"""Remembered approvals in the sessions' database (A8)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import and_, delete, select

from sluicegate.core.approvals import Grant
from sluicegate.stores.approvals.audit import GRANTED, REVOKED, note_grant
from sluicegate.stores.sql.schema import GRANTS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Row

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.keys import ChatKey
    from sluicegate.stores.sql.database import Database

_C = GRANTS.c


class RefusesRemembered(Protocol):
    """Where the calls lie that a grant has approved: the ledger."""

    def refuse_remembered(self, connection: Connection, chat: ChatKey, tool: str) -> None:
        """Close what was approved by a grant that is taken back and has not begun."""


class DatabaseGrants:
    """The tools of a chat that need not ask again (the port is `Grants`)."""

    def __init__(self, database: Database, ledger: RefusesRemembered) -> None:
        """Take the database whose tables are there, and the ledger in it."""
        self._database = database
        self._ledger = ledger

    async def all(self, chat: ChatKey) -> list[Grant]:
        """Return what is remembered in a chat, oldest first."""
        statement = select(GRANTS).where(_of(chat)).order_by(_C.granted_at, _C.tool)

        def find(connection: Connection) -> list[Grant]:
            return [_grant(row) for row in connection.execute(statement)]

        return await self._database.read(find)

    async def revoke(self, chat: ChatKey, tool: str, *, by: str, via: str = "") -> bool:
        """Let a tool ask again; what it was approved and has not begun does not run."""

        def end(connection: Connection) -> bool:
            # The grant goes first: whoever approves by it has locked it until the call is there.
            statement = delete(GRANTS).where(_of(chat), _C.tool == tool).returning(GRANTS)
            row = connection.execute(statement).one_or_none()
            if row is None:
                return False
            now = self._database.now()
            revoked = {**asdict(_grant(row)), "granted_by": by}
            note_grant(connection, chat, Grant(**revoked), REVOKED, now=now, via=via)
            self._ledger.refuse_remembered(connection, chat, tool)
            return True

        return await self._database.write(end)

    async def forget(self, chat: ChatKey) -> None:
        """Take back everything that is remembered in a chat that is deleted."""
        statement = delete(GRANTS).where(_of(chat))
        await self._database.write(lambda connection: connection.execute(statement).rowcount)


def find_grant(connection: Connection, chat: ChatKey, tool: str) -> Grant | None:
    """Return what is remembered of a tool; nobody takes it back before the transaction ends."""
    statement = select(GRANTS).where(_of(chat), _C.tool == tool).with_for_update(read=True)
    row = connection.execute(statement).one_or_none()
    return None if row is None else _grant(row)


def remember(connection: Connection, database: Database, row: ApprovalRow) -> None:
    """Remember an approval, unless one of the same tool is remembered already."""
    grant = Grant(row.tool, row.approval_id, row.decided_by or "", row.decided_at or 0.0)
    new = database.insert(GRANTS).values(**row.key.chat_key._asdict(), **asdict(grant))
    if connection.execute(new.on_conflict_do_nothing()).rowcount > 0:
        note_grant(
            connection, row.key.chat_key, grant, GRANTED, now=database.now(), via=row.via or ""
        )


def _of(chat: ChatKey) -> ColumnElement[bool]:
    return and_(_C.app == chat.app, _C.user == chat.user, _C.chat == chat.chat)


def _grant(row: Row[Any]) -> Grant:
    return Grant(row.tool, row.approval_id, row.granted_by, row.granted_at)
