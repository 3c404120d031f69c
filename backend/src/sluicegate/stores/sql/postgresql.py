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
from sluicegate.stores.sql.connection_thread import words_of
from sluicegate.stores.sql.schema import LOCK, DatabaseSeconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from sqlalchemy import URL, Connection
    from sqlalchemy.ext.asyncio import AsyncEngine

    from sluicegate.stores.sql.prepared import PreparedStatement, Row

_T = TypeVar("_T")

CONNECT_SECONDS: Final = 3.0
POOL_SECONDS: Final = 3.0
COMMAND_SECONDS: Final = 4.0
ANSWER_SECONDS: Final = 4.0
"""How long a transaction of ours may take in all; a server that is gone must be told in time."""

CLOCK_TOLERANCE: Final = 1.0
"""Seconds by which this machine's clock may be off: ADK orders events by it."""

_SESSION_CONNECTIONS: Final = 10
_OWN_CONNECTIONS: Final = 3
_STATEMENT_CONNECTIONS: Final = 5
_LASTING: Final = {"synchronous_commit": "on"}
"""What we have committed must outlive a power cut, whatever the server's default is."""

_OF_SQLALCHEMY: Final = frozenset(
    {"async_creator_fn", "prepared_statement_cache_size", "prepared_statement_name_func"}
)
"""Options in a URL that the driver itself does not know."""

_UNREACHABLE: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InterfaceError,
    OSError,
    TimeoutError,
    PoolTimeout,
)


_OWN_ERRORS: Final = (SQLAlchemyError, asyncpg.PostgresError, UnicodeError, *_UNREACHABLE)


