"""The database of a server: one SQLite file, which ADK's session service and our tables share."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from sqlalchemy import URL, create_engine, event, literal, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import create_async_engine

from sluicegate.errors import ConfigurationError, StoreError
from sluicegate.stores.file_lock import FileLock
from sluicegate.stores.lane import Lane
from sluicegate.stores.schema import DatabaseSeconds, create_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import ColumnElement, Connection, Engine, Table
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.ext.asyncio import AsyncEngine
    from sqlalchemy.pool import ConnectionPoolEntry

_T = TypeVar("_T")

SCHEME: Final = "sqlite+aiosqlite"
_OLDEST_SQLITE: Final = (3, 35)
"""The first SQLite with RETURNING."""

_INSERTS: Final[dict[str, type[postgresql.Insert] | type[sqlite.Insert]]] = {
    "postgresql": postgresql.Insert,
    "sqlite": sqlite.Insert,
}


class Database:
    """One file for ADK's session service, on the engine ``sessions``, and for our own tables.

    Our writers queue for one connection that syncs each commit, so what it has committed outlives
    a power cut; our readers have another one, where no writer makes them wait.
    """

    def __init__(
        self,
        path: Path,
        *,
        lock: FileLock | None,
        clock_offset: Callable[[], float],
        busy_timeout: float,
    ) -> None:
        """Take a file that `open` has prepared; nothing connects to it yet."""
        self.sessions = _sessions_engine(path, busy_timeout)
        # A transaction that begins as a reader and then writes fails at once when another one
        # wrote meanwhile; one that begins as a writer waits its turn.
        self._writer = Lane(_own_engine(path, 0), begin="BEGIN IMMEDIATE", patience=busy_timeout)
        self._reader = Lane(_own_engine(path, busy_timeout), begin="BEGIN", patience=0)
        self._lock = lock
        self._clock_offset = clock_offset

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
        database = cls(path, lock=lock, clock_offset=clock_offset, busy_timeout=busy_timeout)
        try:
            await database.write(create_tables)
        except StoreError as error:
            await database.close()
            raise _unusable(path, str(error)) from error
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
        return _INSERTS[self.sessions.dialect.name](table)

    async def write(self, work: Callable[[Connection], _T], *, is_lasting: bool = False) -> _T:
        """Run ``work`` in a transaction that may write; it commits unless it raises.

        When the caller is cancelled the transaction is given up if it still can be; one that is
        lasting goes on to its end.

        Raises:
            StoreError: the database could not do it, and nothing has changed.
        """
        return await self._writer.run(work, is_lasting=is_lasting)

    async def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run ``work`` in a transaction that only reads.

        Raises:
            StoreError: the database could not do it.
        """
        return await self._reader.run(work)

    async def close(self) -> None:
        """Close every connection and let others in; a second call does nothing."""
        await self._writer.close()
        await self._reader.close()
        await self.sessions.dispose()
        if self._lock is not None:
            self._lock.release()


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


def _sessions_engine(path: Path, busy_timeout: float) -> AsyncEngine:
    url = URL.create(SCHEME, database=str(path))
    # Parameters are what people say and what tools get: no log may show them.
    # One connection: chats that write at once queue here, in order. With more, SQLite makes them
    # poll for its lock, which starves some of them past the busy timeout and costs throughput.
    engine = create_async_engine(url, hide_parameters=True, pool_size=1, max_overflow=0)

    def set_up(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        _set(connection, busy_timeout, "NORMAL")

    event.listen(engine.sync_engine, "connect", set_up)
    return engine


def _own_engine(path: Path, busy_timeout: float) -> Engine:
    url = URL.create("sqlite+pysqlite", database=str(path))
    engine = create_engine(url, hide_parameters=True, pool_size=1, max_overflow=0)

    def set_up(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        _set(connection, busy_timeout, "FULL")
        # Transactions begin where a lane says so.
        connection.isolation_level = None

    event.listen(engine, "connect", set_up)
    return engine


def _set(
    connection: DBAPIConnection, busy_timeout: float, synchronous: Literal["NORMAL", "FULL"]
) -> None:
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={round(busy_timeout * 1000)}")
    cursor.execute(f"PRAGMA synchronous={synchronous}")
    # ADK: a session's events go with it only where SQLite enforces foreign keys.
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _unusable(path: Path, words: str) -> ConfigurationError:
    return ConfigurationError(f"The database {path} cannot be used: {words}.")
