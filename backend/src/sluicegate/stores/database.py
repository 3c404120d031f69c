"""The database of a server: one SQLite file, which ADK's session service and our tables share."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from sqlalchemy import URL, event, literal, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from sluicegate.errors import ConfigurationError, StoreError
from sluicegate.stores.file_lock import FileLock
from sluicegate.stores.schema import DatabaseSeconds, create_tables

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from sqlalchemy import ColumnElement, Connection, Table
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
    from sqlalchemy.pool import ConnectionPoolEntry

SCHEME: Final = "sqlite+aiosqlite"
_OLDEST_SQLITE: Final = (3, 35)
"""The first SQLite with RETURNING."""


class Database:
    """Two engines on one file: ``sessions`` for ADK, ``ledger`` for what must survive a power cut.

    Writes of our own tables go through `writing`, one after the other, and reads through
    `reading`, on the sessions' connections, where no writer makes them wait.
    """

    def __init__(
        self,
        sessions: AsyncEngine,
        ledger: AsyncEngine,
        *,
        lock: FileLock | None,
        clock_offset: Callable[[], float],
    ) -> None:
        """Take what `open` has made."""
        self.sessions = sessions
        self.ledger = ledger
        self._lock = lock
        self._clock_offset = clock_offset
        self._closed = False

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        exclusive: bool = True,
        clock_offset: Callable[[], float] = lambda: 0.0,
        busy_timeout: float = 5.0,
    ) -> Database:
        """Open the file that a URL such as ``sqlite+aiosqlite:///chats.db`` names.

        The file, its folders and our tables are created when they are missing, for the user of
        the process alone. ``exclusive`` keeps every other process out; ``busy_timeout`` is how
        many seconds a statement waits for another writer; ``clock_offset`` is added to the
        database's clock, in seconds.

        Raises:
            ConfigurationError: the URL, the file or its tables cannot be used, or another process
                uses them.
        """
        path = _path_of(url)
        lock = await asyncio.to_thread(_prepare, path, exclusive=exclusive)
        sessions = _create_engine(path, busy_timeout, "NORMAL")
        # One connection, so that our own writers queue instead of polling SQLite's lock.
        ledger = _create_engine(path, busy_timeout, "FULL", is_single=True)
        event.listen(ledger.sync_engine, "connect", _leave_transactions_to_us)
        event.listen(ledger.sync_engine, "begin", _begin_immediate)
        database = cls(sessions, ledger, lock=lock, clock_offset=clock_offset)
        try:
            async with ledger.begin() as connection:
                await connection.run_sync(create_tables)
        except SQLAlchemyError as error:
            await database.close()
            raise _unusable(path, _words_of(error)) from error
        except BaseException:
            await database.close()
            raise
        return database

    @property
    def is_exclusive(self) -> bool:
        """Whether no other process can be on this database, so that old leases are void (A2)."""
        return self._lock is not None

    def now(self) -> ColumnElement[float]:
        """Return the database's clock as an SQL expression, seconds since the epoch."""
        return DatabaseSeconds() + literal(self._clock_offset())

    def insert(self, table: Table) -> postgresql.Insert | sqlite.Insert:
        """Return an INSERT that knows ON CONFLICT, in the database's dialect."""
        if self.ledger.dialect.name == "postgresql":
            return postgresql.insert(table)
        return sqlite.insert(table)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Run one transaction that may write; it commits unless the block raises.

        Raises:
            StoreError: the database could not do it, and nothing has changed.
        """
        with self._store_errors():
            async with self.ledger.begin() as connection:
                yield connection

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection to read from.

        Raises:
            StoreError: the database could not do it.
        """
        with self._store_errors():
            async with self.sessions.connect() as connection:
                yield connection

    async def close(self) -> None:
        """Close every connection and let others in; a second call does nothing."""
        self._closed = True
        await self.ledger.dispose()
        await self.sessions.dispose()
        if self._lock is not None:
            self._lock.release()

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        if self._closed:
            raise StoreError("the database is closed")
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error, UnicodeError) as error:
            raise StoreError(f"the database failed: {_words_of(error)}") from error


def _path_of(url: str) -> Path:
    """Return the file that a database URL names, without symbolic links."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        # The text may hold a password, so the sentence does not repeat it.
        raise ConfigurationError(
            f"The sessions URL cannot be read; write it as {SCHEME}:///PATH."
        ) from None
    if parsed.drivername != SCHEME:
        raise ConfigurationError(
            f"The sessions URL begins with {parsed.drivername}://, which is not supported; "
            f"write {SCHEME}:///PATH."
        )
    name = parsed.database
    if not name or name.startswith((":memory:", "file:")) or parsed.query or parsed.host:
        raise ConfigurationError(
            f"The sessions URL does not name a plain file; write {SCHEME}:///PATH."
        )
    return Path(name).resolve()


def _prepare(path: Path, *, exclusive: bool) -> FileLock | None:
    """Make the file ready for both engines, private to this user, and lock others out."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise ConfigurationError(
            f"Python is linked to SQLite {sqlite3.sqlite_version}; 3.35 or later is needed."
        )
    lock: FileLock | None = None
    try:
        for folder in reversed([folder for folder in path.parents if not folder.exists()]):
            folder.mkdir(mode=0o700, exist_ok=True)
        if exclusive:
            lock = FileLock(path.with_name(f"{path.name}.lock"))
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        _use_write_ahead_log(path)
    except BlockingIOError:
        raise ConfigurationError(
            f"The database {path} is in use by another process; stop that one, or give this one "
            "a database of its own with --sessions."
        ) from None
    except (OSError, sqlite3.Error) as error:
        if lock is not None:
            lock.release()
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise _unusable(path, words or type(error).__name__) from error
    return lock


def _use_write_ahead_log(path: Path) -> None:
    """Let readers and the writer pass each other; the file remembers it."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()


def _create_engine(
    path: Path,
    busy_timeout: float,
    synchronous: Literal["NORMAL", "FULL"],
    *,
    is_single: bool = False,
) -> AsyncEngine:
    url = URL.create(SCHEME, database=str(path))
    # Parameters are what people say and what tools get: no log may show them.
    if is_single:
        engine = create_async_engine(url, hide_parameters=True, pool_size=1, max_overflow=0)
    else:
        engine = create_async_engine(url, hide_parameters=True)

    def set_up(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={round(busy_timeout * 1000)}")
        cursor.execute(f"PRAGMA synchronous={synchronous}")
        # ADK: a session's events go with it only where SQLite enforces foreign keys.
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    event.listen(engine.sync_engine, "connect", set_up)
    return engine


def _leave_transactions_to_us(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None


def _begin_immediate(connection: Connection) -> None:
    # A transaction that begins as a reader and then writes fails at once when another one wrote
    # meanwhile; one that begins as a writer waits its turn.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _unusable(path: Path, words: str) -> ConfigurationError:
    return ConfigurationError(f"The database {path} cannot be used: {words}.")


def _words_of(error: Exception) -> str:
    """Say what the database said, without the statement and its parameters."""
    if isinstance(error, DBAPIError):
        return str(error.orig)
    return type(error).__name__
