"""A database on a PostgreSQL server, which several processes share."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import asyncpg
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import create_async_engine

from sluicegate.errors import ConfigurationError, StoreError, StoreUnavailable
from sluicegate.stores.sql.connection_thread import message_of
from sluicegate.stores.sql.database_clock import DatabaseSeconds
from sluicegate.stores.sql.schema import LOCK
from sluicegate.stores.sql.time_limits import DatabaseTimings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from sqlalchemy import URL, Connection
    from sqlalchemy.ext.asyncio import AsyncEngine

    from sluicegate.stores.sql.compiled_statements import CompiledStatement, Row

_T = TypeVar("_T")

CLOCK_TOLERANCE: Final = 1.0
"""Seconds by which this machine's clock may differ: ADK orders events by it."""

SESSION_CONNECTIONS: Final = 10
TRANSACTION_CONNECTIONS: Final = 3
STATEMENT_CONNECTIONS: Final = 5
"""Connections of a process: of ADK's sessions, our transactions and our single statements."""

_DURABLE: Final = {"synchronous_commit": "on"}
"""Our commits must survive a power failure, regardless of the server's default."""

_OPTIONS_OF_SQLALCHEMY: Final = frozenset(
    {"async_creator_fn", "prepared_statement_cache_size", "prepared_statement_name_func"}
)
"""Options in a URL that the driver itself does not accept."""

_UNAVAILABLE: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InterfaceError,
    OSError,
    TimeoutError,
    PoolTimeout,
)
_POSTGRESQL_ERRORS: Final = (SQLAlchemyError, asyncpg.PostgresError, UnicodeError, *_UNAVAILABLE)


