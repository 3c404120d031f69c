"""A thread with one SQLite connection, in which transactions run one after the other."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Literal, TypeVar, cast

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from sluicegate.errors import StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from sqlalchemy import Connection, Engine

_T = TypeVar("_T")

SQLITE_ERRORS: Final = (SQLAlchemyError, sqlite3.Error, UnicodeError)
"""Errors of SQLite, raised by SQLAlchemy or by the driver itself."""


class ConnectionThread:
    """Runs functions of a connection, one after the other, outside the event loop.

    A transaction costs one switch of threads, where awaiting each statement would cost several.

    Args:
        engine: An engine whose driver begins no transactions by itself.
        begin: The statement that begins each transaction.
        patience: Seconds for which a transaction waits for another writer before it begins.
        executor: What runs the functions, one at a time; a thread of its own by default.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        begin: Literal["BEGIN", "BEGIN IMMEDIATE"],
        patience: float,
        executor: Executor | None = None,
    ) -> None:
        self._engine = engine
        self._begin = begin
        self._patience = patience
        self._executor = executor or ThreadPoolExecutor(1, thread_name_prefix="sluicegate-database")
        self._connection: Connection | None = None
        self._closed = False

    async def run(self, work: Callable[[Connection], _T], *, shielded: bool = False) -> _T:
        """Run ``work`` in a transaction, which commits unless it raises.

        When the caller is cancelled, a transaction that has not committed yet is rolled back;
        a shielded one continues to its end.

        Raises:
            StoreError: the database failed; nothing has changed.
            StoreUnavailable: the file is locked or cannot be written at the moment.
        """
        if self._closed:
            raise StoreError("the database is closed")
        cancelled = threading.Event()
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._executor, self._transact, work, cancelled)
        try:
            return await (asyncio.shield(done) if shielded else done)
        except asyncio.CancelledError:
            if not shielded:
                cancelled.set()
            raise
        except SQLITE_ERRORS as error:
            raise store_error(error) from error

    async def close(self) -> None:
        """Finish the queued transactions and close the connection. Idempotent."""
        self._closed = True
        await asyncio.to_thread(self._executor.shutdown)
        self._disconnect()
        self._engine.dispose()

    def _transact(self, work: Callable[[Connection], _T], cancelled: threading.Event) -> _T:
        if self._connection is None:
            self._connection = self._engine.connect()
        connection = self._connection
        try:
            self._begin_transaction(connection, cancelled)
            result = work(connection)
            if cancelled.is_set():
                raise _Cancelled
            driver_connection(connection).commit()
            connection.commit()
        except BaseException:
            # Closing the connection rolls the transaction back.
            self._disconnect()
            raise
        return result

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _begin_transaction(self, connection: Connection, cancelled: threading.Event) -> None:
        # SQLite's own busy handler retries after up to 100 ms and so starves, for seconds, beside
        # sessions that are written all the time.
        deadline = time.monotonic() + self._patience
        while True:
            try:
                driver_connection(connection).execute(self._begin)
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() >= deadline:
                    raise
            else:
                return
            if cancelled.wait(0.001):
                raise _Cancelled


class _Cancelled(Exception):
    """The caller of the transaction was cancelled."""


def driver_connection(connection: Connection) -> sqlite3.Connection:
    """Return the driver's connection."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def store_error(error: Exception) -> StoreError:
    """Map an error of SQLite; a locked file or a full disk is `StoreUnavailable`."""
    if isinstance(error, OperationalError | sqlite3.OperationalError):
        return StoreUnavailable(message_of(error))
    return StoreError(message_of(error))


def message_of(error: Exception) -> str:
    """Return the database's message without the statement and its parameters."""
    if isinstance(error, DBAPIError):
        return str(error.orig)
    return str(error) if isinstance(error, sqlite3.Error) else type(error).__name__


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
