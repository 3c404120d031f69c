"""Registrations of remote tool workers, shared by several servers (S1-R23).

Credentials of workers are stored in files only, never in the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, delete, select

from sluicegate.stores.sql.schema import WORKERS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, UpdateBase

    from sluicegate.stores.sql.database import Database

_C = WORKERS.c


class RegisteredWorker(NamedTuple):
    """A worker, its URL and the remaining seconds of its lease."""

    name: str
    url: str
    seconds: float


class WorkerRegistrations:
    """The registered workers of one application in the sessions' database.

    Every method raises StoreError when the database fails.
    """

    def __init__(self, database: Database, app: str) -> None:
        self._database = database
        self._app = app

    async def put(self, name: str, url: str, *, seconds: float) -> None:
        """Register a worker or renew its lease."""
        new = self._database.insert(WORKERS).values(
            app=self._app, name=name, url=url, until=self._database.now() + seconds
        )
        await self._execute(
            new.on_conflict_do_update(
                index_elements=[_C.app, _C.name],
                set_={"url": new.excluded.url, "until": new.excluded.until},
            )
        )

    async def remove(self, name: str) -> bool:
        """Remove a worker; False when it was not registered."""
        return await self._execute(delete(WORKERS).where(self._is_current(), _C.name == name))

    async def all(self) -> list[RegisteredWorker]:
        """Return the workers with a current lease, by name."""
        remaining = (_C.until - self._database.now()).label("seconds")
        statement = select(_C.name, _C.url, remaining).where(self._is_current()).order_by(_C.name)

        def read(connection: Connection) -> list[RegisteredWorker]:
            return [
                RegisteredWorker(row.name, row.url, row.seconds)
                for row in connection.execute(statement)
            ]

        return await self._database.read(read)

    async def _execute(self, statement: UpdateBase) -> bool:
        return bool(
            await self._database.write(lambda connection: connection.execute(statement).rowcount)
        )

    def _is_current(self) -> ColumnElement[bool]:
        return and_(_C.app == self._app, _C.until > self._database.now())
