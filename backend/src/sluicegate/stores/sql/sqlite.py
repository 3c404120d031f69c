"""A database in a SQLite file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from sqlalchemy import URL, AsyncAdaptedQueuePool, create_engine, event, select
from sqlalchemy.ext.asyncio import create_async_engine

from sluicegate.errors import ConfigurationError
from sluicegate.stores.private_files import make_private, private_folder
from sluicegate.stores.sql.audit_chain_triggers import (
    COMMITMENT_FUNCTION,
    DIGEST_FUNCTION,
    commitment_of,
    digest_of,
)
from sluicegate.stores.sql.connection_thread import (
    SQLITE_ERRORS,
    ConnectionThread,
    driver_connection,
    store_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor
    from contextlib import AbstractAsyncContextManager

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.ext.asyncio import AsyncEngine
    from sqlalchemy.pool import ConnectionPoolEntry

    from sluicegate.errors import StoreError
    from sluicegate.stores.sql.compiled_statements import CompiledStatement, Row

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_T = TypeVar("_T")

_BESIDE: Final = ("-wal", "-shm", "-journal", ".lock")
"""The suffixes of the files beside a database."""

_OWN_FOLDER: Final = ".sluicegate"
"""The folder of the default settings, with the artifacts beside the database."""

_OLDEST: Final = (3, 35)
"""The first SQLite with RETURNING."""


class FileLock:
    """An exclusive lock on a file, which the operating system releases with the process.

    The constructor acquires it and creates the file if needed; the file is not removed.

    Raises:
        BlockingIOError: the lock is held, by another process or by this one.
        OSError: the file cannot be opened, or its file system has no locks.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(self._descriptor)
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock. Idempotent."""
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


class SqliteFile:
    """Transactions on one file (implements `Transactions`).

    Our writers queue for one connection that syncs each commit, so a commit survives a power
    cut; our readers have another connection, on which they never wait for a writer.

    Args:
        path: A file that `open` has prepared.
        lock: The lock that keeps other processes out, if any.
        busy_timeout: Seconds for which a statement waits for another writer.
        executor: Makes what runs the transactions of one connection; threads by default.
    """

    def __init__(
        self,
        path: Path,
        *,
        lock: FileLock | None,
        busy_timeout: float,
        executor: Callable[[], Executor | None] = lambda: None,
    ) -> None:
        set_up = partial(_set_up, busy_timeout=busy_timeout)
        self.sessions = _sessions_engine(path, partial(set_up, synchronous="NORMAL"))
        durable = partial(set_up, synchronous="FULL")
        # A transaction that begins as a reader and then writes fails at once when another one
        # wrote meanwhile; one that begins as a writer waits its turn.
        self._writer = ConnectionThread(
            _own_engine(path, partial(durable, busy_timeout=0)),
            begin="BEGIN IMMEDIATE",
            patience=busy_timeout,
            executor=executor(),
        )
        self._reader = ConnectionThread(
            _own_engine(path, durable), begin="BEGIN", patience=0, executor=executor()
        )
        self._lock = lock

    @classmethod
    async def open(
        cls,
        url: URL,
        *,
        exclusive: bool,
        busy_timeout: float,
        lock: Callable[[Path], FileLock] = FileLock,
        executor: Callable[[], Executor | None] = lambda: None,
    ) -> SqliteFile:
        """Prepare the file of a URL; ``exclusive`` keeps other processes out with a ``lock``.

        Raises:
            ConfigurationError: the file cannot be used, or another process uses it.
        """
        path = _path_of(url)
        held = await asyncio.to_thread(_prepare, path, lock if exclusive else None)
        return cls(path, lock=held, busy_timeout=busy_timeout, executor=executor)

    @property
    def is_exclusive(self) -> bool:
        """Whether other processes are kept out of this file."""
        return self._lock is not None

    def table_creation(self) -> AbstractAsyncContextManager[None]:
        """Do nothing: SQLite serializes writers itself."""
        return nullcontext()

    async def write(self, work: Callable[[Connection], _T], *, shielded: bool = False) -> _T:
        """Run ``work`` in a transaction that commits unless it raises."""
        return await self._writer.run(work, shielded=shielded)

    async def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run ``work`` in a transaction that only reads."""
        return await self._reader.run(work)

    async def execute(
        self, prepared: CompiledStatement, values: Mapping[str, Any], *, shielded: bool = False
    ) -> list[Row]:
        """Execute a statement as a transaction; returns its rows."""
        return await self._writer.run(partial(_execute, prepared, values), shielded=shielded)

    async def fetch(self, prepared: CompiledStatement, values: Mapping[str, Any]) -> list[Row]:
        """Execute a statement that only reads; returns its rows."""
        return await self._reader.run(partial(_execute, prepared, values))

    async def check(self) -> None:
        """Read from the file, without waiting for a writer."""
        await self._reader.run(lambda connection: connection.execute(select(1)))

    def store_error(self, error: Exception) -> StoreError | None:
        """Map an error of the database; None for any other error."""
        return store_error(error) if isinstance(error, SQLITE_ERRORS) else None

    async def close(self) -> None:
        """Close every connection and release the lock. Idempotent."""
        await self._writer.close()
        await self._reader.close()
        await self.sessions.dispose()
        if self._lock is not None:
            self._lock.release()


