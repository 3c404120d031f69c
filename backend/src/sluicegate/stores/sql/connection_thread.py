"""A thread with one connection to the database, in which transactions run as a whole."""

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

    from sqlalchemy import Connection, Engine

_T = TypeVar("_T")


class ConnectionThread:
    """Runs plain functions of a connection, one after the other, away from the event loop.

    A transaction costs one change of threads, where every awaited statement would cost several.
    """

    def __init__(
        self, engine: Engine, *, begin: Literal["BEGIN", "BEGIN IMMEDIATE"], patience: float
    ) -> None:
        """Take an engine that leaves transactions alone.

        ``patience`` is how many seconds a transaction may wait for another writer to begin.
        """
        self._engine = engine
        self._begin = begin
        self._patience = patience
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sluicegate-database")
        self._connection: Connection | None = None
        self._closed = False

    async def run(self, work: Callable[[Connection], _T], *, is_lasting: bool = False) -> _T:
        """Run ``work`` in a transaction, which commits unless it raises.

        When the caller is cancelled the transaction is given up if it still can be; one that is
        lasting goes on to its end.

        Raises:
            StoreError: the database could not do it. Nothing has changed.
            StoreUnavailable: the file is locked, or cannot be written now.
        """
        if self._closed:
            raise StoreError("the database is closed")
        is_given_up = threading.Event()
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._thread, self._transact, work, is_given_up)
        try:
            return await (asyncio.shield(done) if is_lasting else done)
        except asyncio.CancelledError:
            if not is_lasting:
                is_given_up.set()
            raise
        except OWN_ERRORS as error:
            raise failure_of(error) from error

    async def close(self) -> None:
        """Finish what was begun and close the connection; a second call does nothing."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown)
        self._let_go()
        self._engine.dispose()

    def _transact(self, work: Callable[[Connection], _T], is_given_up: threading.Event) -> _T:
        if self._connection is None:
            self._connection = self._engine.connect()
        connection = self._connection
        try:
            self._wait_to_begin(connection, is_given_up)
            result = work(connection)
            if is_given_up.is_set():
                raise _Abandoned
            plain_of(connection).commit()
            connection.commit()
        except BaseException:
            # Taking it back takes the transaction back.
            self._let_go()
            raise
        return result

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _wait_to_begin(self, connection: Connection, is_given_up: threading.Event) -> None:
        # SQLite's own wait tries again after up to 100 ms and so loses, for seconds, to sessions
        # that are written all the time.
        deadline = time.monotonic() + self._patience
        while True:
            try:
                plain_of(connection).execute(self._begin)
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() >= deadline:
                    raise
            else:
                return
            if is_given_up.wait(0.001):
                raise _Abandoned


class _Abandoned(Exception):
    """Nobody waits for the transaction any more."""


OWN_ERRORS: Final = (SQLAlchemyError, sqlite3.Error, UnicodeError)
"""What SQLite raises, by way of SQLAlchemy or straight."""


def plain_of(connection: Connection) -> sqlite3.Connection:
    """The driver's connection."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def failure_of(error: Exception) -> StoreError:
    """Return what an error of SQLite means: what is locked or full may not be so in a moment."""
    if isinstance(error, OperationalError | sqlite3.OperationalError):
        return StoreUnavailable(words_of(error))
    return StoreError(words_of(error))


def words_of(error: Exception) -> str:
    """Say what the database said, without the statement and its parameters."""
    if isinstance(error, DBAPIError):
        return str(error.orig)
    return str(error) if isinstance(error, sqlite3.Error) else type(error).__name__
