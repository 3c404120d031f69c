"""A lock on a file that the operating system drops with the process, however that ends."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from sqlalchemy import URL, create_engine, event, select
from sqlalchemy.ext.asyncio import create_async_engine

from sluicegate.errors import ConfigurationError
from sluicegate.stores.sql.connection_thread import (
    OWN_ERRORS,
    ConnectionThread,
    failure_of,
    plain_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.ext.asyncio import AsyncEngine
    from sqlalchemy.pool import ConnectionPoolEntry

    from sluicegate.errors import StoreError
    from sluicegate.stores.sql.prepared import PreparedStatement, Row

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class FileLock:
    """An exclusive lock; a second holder, in this process too, is refused at once."""

    def __init__(self, path: Path) -> None:
        """Take the lock, creating the file if needed. The file stays behind.

        Raises:
            BlockingIOError: somebody has it.
            OSError: the file cannot be opened, or its file system has no locks.
        """
        self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._descriptor)
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from error
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


_T = TypeVar("_T")

_OLDEST: Final = (3, 35)
"""The first SQLite with RETURNING."""


class SqliteFile:
    """Transactions on one file (the port is `Transactions`).

    Our writers queue for one connection that syncs each commit, so what it has committed outlives
    a power cut; our readers have another one, where no writer makes them wait.
    """

    def __init__(self, path: Path, *, lock: FileLock | None, busy_timeout: float) -> None:
        """Take a file that `open` has prepared; nothing connects to it yet."""
        set_up = partial(_set, busy_timeout=busy_timeout)
        self.sessions = _sessions_engine(path, partial(set_up, synchronous="NORMAL"))
        lasting = partial(set_up, synchronous="FULL")
        # A transaction that begins as a reader and then writes fails at once when another one
        # wrote meanwhile; one that begins as a writer waits its turn.
        self._writer = ConnectionThread(
            _own_engine(path, partial(lasting, busy_timeout=0)),
            begin="BEGIN IMMEDIATE",
            patience=busy_timeout,
        )
        self._reader = ConnectionThread(_own_engine(path, lasting), begin="BEGIN", patience=0)
        self._lock = lock

    @classmethod
    async def open(cls, url: URL, *, exclusive: bool, busy_timeout: float) -> SqliteFile:
        """Prepare the file of a URL and lock other processes out, if ``exclusive``.

        Raises:
            ConfigurationError: the file cannot be used, or another process uses it.
        """
        path = _path_of(url)
        lock = await asyncio.to_thread(_prepare, path, exclusive=exclusive)
        return cls(path, lock=lock, busy_timeout=busy_timeout)

    @property
    def is_exclusive(self) -> bool:
        """Whether no other process can be on this file."""
        return self._lock is not None

    def making_tables(self) -> AbstractAsyncContextManager[None]:
        """Do nothing: writers of a file take turns."""
        return nullcontext()

    async def write(self, work: Callable[[Connection], _T], *, is_lasting: bool = False) -> _T:
        """Run ``work`` in a transaction that commits unless it raises."""
        return await self._writer.run(work, is_lasting=is_lasting)

    async def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run ``work`` in a transaction that only reads."""
        return await self._reader.run(work)

    async def execute(
        self, prepared: PreparedStatement, values: Mapping[str, Any], *, is_lasting: bool = False
    ) -> list[Row]:
        """Run a statement that may write; returns its rows."""
        return await self._writer.run(partial(_run, prepared, values), is_lasting=is_lasting)

    async def fetch(self, prepared: PreparedStatement, values: Mapping[str, Any]) -> list[Row]:
        """Run a statement that only reads; returns its rows."""
        return await self._reader.run(partial(_run, prepared, values))

    async def check(self) -> None:
        """Read something: whoever writes now does not hold it up."""
        await self._reader.run(lambda connection: connection.execute(select(1)))

    def failure(self, error: Exception) -> StoreError | None:
        """Return what an error of the database means; None for one that is none of its own."""
        return failure_of(error) if isinstance(error, OWN_ERRORS) else None

    async def close(self) -> None:
        """Close every connection and let others in; a second call does nothing."""
        await self._writer.close()
        await self._reader.close()
        await self.sessions.dispose()
        if self._lock is not None:
            self._lock.release()


def _run(
    prepared: PreparedStatement, values: Mapping[str, Any], connection: Connection
) -> list[Row]:
    cursor = plain_of(connection).execute(prepared.sql, prepared.arguments(values))
    names = [described[0] for described in cursor.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    if rows and prepared.then is not None:
        _run(prepared.then, values, connection)
    return rows


def _path_of(url: URL) -> Path:
    """Return the file that a database URL names, without symbolic links."""
    name = url.database
    if not name or name.startswith((":memory:", "file:")) or url.query or url.host:
        raise ConfigurationError(
            f"The sessions URL does not name a plain file; write {url.drivername}:///PATH."
        )
    return Path(name).resolve()


def _prepare(path: Path, *, exclusive: bool) -> FileLock | None:
    """Make the file ready for both engines, private to this user, and lock others out."""
    if sqlite3.sqlite_version_info < _OLDEST:
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
        raise ConfigurationError(
            f"The database {path} cannot be used: {words or type(error).__name__}."
        ) from error
    return lock


def _use_write_ahead_log(path: Path) -> None:
    """Let readers and the writer pass each other; the file remembers it."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()


def _sessions_engine(path: Path, set_up: Callable[[DBAPIConnection], None]) -> AsyncEngine:
    url = URL.create("sqlite+aiosqlite", database=str(path))
    # Parameters are what people say and what tools get: no log may show them.
    # One connection: chats that write at once queue here, in order. With more, SQLite makes them
    # poll for its lock, which starves some of them past the busy timeout and costs throughput.
    engine = create_async_engine(url, hide_parameters=True, pool_size=1, max_overflow=0)

    def connected(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        set_up(connection)

    event.listen(engine.sync_engine, "connect", connected)
    return engine


def _own_engine(path: Path, set_up: Callable[[DBAPIConnection], None]) -> Engine:
    url = URL.create("sqlite+pysqlite", database=str(path))
    engine = create_engine(url, hide_parameters=True, pool_size=1, max_overflow=0)

    def connected(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        set_up(connection)
        # Transactions begin where a lane says so.
        connection.isolation_level = None

    event.listen(engine, "connect", connected)
    return engine


def _set(
    connection: DBAPIConnection,
    *,
    busy_timeout: float,
    synchronous: Literal["NORMAL", "FULL"],
) -> None:
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={round(busy_timeout * 1000)}")
    cursor.execute(f"PRAGMA synchronous={synchronous}")
    # ADK: a session's events go with it only where SQLite enforces foreign keys.
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()
