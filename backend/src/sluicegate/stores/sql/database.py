"""The database of a server, which ADK's session service and our own tables share."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from sqlalchemy import column, inspect, literal, make_url, select, table, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from sluicegate.errors import ConfigurationError, StoreError, StoreUnavailable
from sluicegate.stores.sql.prepared import PreparedStatement
from sluicegate.stores.sql.schema import DatabaseSeconds, create_tables
from sluicegate.stores.sql.sqlite import SqliteFile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from google.adk.sessions.database_session_service import DatabaseSessionService
    from sqlalchemy import URL, ColumnElement, Connection, Executable, Table
    from sqlalchemy.ext.asyncio import AsyncEngine

    from sluicegate.stores.sql.prepared import Row

_T = TypeVar("_T")

SQLITE: Final = "sqlite+aiosqlite"
POSTGRESQL: Final = "postgresql+asyncpg"
BUSY_SECONDS: Final = 4.0
"""How long a statement waits for another writer of a file; whoever asked is told within 5 s."""

_PAUSE: Final = 0.5
"""Seconds between two tries of a write that bears a repetition."""

_SHAPES: Final = f"write {SQLITE}:///PATH or {POSTGRESQL}://USER@HOST/DATABASE"

_VERSIONS: Final = table("adk_internal_metadata", column("key"))
"""Where ADK notes the version of its tables."""

_INSERTS: Final[dict[str, type[postgresql.Insert] | type[sqlite.Insert]]] = {
    "postgresql": postgresql.Insert,
    "sqlite": sqlite.Insert,
}


class Transactions(Protocol):
    """What runs transactions: one file of SQLite, or a PostgreSQL server."""

    @property
    def sessions(self) -> AsyncEngine:
        """The engine of ADK's session service."""

    @property
    def is_exclusive(self) -> bool:
        """Whether no other process can be on this database."""

    def making_tables(self) -> AbstractAsyncContextManager[None]:
        """Keep other processes from making tables meanwhile."""

    async def write(self, work: Callable[[Connection], _T], *, is_lasting: bool = False) -> _T:
        """Run ``work`` in a transaction that commits unless it raises."""

    async def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run ``work`` in a transaction that only reads."""

    async def execute(
        self, prepared: PreparedStatement, values: Mapping[str, Any], *, is_lasting: bool = False
    ) -> list[Row]:
        """Run a statement as a transaction; returns its rows."""

    async def fetch(self, prepared: PreparedStatement, values: Mapping[str, Any]) -> list[Row]:
        """Run a statement that only reads; returns its rows."""

    async def check(self) -> None:
        """Ask the database something, over the connections of the sessions and over our own."""

    def failure(self, error: Exception) -> StoreError | None:
        """Return what an error of the database means; None for one that is none of its own."""

    async def close(self) -> None:
        """Close every connection; a second call does nothing."""


class Database:
    """One database for ADK's session service, on the engine ``sessions``, and for our tables."""

    def __init__(
        self, transactions: Transactions, *, clock_offset: Callable[[], float] = lambda: 0.0
    ) -> None:
        """Take what runs the transactions; `open` makes it."""
        self._transactions = transactions
        self._clock_offset = clock_offset
        self.sessions = transactions.sessions
        self._trying: set[asyncio.Task[Any]] = set()
        self.is_exclusive = transactions.is_exclusive
        """Whether no other process can be on this database, so that old leases are void (A2)."""

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        exclusive: bool = True,
        clock_offset: Callable[[], float] = lambda: 0.0,
        busy_timeout: float = BUSY_SECONDS,
    ) -> Database:
        """Open the database of a URL: ``sqlite+aiosqlite:///chats.db`` or ``postgresql+asyncpg://…``.

        Our tables are created when they are missing; so are a SQLite file and its folders, for
        the user of the process alone. ``exclusive`` keeps every other process off a SQLite file;
        ``busy_timeout`` is how many seconds a statement on it waits for another writer.
        ``clock_offset`` is added to the database's clock, in seconds.

        Raises:
            ConfigurationError: the URL, the database or its tables cannot be used, or another
                process uses the file.
        """
        parsed = _parsed(url)
        transactions: Transactions
        if parsed.drivername == SQLITE:
            transactions = await SqliteFile.open(
                parsed, exclusive=exclusive, busy_timeout=busy_timeout
            )
        else:
            transactions = await _postgresql(parsed)
        database = cls(transactions, clock_offset=clock_offset)
        try:
            await database.write(create_tables)
        except StoreError as error:
            await database.close()
            raise ConfigurationError(
                f"The database {_named(parsed)} cannot be used: {str(error).rstrip('.')}."
            ) from error
        except BaseException:
            await database.close()
            raise
        return database

    async def make_tables_of(self, sessions: DatabaseSessionService) -> None:
        """Have ADK make its tables before anything else uses them.

        Raises:
            ConfigurationError: it cannot, or they are those of another version.
        """
        # ADK: the first calls of two processes make the tables at once, and one of them fails.
        try:
            async with self._transactions.making_tables():
                async with self.sessions.begin() as connection:
                    await connection.run_sync(_unmake)
                await sessions.prepare_tables()
        except (SQLAlchemyError, OSError, ValueError, StoreError) as error:
            raise ConfigurationError(
                f"ADK's tables cannot be made in the sessions' database ({type(error).__name__})."
            ) from error

    def now(self) -> ColumnElement[float]:
        """Return the database's clock as an SQL expression, seconds since the epoch."""
        return DatabaseSeconds() + literal(self._clock_offset())

    def clock(self) -> dict[str, float]:
        """What binds the clock of statements that are made once (`NOW`)."""
        return {"clock_ahead": self._clock_offset()}

    def insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """Return an INSERT that knows ON CONFLICT, in the database's dialect."""
        return _INSERTS[self.sessions.dialect.name](table)

    async def write(self, work: Callable[[Connection], _T], *, is_lasting: bool = False) -> _T:
        """Run ``work`` in a transaction that may write; it commits unless it raises.

        When the caller is cancelled the transaction is given up if it still can be; one that is
        lasting goes on to its end.

        Raises:
            StoreError: the database could not do it, and nothing has changed, unless the reply
                to the commit was lost.
            StoreUnavailable: that may be otherwise in a moment.
        """
        return await self._transactions.write(work, is_lasting=is_lasting)

    async def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run ``work`` in a transaction that only reads.

        Raises:
            StoreError: the database could not do it.
            StoreUnavailable: that may be otherwise in a moment.
        """
        return await self._transactions.read(work)

    def prepare(
        self, statement: Executable, *, then: PreparedStatement | None = None
    ) -> PreparedStatement:
        """Return a statement as `execute` and `fetch` take it."""
        return PreparedStatement(statement, self.sessions.dialect, then=then)

    async def execute(
        self,
        prepared: PreparedStatement,
        values: Mapping[str, Any],
        *,
        is_lasting: bool = False,
        patience: float = 0.0,
    ) -> list[Row]:
        """Run a statement as a transaction of its own; returns its rows.

        The clock is bound besides ``values``. For ``patience`` seconds it is tried again when the
        database does not answer, so it must bear to be done twice: a reply to a commit may be
        lost. Cancelled callers and errors are as with `write`.
        """
        bound = {**values, **self.clock()}
        if not patience:
            return await self._transactions.execute(prepared, bound, is_lasting=is_lasting)
        trying = asyncio.create_task(self._try(prepared, bound, patience))
        self._trying.add(trying)
        trying.add_done_callback(self._trying.discard)
        return await (asyncio.shield(trying) if is_lasting else trying)

    async def _try(
        self, prepared: PreparedStatement, bound: Mapping[str, Any], patience: float
    ) -> list[Row]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while True:
            try:
                return await self._transactions.execute(prepared, bound, is_lasting=True)
            except StoreUnavailable:
                if loop.time() + _PAUSE > deadline:
                    raise
            await asyncio.sleep(_PAUSE)

    async def fetch(self, prepared: PreparedStatement, values: Mapping[str, Any]) -> list[Row]:
        """Run a statement that only reads; returns its rows. Errors are as with `read`."""
        return await self._transactions.fetch(prepared, {**values, **self.clock()})

    async def check(self) -> None:
        """Find out whether the database answers, in less than 5 seconds.

        Connections that were lost are replaced, so no request has to find out.

        Raises:
            StoreError: it does not.
        """
        await self._transactions.check()

    def failure(self, error: Exception) -> StoreError | None:
        """Return what an error on ``sessions`` means; None for one that is not the database's."""
        return self._transactions.failure(error)

    async def close(self) -> None:
        """Close every connection and let others in; a second call does nothing."""
        if self._trying:
            await asyncio.wait(self._trying)
        await self._transactions.close()


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        # The text may hold a password, so the sentence does not repeat it.
        raise ConfigurationError(f"The sessions URL cannot be read; {_SHAPES}.") from None
    if parsed.drivername not in (SQLITE, POSTGRESQL):
        raise ConfigurationError(
            f"The sessions URL begins with {parsed.drivername}://, which is not supported; "
            f"{_SHAPES}."
        )
    return parsed


async def _postgresql(url: URL) -> Transactions:
    try:
        module = importlib.import_module("sluicegate.stores.sql.postgresql")
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise ConfigurationError(
            "A PostgreSQL database needs the package asyncpg; install it with "
            "pip install 'sluicegate[postgresql]'."
        ) from error
    opened: Transactions = await module.PostgresServer.open(url)
    return opened


def _named(url: URL) -> str:
    """Return the URL as a sentence may show it."""
    return url.database or "" if url.drivername == SQLITE else url.render_as_string()


def _unmake(connection: Connection) -> None:
    """Let ADK make its tables once more where a process died before it had noted their version."""
    # ADK: tables and version are two transactions, and it refuses tables without a version.
    made = inspect(connection).has_table(_VERSIONS.name)
    if made and connection.execute(select(_VERSIONS)).first() is None:
        connection.execute(text(f"DROP TABLE {_VERSIONS.name}"))
