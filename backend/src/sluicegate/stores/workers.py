"""Remote tool workers that have registered with one of several servers (S1-R23).

Their credentials are not among it: those lie in files alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqlalchemy import and_, delete, select

from sluicegate.stores.sql.schema import WORKERS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

    from sluicegate.stores.sql.database import Database

_C = WORKERS.c


class RegisteredWorker(NamedTuple):
    """A worker, where it is, and for how many seconds its lease still runs."""

    name: str
    url: str
    seconds: float


class SharedWorkers(Protocol):
    """The registrations that several servers share; a store that is away raises StoreError."""

    async def put(self, name: str, url: str, *, seconds: float) -> None:
        """Begin or renew the lease of a worker."""

    async def remove(self, name: str) -> bool:
        """End the lease of a worker; False when it had none."""

    async def all(self) -> list[RegisteredWorker]:
        """Return the workers whose lease runs, by name."""


class DatabaseWorkers:
    """The workers of one application in the sessions' database (the port is `SharedWorkers`)."""

    def __init__(self, database: Database, app: str) -> None:
        """Take the database whose tables are there."""
        self._database = database
        self._app = app

    async def put(self, name: str, url: str, *, seconds: float) -> None:
        """Begin or renew the lease of a worker."""
        new = self._database.insert(WORKERS).values(
            app=self._app, name=name, url=url, until=self._database.now() + seconds
        )
        statement = new.on_conflict_do_update(
            index_elements=[_C.app, _C.name],
            set_={"url": new.excluded.url, "until": new.excluded.until},
        )
        await self._database.write(lambda connection: connection.execute(statement).rowcount)

    async def remove(self, name: str) -> bool:
        """End the lease of a worker; False when it had none."""
        statement = delete(WORKERS).where(self._runs(), _C.name == name)
        changed = await self._database.write(
            lambda connection: connection.execute(statement).rowcount
        )
        return bool(changed)

    async def all(self) -> list[RegisteredWorker]:
        """Return the workers whose lease runs, by name."""
        left = (_C.until - self._database.now()).label("seconds")
        statement = select(_C.name, _C.url, left).where(self._runs()).order_by(_C.name)

        def find(connection: Connection) -> list[RegisteredWorker]:
            return [
                RegisteredWorker(row.name, row.url, row.seconds)
                for row in connection.execute(statement)
            ]

        return await self._database.read(find)

    def _runs(self) -> ColumnElement[bool]:
        return and_(_C.app == self._app, _C.until > self._database.now())
