"""Grants: decisions that approve later calls of a tool in their chat too (A8)."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, delete, insert, select

from sluicegate.core.approvals import Grant
from sluicegate.core.tool_definition_changes import stored_definition
from sluicegate.stores.approvals.ledger_rows import to_json
from sluicegate.stores.sql.schema import AUDIT, GRANTS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Row

    from sluicegate.core.approvals import ApprovalRow, NewApproval
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.core.tool_definition_changes import ToolDefinition
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.stores.sql.database import Database

GRANTED: Final = "granted"
REVOKED: Final = "revoked"
"""Actions of the audit trail on grants, besides the states of a call."""

_C = GRANTS.c


@dataclass(frozen=True, slots=True)
class GrantLookup:
    """What the grants of a chat say about a call.

    ``row`` is the call's row if a grant has approved it. ``definition`` is that of the newest grant
    of the same agent and tool, if there is one.
    """

    row: ApprovalRow | None
    definition: ToolDefinition | None


class Grants:
    """The grants of a chat; `Ledger.claim` adds to them.

    Every method raises StoreError when the database fails.
    """

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._database = database
        self._ledger = ledger

    async def all(self, chat: ChatKey) -> list[Grant]:
        """Return the grants of a chat that have not expired, oldest first."""
        statement = (
            select(GRANTS)
            .where(_of(chat), _C.expires_at > self._database.now())
            .order_by(_C.granted_at, _C.id)
        )

        def read(connection: Connection) -> list[Grant]:
            return [_grant(row) for row in connection.execute(statement)]

        return await self._database.read(read)

    async def revoke(self, chat: ChatKey, grant_id: str, *, by: str, via: str = "") -> bool:
        """Revoke a grant; False when there is none.

        A call that it has approved and that has not begun is refused.
        """

        def delete_grant(connection: Connection) -> bool:
            statement = delete(GRANTS).where(_of(chat), _C.id == grant_id).returning(GRANTS)
            row = connection.execute(statement).one_or_none()
            if row is None:
                return False
            revoked = replace(_grant(row), granted_by=by)
            audit_grant(connection, chat, revoked, REVOKED, now=self._database.now(), via=via)
            return True

        return await self._ledger.refuse_granted(chat, grant_id, revoke=delete_grant)

    async def delete_all(self, chat: ChatKey) -> None:
        """Delete the grants of a deleted chat."""
        statement = delete(GRANTS).where(_of(chat))
        await self._database.write(lambda connection: connection.execute(statement).rowcount)


def find_grants(connection: Connection, database: Database, call: NewApproval) -> list[Grant]:
    """Return the grants of a call's agent and tool, newest first.

    They are locked until the end of the transaction.
    """
    statement = (
        select(GRANTS)
        .where(
            _of(call.key.chat_key),
            _C.tool == call.tool,
            _C.agent == call.agent,
            _C.expires_at > database.now(),
        )
        .order_by(_C.granted_at.desc(), _C.id)
        .with_for_update(read=True)
    )
    return [_grant(row) for row in connection.execute(statement)]


def add_grant(
    connection: Connection, database: Database, chat: ChatKey, grant: Grant, *, via: str
) -> None:
    """Add a grant, in place of an earlier one of the same scope; expired ones are deleted."""
    now = database.now()
    connection.execute(delete(GRANTS).where(_of(chat), _C.expires_at <= now))
    values = {
        "approval_id": grant.approval_id,
        "granted_by": grant.granted_by,
        "granted_at": grant.granted_at,
        "expires_at": grant.expires_at,
    }
    new = database.insert(GRANTS).values(
        **chat._asdict(),
        id=grant.id,
        tool=grant.tool,
        agent=grant.agent,
        definition=to_json(grant.definition.as_json()),
        arguments=to_json(dict(grant.where)),
        **values,
    )
    key = [column.name for column in GRANTS.primary_key]
    connection.execute(new.on_conflict_do_update(index_elements=key, set_=values))
    audit_grant(connection, chat, grant, GRANTED, now=now, via=via)


def audit_grant(
    connection: Connection,
    chat: ChatKey,
    grant: Grant,
    action: str,
    *,
    now: ColumnElement[float],
    via: str,
) -> None:
    """Append that a grant was given or revoked; ``granted_by`` is the person who did so."""
    entry = {
        **chat._asdict(),
        "at": now,
        "invocation": "",
        "call": "",
        "approval_id": grant.approval_id,
        "tool": grant.tool,
        "action": action,
        "by": grant.granted_by,
        "via": via or None,
    }
    connection.execute(insert(AUDIT).values(entry))


def _of(chat: ChatKey) -> ColumnElement[bool]:
    return and_(_C.app == chat.app, _C.user == chat.user, _C.chat == chat.chat)


def _grant(row: Row[Any]) -> Grant:
    return Grant(
        tool=row.tool,
        agent=row.agent,
        definition=stored_definition(json.loads(row.definition)),
        where=json.loads(row.arguments),
        approval_id=row.approval_id,
        granted_by=row.granted_by,
        granted_at=row.granted_at,
        expires_at=row.expires_at,
    )
