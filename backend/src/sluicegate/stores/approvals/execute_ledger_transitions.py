"""Executes transitions of the ledger, writes their lines of the audit trail, publishes the rows.

Each is one compare-and-set of `ledger_statements`.
"""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sluicegate.errors import StoreError
from sluicegate.stores.approvals.ledger_rows import key_values, row_of
from sluicegate.stores.approvals.ledger_statements import (
    AUDIT_ROW,
    NO_AUTHOR,
    SINGLE_ROW,
    TransitionName,
    statements_of,
)
from sluicegate.stores.streams.user_events import role_topic
from sluicegate.wire.user_events import RESET, approval_changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection
    from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.stores.sql.database import Database
    from sluicegate.stores.streams.user_events import UserEvents

    _Transition = ReturningInsert[Any] | ReturningUpdate[Any]

_CHANGED: Final = "sluicegate.changed"
"""The key of a connection's ``info`` under which a transaction collects the rows it changes."""

_T = TypeVar("_T")


class LedgerTransitions:
    """Executes transitions: each changes or adds rows of the ledger and audits them.

    What a commit has changed is published to the events of the user.

    PostgreSQL does both in one statement, which needs no transaction around it; SQLite, where a
    statement costs no round trip, in two.
    """

    def __init__(
        self,
        database: Database,
        events: UserEvents | None = None,
        changed: Callable[[Iterable[ApprovalRow]], None] | None = None,
    ) -> None:
        self._database = database
        self._events = events
        self._changed = changed
        dialect = database.sessions.dialect.name
        self._is_single_statement = dialect == "postgresql"
        self._statements = statements_of(dialect)
        audit = None if self._is_single_statement else database.prepare(AUDIT_ROW)
        self._prepared = {
            name: database.prepare(self._statements[name], then=audit)
            for name in ("request", *SINGLE_ROW)
        }

    async def execute(
        self,
        name: TransitionName,
        values: Mapping[str, Any],
        *,
        reason: str | None = None,
        shielded: bool = False,
        retry_for: float = 0.0,
    ) -> list[ApprovalRow]:
        """Execute a transition of one call as a transaction; returns the row if it changed.

        ``values`` may hold ``audit_by`` and ``audit_via``.
        """
        with self._in_doubt(values["its_user"]):
            rows = await self._database.execute(
                self._prepared[name],
                {**NO_AUTHOR, **values, "audit_reason": reason},
                shielded=shielded,
                retry_for=retry_for,
            )
        changed = [row_of(row) for row in rows]
        self._publish(changed)
        return changed

    async def transact(self, work: Callable[[Connection], _T], *, user: str) -> _T:
        """Run ``work``, which may call `execute_in` for calls of one user, in a transaction."""

        def collect(connection: Connection) -> tuple[_T, list[ApprovalRow]]:
            changed: list[ApprovalRow] = []
            connection.info[_CHANGED] = changed
            return work(connection), changed

        with self._in_doubt(user):
            result, changed = await self._database.write(collect)
        self._publish(changed)
        return result

    def execute_in(
        self,
        connection: Connection,
        name: TransitionName,
        values: Mapping[str, Any],
        *,
        reason: str | None = None,
    ) -> list[ApprovalRow]:
        """Execute a transition within `transact`; returns the rows that changed, oldest first.

        ``values`` may hold ``audit_by`` and ``audit_via``.
        """
        who = {key: values.get(key) for key in NO_AUTHOR}
        audited = {**self._database.clock_values(), **who, "audit_reason": reason}
        result = connection.execute(self._statements[name], {**values, **audited})
        rows = [row_of(row._asdict()) for row in result]
        if not self._is_single_statement:
            for row in rows:
                connection.execute(AUDIT_ROW, {**key_values(row.key), **audited})
        rows.sort(key=lambda row: (row.requested_at, row.key))
        connection.info[_CHANGED].extend(rows)
        return rows

    def note_in(self, connection: Connection, row: ApprovalRow) -> None:
        """Publish, once the transaction commits, a row that changed without a transition."""
        connection.info[_CHANGED].append(row)

    def _publish(self, changed: Sequence[ApprovalRow]) -> None:
        """Publish the last state of each row that a commit has changed.

        Its user is informed, and the people and the holders of the roles that its rule names.
        """
        last = {row.key: row for row in changed}.values()
        if self._changed is not None:
            self._changed(last)
        if self._events is None:
            return
        for row in last:
            event = approval_changed(row.key.chat, row.approval_id, row.tool, row.state)
            topics = [row.key.user]
            if row.approvers is not None:
                topics += [*row.approvers.users, *map(role_topic, row.approvers.roles)]
            for topic in dict.fromkeys(topics):
                self._events.publish(topic, event)

    @contextmanager
    def _in_doubt(self, user: str) -> Iterator[None]:
        """Reset the user's events if it is not known whether a change was committed."""
        try:
            yield
        except (StoreError, CancelledError):
            if self._events is not None:
                self._events.publish(user, RESET)
            raise
