"""What the sweep of approvals reads and takes while their chats are not used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select, update

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.stores.approvals.ledger_statements import WAITING
from sluicegate.stores.sql.schema import APPROVALS, OUTBOX

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sluicegate.stores.sql.database import Database

_C = APPROVALS.c


class SweepQueries:
    """The queries of the sweep for one app.

    Every method raises StoreError when the database fails.
    """

    def __init__(self, database: Database, app: str) -> None:
        self._database = database
        self._app = app

    async def claimed_chats(self, *, limit: int) -> list[ChatKey]:
        """Return chats with calls that are executing, or whose process has died meanwhile."""
        statement = (
            select(_C.user, _C.chat)
            .where(_C.app == self._app, _C.state == "executing")
            .distinct()
            .limit(limit)
        )
        return await self._database.read(
            lambda connection: [
                ChatKey(self._app, row.user, row.chat) for row in connection.execute(statement)
            ]
        )

    async def count_waiting(self) -> tuple[int, float]:
        """Return how many requests are pending, and the age of the oldest in seconds."""
        values = {"its_app": self._app, **self._database.clock_values()}

        def count(connection: Connection) -> tuple[int, float]:
            row = connection.execute(WAITING, values).one()
            return row.waiting, max(0.0, row.age or 0.0)

        return await self._database.read(count)

    async def count_undelivered(self) -> tuple[float, int]:
        """Return the age of the oldest undelivered event in seconds, and how many are dead."""
        app, waits = OUTBOX.c.app == self._app, OUTBOX.c.next_at.is_not(None)
        oldest = select(func.min(OUTBOX.c.at)).where(app, waits).scalar_subquery()
        dead = select(func.count()).where(app, ~waits).scalar_subquery()
        statement = select(self._database.now() - oldest, dead)

        def count(connection: Connection) -> tuple[float, int]:
            age, number = connection.execute(statement).one()
            return max(0.0, age or 0.0), number

        return await self._database.read(count)

    async def remind(self) -> int:
        """Take the reminders that are due, each once; returns how many.

        A trigger of the outbox writes the event of each.
        """
        now = self._database.now()
        due = update(APPROVALS).where(
            _C.app == self._app, _C.state == "requested", _C.remind_at <= now, _C.deadline > now
        )
        return await self._database.write(
            lambda connection: connection.execute(due.values(remind_at=None)).rowcount
        )