class PostgresServer:
    """Transactions on a PostgreSQL server (implements `Transactions`).

    ADK's sessions, our transactions and our statements have a pool of connections each, so that
    a claim never waits for long conversations to be loaded. The constructor does not connect.
    """

    is_exclusive: Final = False

    def __init__(self, url: URL, timings: DatabaseTimings | None = None) -> None:
        self._timings = timings or DatabaseTimings()
        self.sessions = self._engine(url, SESSION_CONNECTIONS, {})
        self._transactions = self._engine(url, TRANSACTION_CONNECTIONS, _DURABLE)
        self._statements = self._pool(url)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    @classmethod
    async def open(
        cls,
        url: URL,
        timings: DatabaseTimings | None = None,
        *,
        wall_clock: Callable[[], float] = time.time,
    ) -> PostgresServer:
        """Connect, and compare the server's clock with the ``wall_clock`` of this machine.

        Raises:
            ConfigurationError: the server cannot be reached or refuses the user, or the clocks
                differ.
        """
        server = cls(url, timings)
        name = url.render_as_string()
        try:
            await server._statements
            before = wall_clock()
            now = await server.read(lambda connection: connection.scalar(select(DatabaseSeconds())))
            after = wall_clock()
        except StoreError as error:
            await server.close()
            message = str(error).rstrip(".")
            raise ConfigurationError(f"The database {name} cannot be used: {message}.") from error
        except BaseException:
            await server.close()
            raise
        assert now is not None
        if not clocks_agree(before, now, after):
            await server.close()
            raise ConfigurationError(
                f"The clock of this machine and that of the database {name} are "
                f"{abs(now - after):.1f} seconds apart; set both by the same time server."
            )
        return server

    @asynccontextmanager
    async def table_creation(self) -> AsyncIterator[None]:
        """Hold the lock under which one process at a time creates tables."""
        async with self._transactions.begin() as connection:
            await connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
            yield

    async def write(self, work: Callable[[Connection], _T], *, shielded: bool = False) -> _T:
        """Run ``work`` in a transaction that commits unless it raises."""

        async def transact() -> _T:
            async with self._transactions.begin() as connection:
                return await connection.run_sync(work)

        return await self._run(transact(), shielded=shielded)

    async def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run ``work`` with each of its statements in a transaction of its own."""

        async def transact() -> _T:
            async with self._transactions.connect() as connection:
                # One round trip instead of three.
                await connection.execution_options(isolation_level="AUTOCOMMIT")
                return await connection.run_sync(work)

        return await self._run(transact())

    async def execute(
        self, prepared: CompiledStatement, values: Mapping[str, Any], *, shielded: bool = False
    ) -> list[Row]:
        """Execute a statement, which is a transaction by itself; returns its rows."""
        assert prepared.then is None, "two statements would be two transactions"
        work = self._fetch(prepared.sql, prepared.arguments(values))
        return await self._run(work, shielded=shielded)

    async def fetch(self, prepared: CompiledStatement, values: Mapping[str, Any]) -> list[Row]:
        """Execute a statement that only reads; returns its rows."""
        return await self.execute(prepared, values)

    async def _fetch(self, sql: str, arguments: tuple[Any, ...]) -> list[Row]:
        async with asyncio.timeout(self._timings.pool):
            connection = await self._statements.acquire()
        try:
            return [dict(row) for row in await connection.fetch(sql, *arguments)]
        finally:
            # The caller need not wait until the connection is released.
            self._start(self._statements.release(connection))

    async def check(self) -> None:
        """Query over a connection of each pool; a pool replaces its lost connections."""
        queries = (
            _query(self.sessions),
            _query(self._transactions),
            self._fetch("SELECT 1", ()),
        )
        await asyncio.gather(*(self._run(query) for query in queries))

    def store_error(self, error: Exception) -> StoreError | None:
        """Map an error of the database; None for any other error."""
        return _store_error(error) if isinstance(error, _POSTGRESQL_ERRORS) else None

    async def close(self) -> None:
        """Finish pending transactions and close every connection. Idempotent."""
        self._closed = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._timings.response)
        await self.sessions.dispose()
        await self._transactions.dispose()
        self._statements.terminate()

    async def _run(self, work: Coroutine[Any, Any, _T], *, shielded: bool = False) -> _T:
        """Await ``work`` up to the limit: on a dead server its cleanup hangs, too."""
        if self._closed:
            work.close()
            raise StoreError("the database is closed")
        task = self._start(work)
        try:
            await asyncio.wait([task], timeout=self._timings.response)
        except asyncio.CancelledError:
            if not shielded:
                task.cancel()
            raise
        if not task.done():
            task.cancel()
            raise StoreUnavailable("the database does not answer")
        try:
            return task.result()
        except Exception as error:
            failure = self.store_error(error)
            if failure is None:
                raise
            raise failure from error

    def _start(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # The caller may be gone; an exception that is never retrieved would be logged.
            task.exception()

    def _engine(self, url: URL, connections: int, settings: Mapping[str, str]) -> AsyncEngine:
        return create_async_engine(
            url,
            # Parameters hold messages and tool arguments, which no log may contain.
            hide_parameters=True,
            isolation_level="READ COMMITTED",
            pool_size=connections,
            max_overflow=0,
            pool_timeout=self._timings.pool,
            # The connection used last is the one most likely alive; idle ones are closed.
            pool_use_lifo=True,
            pool_recycle=1800,
            connect_args=self._connection_options(settings),
        )

    def _pool(self, url: URL) -> asyncpg.Pool:
        """Create the driver's own pool, which connects as an engine does, on demand."""
        _, options = self._transactions.dialect.create_connect_args(url)
        return asyncpg.create_pool(
            min_size=0,
            max_size=STATEMENT_CONNECTIONS,
            # A single statement leaves no state to reset.
            reset=_keep_state,
            **{
                name: value for name, value in options.items() if name not in _OPTIONS_OF_SQLALCHEMY
            },
            **self._connection_options(_DURABLE),
        )

    def _connection_options(self, settings: Mapping[str, str]) -> dict[str, Any]:
        return {
            "timeout": self._timings.connect,
            "command_timeout": self._timings.command,
            "server_settings": {
                "application_name": "sluicegate",
                "idle_in_transaction_session_timeout": "10000",
                **settings,
            },
        }


def clocks_agree(before: float, now: float, after: float) -> bool:
    """Whether the server's time ``now`` was read between two times of this machine."""
    return before - CLOCK_TOLERANCE <= now <= after + CLOCK_TOLERANCE


async def _query(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(select(1))


async def _keep_state(_connection: object) -> None: ...


def _store_error(error: Exception) -> StoreError:
    """Map an error, without the statement and its parameters."""
    cause = error
    if isinstance(error, DBAPIError) and isinstance(error.orig, Exception):
        cause = error.orig.__cause__ if isinstance(error.orig.__cause__, Exception) else error.orig
    is_lost = isinstance(error, DBAPIError) and error.connection_invalidated
    is_lost = is_lost or isinstance(error, OperationalError | InterfaceError)
    message = _message_of(cause) or type(cause).__name__
    if is_lost or isinstance(cause, _UNAVAILABLE):
        return StoreUnavailable(message)
    return StoreError(message)


def _message_of(cause: Exception) -> str:
    """Return the message of the server or the driver, without the values that it may repeat."""
    if isinstance(cause, SQLAlchemyError):
        return message_of(cause)
    if isinstance(cause, asyncpg.DataError):
        return ""
    # Details follow, and they hold the values of a row.
    return str(cause.args[0]) if isinstance(cause, asyncpg.PostgresError) else str(cause)