class PostgresServer:
    """Transactions on a PostgreSQL server (the port is `Transactions`).

    ADK's sessions, our transactions and our statements have a pool of connections each, so that a
    claim never waits for long conversations that are being loaded.
    """

    is_exclusive: Final = False

    def __init__(self, url: URL) -> None:
        """Take the server and database; nothing connects to it yet."""
        self.sessions = _engine(url, _SESSION_CONNECTIONS, {})
        self._own = _engine(url, _OWN_CONNECTIONS, _LASTING)
        self._statements = _pool(self._own, url)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    @classmethod
    async def open(cls, url: URL) -> PostgresServer:
        """Connect, and compare the clocks.

        Raises:
            ConfigurationError: the server cannot be reached or lets nobody in, or its clock and
                this machine's differ.
        """
        server = cls(url)
        name = url.render_as_string()
        try:
            await server._statements
            before = time.time()
            now = await server.read(lambda connection: connection.scalar(select(DatabaseSeconds())))
            after = time.time()
        except StoreError as error:
            await server.close()
            words = str(error).rstrip(".")
            raise ConfigurationError(f"The database {name} cannot be used: {words}.") from error
        except BaseException:
            await server.close()
            raise
        assert now is not None
        if not before - CLOCK_TOLERANCE <= now <= after + CLOCK_TOLERANCE:
            await server.close()
            raise ConfigurationError(
                f"The clock of this machine and that of the database {name} are "
                f"{abs(now - after):.1f} seconds apart; set both by the same time server."
            )
        return server

    @asynccontextmanager
    async def making_tables(self) -> AsyncIterator[None]:
        """Keep other processes from making tables meanwhile."""
        async with self._own.begin() as connection:
            await connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
            yield

    async def write(self, work: Callable[[Connection], _T], *, is_lasting: bool = False) -> _T:
        """Run ``work`` in a transaction that commits unless it raises."""

        async def transact() -> _T:
            async with self._own.begin() as connection:
                return await connection.run_sync(work)

        return await self._run(transact(), is_lasting=is_lasting)

    async def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run ``work``, each of its statements on its own."""

        async def each() -> _T:
            async with self._own.connect() as plain:
                # One round trip in place of three.
                connection = await plain.execution_options(isolation_level="AUTOCOMMIT")
                return await connection.run_sync(work)

        return await self._run(each(), is_lasting=False)

    async def execute(
        self, prepared: PreparedStatement, values: Mapping[str, Any], *, is_lasting: bool = False
    ) -> list[Row]:
        """Run a statement, which is a transaction by itself; returns its rows."""
        assert prepared.then is None, "two statements would be two transactions"
        work = self._fetch(prepared.sql, prepared.arguments(values))
        return await self._run(work, is_lasting=is_lasting)

    async def fetch(self, prepared: PreparedStatement, values: Mapping[str, Any]) -> list[Row]:
        """Run a statement that only reads; returns its rows."""
        return await self.execute(prepared, values)

    async def _fetch(self, sql: str, arguments: tuple[Any, ...]) -> list[Row]:
        connection = await self._statements.acquire()
        try:
            return [dict(row) for row in await connection.fetch(sql, *arguments)]
        finally:
            # Whoever asked need not wait until the connection is put back.
            self._begin(self._statements.release(connection))

    async def check(self) -> None:
        """Ask something over a connection of each pool; a lost one takes its pool with it."""
        asking = (_ask(self.sessions), _ask(self._own), self._fetch("SELECT 1", ()))
        await asyncio.gather(*(self._run(question, is_lasting=False) for question in asking))

    def failure(self, error: Exception) -> StoreError | None:
        """Return what an error of the database means; None for one that is none of its own."""
        if isinstance(error, _OWN_ERRORS):
            return _failure_of(error)
        return None

    async def close(self) -> None:
        """Close every connection; a second call does nothing."""
        self._closed = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=ANSWER_SECONDS)
        await self.sessions.dispose()
        await self._own.dispose()
        self._statements.terminate()

    async def _run(self, work: Coroutine[Any, Any, _T], *, is_lasting: bool) -> _T:
        """Wait for ``work``, but not for ever: a dead server also keeps what would clean up."""
        if self._closed:
            work.close()
            raise StoreError("the database is closed")
        task = self._begin(work)
        try:
            await asyncio.wait([task], timeout=ANSWER_SECONDS)
        except asyncio.CancelledError:
            if not is_lasting:
                task.cancel()
            raise
        if not task.done():
            task.cancel()
            raise StoreUnavailable("the database does not answer")
        try:
            return task.result()
        except Exception as error:
            failure = self.failure(error)
            if failure is None:
                raise
            raise failure from error

    def _begin(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Nobody may be there any more to hear of it.
            task.exception()


async def _ask(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(select(1))


def _failure_of(error: Exception) -> StoreError:
    """Say what went wrong without the statement and its parameters."""
    reason = error
    if isinstance(error, DBAPIError) and isinstance(error.orig, Exception):
        reason = error.orig.__cause__ if isinstance(error.orig.__cause__, Exception) else error.orig
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    lost = lost or isinstance(error, OperationalError | InterfaceError)
    words = _words_of(reason)
    if lost or isinstance(reason, _UNREACHABLE):
        return StoreUnavailable(words or type(reason).__name__)
    return StoreError(words or type(reason).__name__)


def _words_of(reason: Exception) -> str:
    """What the server or the driver said, without the values that both may repeat."""
    if isinstance(reason, SQLAlchemyError):
        return words_of(reason)
    if isinstance(reason, asyncpg.DataError):
        return ""
    # Details follow, and they hold the values of a row.
    return str(reason.args[0]) if isinstance(reason, asyncpg.PostgresError) else str(reason)


def _engine(url: URL, connections: int, settings: Mapping[str, str]) -> AsyncEngine:
    return create_async_engine(
        url,
        # Parameters are what people say and what tools get: no log may show them.
        hide_parameters=True,
        isolation_level="READ COMMITTED",
        pool_size=connections,
        max_overflow=0,
        pool_timeout=POOL_SECONDS,
        # The last one used is the one that surely lives; the others are closed when they rest.
        pool_use_lifo=True,
        pool_recycle=1800,
        connect_args=_connecting(settings),
    )


def _pool(engine: AsyncEngine, url: URL) -> asyncpg.Pool:
    """The driver's own pool, which connects as an engine does; it has no connection yet."""
    _, options = engine.dialect.create_connect_args(url)
    ours = {name: value for name, value in options.items() if name not in _OF_SQLALCHEMY}
    return asyncpg.create_pool(
        min_size=0,
        max_size=_STATEMENT_CONNECTIONS,
        # A statement leaves nothing behind that would have to be taken back.
        reset=_as_it_is,
        **ours,
        **_connecting(_LASTING),
    )


async def _as_it_is(_connection: object) -> None: ...


def _connecting(settings: Mapping[str, str]) -> dict[str, Any]:
    return {
        "timeout": CONNECT_SECONDS,
        "command_timeout": COMMAND_SECONDS,
        "server_settings": {
            "application_name": "sluicegate",
            "idle_in_transaction_session_timeout": "10000",
            **settings,
        },
    }