def _execute(
    prepared: CompiledStatement, values: Mapping[str, Any], connection: Connection
) -> list[Row]:
    cursor = driver_connection(connection).execute(prepared.sql, prepared.arguments(values))
    names = [column[0] for column in cursor.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    if rows and prepared.then is not None:
        _execute(prepared.then, values, connection)
    return rows


def _path_of(url: URL) -> Path:
    """Return the file of a database URL, with symbolic links resolved."""
    name = url.database
    if not name or name.startswith((":memory:", "file:")) or url.query or url.host:
        raise ConfigurationError(
            f"The sessions URL does not name a plain file; write {url.drivername}:///PATH."
        )
    return Path(name).resolve()


def _prepare(path: Path, lock: Callable[[Path], FileLock] | None) -> FileLock | None:
    """Create the file, private to this user and with a write-ahead log, and lock it."""
    if sqlite3.sqlite_version_info < _OLDEST:
        raise ConfigurationError(
            f"Python is linked to SQLite {sqlite3.sqlite_version}; 3.35 or later is needed."
        )
    held: FileLock | None = None
    try:
        private_folder(path.parent, _is_of(path))
        if lock is not None:
            held = lock(path.with_name(f"{path.name}.lock"))
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        # SQLite creates the log and the index of a file with the mode of the file.
        for suffix in ("", *_BESIDE):
            make_private(path.with_name(path.name + suffix))
        _use_write_ahead_log(path)
    except BlockingIOError:
        raise ConfigurationError(
            f"The database {path} is in use by another process; stop that one, or give this one "
            "a database of its own with --sessions."
        ) from None
    except (OSError, sqlite3.Error) as error:
        if held is not None:
            held.release()
        message = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError(
            f"The database {path} cannot be used: {message or type(error).__name__}."
        ) from error
    return held


def _is_of(path: Path) -> Callable[[str], bool]:
    """Return whether the name in the folder of a database is one of ours."""
    own = {path.name, *(path.name + suffix for suffix in _BESIDE)}
    return lambda name: name in own or path.parent.name == _OWN_FOLDER


def _use_write_ahead_log(path: Path) -> None:
    """Let readers and the writer run concurrently; the file stores this setting."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()


def _sessions_engine(path: Path, set_up: Callable[[DBAPIConnection], None]) -> AsyncEngine:
    url = URL.create("sqlite+aiosqlite", database=str(path))
    # Parameters hold messages and tool arguments, which no log may contain.
    # One connection: concurrent chats queue for it in order. With more, SQLite makes writers poll
    # for its lock, which starves some of them past the busy timeout and costs throughput.
    engine = create_async_engine(
        url,
        hide_parameters=True,
        # SQLAlchemy before 2.0.38 would have no pool for a file.
        poolclass=AsyncAdaptedQueuePool,
        pool_size=1,
        max_overflow=0,
    )

    def connected(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        set_up(connection)

    event.listen(engine.sync_engine, "connect", connected)
    return engine


def _own_engine(path: Path, set_up: Callable[[DBAPIConnection], None]) -> Engine:
    url = URL.create("sqlite+pysqlite", database=str(path))
    engine = create_engine(url, hide_parameters=True, pool_size=1, max_overflow=0)

    def connected(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        set_up(connection)
        own = cast("sqlite3.Connection", connection)
        own.create_function(DIGEST_FUNCTION, -1, digest_of, deterministic=True)
        own.create_function(COMMITMENT_FUNCTION, -1, commitment_of, deterministic=True)
        # The connection thread begins the transactions.
        own.isolation_level = None

    event.listen(engine, "connect", connected)
    return engine


def _set_up(
    connection: DBAPIConnection,
    *,
    busy_timeout: float,
    synchronous: Literal["NORMAL", "FULL"],
) -> None:
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={round(busy_timeout * 1000)}")
    cursor.execute(f"PRAGMA synchronous={synchronous}")
    # ADK: a session's events are deleted with it only where SQLite enforces foreign keys.
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()
