"""The database of a server, which ADK's session service and our own tables share."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from sqlalchemy import column, inspect, literal, make_url, select, table, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from sluicegate.errors import ConfigurationError, StoreError, StoreUnavailable
from sluicegate.stores.sql.compiled_statements import CompiledStatement
from sluicegate.stores.sql.create_or_upgrade_tables import create_or_upgrade_tables
from sluicegate.stores.sql.database_clock import DatabaseSeconds
from sluicegate.stores.sql.sqlite import SqliteFile
from sluicegate.stores.sql.time_limits import DatabaseTimings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from google.adk.sessions.database_session_service import DatabaseSessionService
    from sqlalchemy import URL, ColumnElement, Connection, Executable, Table
    from sqlalchemy.ext.asyncio import AsyncEngine

    from sluicegate.stores.sql.compiled_statements import Row

_T = TypeVar("_T")

SQLITE: Final = "sqlite+aiosqlite"
POSTGRESQL: Final = "postgresql+asyncpg"
_FORMS: Final = f"write {SQLITE}:///PATH or {POSTGRESQL}://USER@HOST/DATABASE"

_VERSIONS: Final = table("adk_internal_metadata", column("key"))
"""Where ADK stores the version of its tables."""

INSERTS: Final[dict[str, type[postgresql.Insert] | type[sqlite.Insert]]] = {
    "postgresql": postgresql.Insert,
    "sqlite": sqlite.Insert,
}
"""INSERT with ON CONFLICT, by dialect."""


class Transactions(Protocol):
    """The port of a database: a SQLite file or a PostgreSQL server.

    Methods raise StoreError when the database fails, StoreUnavailable when that may pass.
    """

    @property
    def sessions(self) -> AsyncEngine:
        """The engine of ADK's session service."""

    @property
    def is_exclusive(self) -> bool:
        """Whether no other process can use this database."""

    def table_creation(self) -> AbstractAsyncContextManager[None]:
        """Keep other processes from creating tables meanwhile."""

    async def write(self, work: Callable[[Connection], _T], *, shielded: bool = False) -> _T:
        """Run ``work`` in a transaction that commits unless it raises."""

    async def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run ``work`` in a transaction that only reads."""

    async def execute(
        self, prepared: CompiledStatement, values: Mapping[str, Any], *, shielded: bool = False
    ) -> list[Row]:
        """Execute a statement as a transaction; returns its rows."""

    async def fetch(self, prepared: CompiledStatement, values: Mapping[str, Any]) -> list[Row]:
        """Execute a statement that only reads; returns its rows."""

    async def check(self) -> None:
        """Query the database over the connections of the sessions and over our own."""

    def store_error(self, error: Exception) -> StoreError | None:
        """Map an error of the database; None for any other error."""

    async def close(self) -> None:
        """Close every connection. Idempotent."""


class Database:
    """One database for ADK's session service, on the engine ``sessions``, and for our tables.

    Args:
        transactions: The SQLite file or PostgreSQL server; `open` connects to it.
        clock_offset: Seconds that are added to the database's clock.
        timings: The time limits.
    """

    def __init__(
        self,
        transactions: Transactions,
        *,
        clock_offset: Callable[[], float] = lambda: 0.0,
        timings: DatabaseTimings | None = None,
    ) -> None:
        self._transactions = transactions
        self._clock_offset = clock_offset
        self._timings = timings or DatabaseTimings()
        self._retrying: set[asyncio.Task[Any]] = set()
        self.sessions = transactions.sessions
        self.is_exclusive = transactions.is_exclusive
        """Whether no other process can use this database, so that old leases are void (A2)."""

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        exclusive: bool = True,
        clock_offset: Callable[[], float] = lambda: 0.0,
        timings: DatabaseTimings | None = None,
    ) -> Database:
        """Open the database of a URL: ``sqlite+aiosqlite:///chats.db`` or ``postgresql+asyncpg://…``.

        Missing tables are created; so are a SQLite file and its folders, private to the user of
        the process. ``exclusive`` keeps every other process out of a SQLite file.

        Raises:
            ConfigurationError: the URL, the database or its tables cannot be used, or another
                process uses the file.
        """
        parsed = _parse(url)
        timings = timings or DatabaseTimings()
        transactions: Transactions
        if parsed.drivername == SQLITE:
            transactions = await SqliteFile.open(
                parsed, exclusive=exclusive, busy_timeout=timings.busy
            )
        else:
            transactions = await _open_postgresql(parsed, timings)
        database = cls(transactions, clock_offset=clock_offset, timings=timings)
        try:
            await database.write(create_or_upgrade_tables)
        except StoreError as error:
            await database.close()
            raise ConfigurationError(
                f"The database {_printable(parsed)} cannot be used: {str(error).rstrip('.')}."
            ) from error
        except BaseException:
            await database.close()
            raise
        return database

    async def create_session_tables(self, sessions: DatabaseSessionService) -> None:
        """Let ADK create its tables before anything else uses them.

        Raises:
            ConfigurationError: it cannot, or they belong to another version.
        """
        # ADK: the first calls of two processes create the tables at once, and one of them fails.
        try:
            async with self._transactions.table_creation():
                async with self.sessions.begin() as connection:
                    await connection.run_sync(_drop_empty_versions)
                await sessions.prepare_tables()
        except (SQLAlchemyError, OSError, ValueError, StoreError) as error:
            raise ConfigurationError(
                f"ADK's tables cannot be made in the sessions' database ({type(error).__name__})."
            ) from error

    def now(self) -> ColumnElement[float]:
        """Return the database's clock as an SQL expression, in seconds since the epoch."""
        return DatabaseSeconds() + literal(self._clock_offset())

    def clock_values(self) -> dict[str, float]:
        """Return the values of `NOW` in statements that are built once."""
        return {"clock_ahead": self._clock_offset()}

    def insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """Return an INSERT with ON CONFLICT, in the database's dialect."""
        return INSERTS[self.sessions.dialect.name](table)

    async def write(self, work: Callable[[Connection], _T], *, shielded: bool = False) -> _T:
        """Run ``work`` in a transaction that may write; it commits unless it raises.

        When the caller is cancelled, a transaction that has not committed yet is rolled back;
        a shielded one continues to its end.

        Raises:
            StoreError: the database failed, and nothing has changed, unless the reply to the
                commit was lost.
            StoreUnavailable: as StoreError, and a retry may succeed.
        """
        return await self._transactions.write(work, shielded=shielded)

    async def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run ``work`` in a transaction that only reads.

        Raises:
            StoreError: the database failed.
            StoreUnavailable: as StoreError, and a retry may succeed.
        """
        return await self._transactions.read(work)

    def prepare(
        self, statement: Executable, *, then: CompiledStatement | None = None
    ) -> CompiledStatement:
        """Compile a statement for `execute` and `fetch`."""
        return CompiledStatement(statement, self.sessions.dialect, then=then)

    async def execute(
        self,
        prepared: CompiledStatement,
        values: Mapping[str, Any],
        *,
        shielded: bool = False,
        retry_for: float = 0.0,
    ) -> list[Row]:
        """Execute a statement as a transaction of its own; returns its rows.

        The clock is bound besides ``values``. While the database is unavailable the statement is
        retried for ``retry_for`` seconds; it must be idempotent, since the reply to a commit may
        be lost. Cancellation and errors are those of `write`.
        """
        bound = {**values, **self.clock_values()}
        if not retry_for:
            return await self._transactions.execute(prepared, bound, shielded=shielded)
        retrying = asyncio.create_task(self._retry(prepared, bound, retry_for))
        self._retrying.add(retrying)
        retrying.add_done_callback(self._retrying.discard)
        return await (asyncio.shield(retrying) if shielded else retrying)

    async def _retry(
        self, prepared: CompiledStatement, bound: Mapping[str, Any], seconds: float
    ) -> list[Row]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            try:
                return await self._transactions.execute(prepared, bound, shielded=True)
            except StoreUnavailable:
                if loop.time() + self._timings.retry_pause > deadline:
                    raise
            await asyncio.sleep(self._timings.retry_pause)

    async def fetch(self, prepared: CompiledStatement, values: Mapping[str, Any]) -> list[Row]:
        """Execute a statement that only reads; returns its rows. Errors are those of `read`."""
        return await self._transactions.fetch(prepared, {**values, **self.clock_values()})

    async def check(self) -> None:
        """Check that the database responds, in less than 5 seconds.

        Lost connections are replaced, so that no request fails because of one.

        Raises:
            StoreError: it does not.
        """
        await self._transactions.check()

    def store_error(self, error: Exception) -> StoreError | None:
        """Map an error of the engine ``sessions``; None for an error of anything else."""
        return self._transactions.store_error(error)

    async def close(self) -> None:
        """Finish retries, close every connection and release the file. Idempotent."""
        if self._retrying:
            await asyncio.wait(self._retrying)
        await self._transactions.close()


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        # The URL may contain a password, so the message does not repeat it.
        raise ConfigurationError(f"The sessions URL cannot be read; {_FORMS}.") from None
    if parsed.drivername not in (SQLITE, POSTGRESQL):
        raise ConfigurationError(
            f"The sessions URL begins with {parsed.drivername}://, which is not supported; "
            f"{_FORMS}."
        )
    return parsed


async def _open_postgresql(url: URL, timings: DatabaseTimings) -> Transactions:
    try:
        module = importlib.import_module("sluicegate.stores.sql.postgresql")
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise ConfigurationError(
            "A PostgreSQL database needs the package asyncpg; install it with pip install asyncpg."
        ) from error
    server: Transactions = await module.PostgresServer.open(url, timings)
    return server


def _printable(url: URL) -> str:
    """Return the URL without its password."""
    return url.database or "" if url.drivername == SQLITE else url.render_as_string()


def _drop_empty_versions(connection: Connection) -> None:
    """Drop ADK's table of versions if a process died before it stored the version."""
    # ADK: tables and version are two transactions, and it refuses tables without a version.
    exists = inspect(connection).has_table(_VERSIONS.name)
    if exists and connection.execute(select(_VERSIONS)).first() is None:
        connection.execute(text(f"DROP TABLE {_VERSIONS.name}"))
