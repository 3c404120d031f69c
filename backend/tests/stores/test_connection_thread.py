"""Transactions on one connection in a thread of its own."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, event, text
from sqlalchemy.exc import OperationalError

from sluicegate.errors import StoreError
from sluicegate.stores.sql.connection_thread import ConnectionThread
from tests.stores.builders import LIMIT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from sqlalchemy import Connection, Engine
    from sqlalchemy.engine.interfaces import DBAPIConnection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.db"
    plain = sqlite3.connect(path)
    plain.execute("CREATE TABLE words (word TEXT)")
    plain.close()
    return path


@pytest.fixture
def engine(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 0})

    def leave_transactions_to_the_thread(connection: DBAPIConnection, _entry: object) -> None:
        connection.isolation_level = None

    event.listen(engine, "connect", leave_transactions_to_the_thread)
    return engine


@pytest.fixture
async def thread(engine: Engine) -> AsyncIterator[ConnectionThread]:
    """A thread that does not wait for other writers."""
    thread = ConnectionThread(engine, begin="BEGIN IMMEDIATE", patience=0.0)
    yield thread
    await thread.close()


@pytest.fixture
async def patient(engine: Engine) -> AsyncIterator[ConnectionThread]:
    """A thread that waits for other writers."""
    thread = ConnectionThread(engine, begin="BEGIN IMMEDIATE", patience=3600.0)
    yield thread
    await thread.close()


def words(path: Path) -> list[str]:
    plain = sqlite3.connect(path)
    found = [word for (word,) in plain.execute("SELECT word FROM words")]
    plain.close()
    return found


def writing(word: str) -> Callable[[Connection], str]:
    def write(connection: Connection) -> str:
        connection.execute(text("INSERT INTO words VALUES (:word)"), {"word": word})
        return word

    return write


class Held:
    """Work that writes a word and then waits until it may end."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.may_end = threading.Event()

    def __call__(self, connection: Connection) -> None:
        writing("held")(connection)
        self.began.set()
        self.may_end.wait(LIMIT)


async def test_work_is_committed_and_its_result_is_returned(
    thread: ConnectionThread, path: Path
) -> None:
    assert await thread.run(writing("a")) == "a"
    assert words(path) == ["a"]


async def test_work_that_raises_leaves_nothing(thread: ConnectionThread, path: Path) -> None:
    def fail(connection: Connection) -> None:
        writing("a")(connection)
        raise KeyError

    with pytest.raises(KeyError):
        await thread.run(fail)
    await thread.run(writing("b"))
    assert words(path) == ["b"]


async def test_an_error_of_the_database_is_a_store_error(thread: ConnectionThread) -> None:
    with pytest.raises(StoreError, match=r"^no such table: nowhere$") as refusal:
        await thread.run(lambda connection: connection.execute(text("SELECT 1 FROM nowhere")))
    assert isinstance(refusal.value.__cause__, OperationalError)


async def test_a_cancelled_transaction_is_rolled_back(thread: ConnectionThread, path: Path) -> None:
    held = Held()
    caller = asyncio.create_task(thread.run(held))
    await asyncio.to_thread(held.began.wait)
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    held.may_end.set()
    await thread.run(writing("next"))
    assert words(path) == ["next"]


async def test_a_shielded_transaction_outlives_its_caller(
    thread: ConnectionThread, path: Path
) -> None:
    held = Held()
    caller = asyncio.create_task(thread.run(held, shielded=True))
    await asyncio.to_thread(held.began.wait)
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    held.may_end.set()
    await thread.run(writing("next"))
    assert words(path) == ["held", "next"]


@pytest.mark.parametrize("shielded", [False, True])
async def test_queued_work_whose_caller_is_cancelled(
    thread: ConnectionThread, path: Path, *, shielded: bool
) -> None:
    """It never begins, unless it is shielded."""
    held = Held()
    first = asyncio.create_task(thread.run(held))
    await asyncio.to_thread(held.began.wait)
    caller = asyncio.create_task(thread.run(writing("queued"), shielded=shielded))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    held.may_end.set()
    await first
    await thread.run(writing("last"))
    assert words(path) == ["held", *(["queued"] if shielded else []), "last"]


async def test_a_transaction_waits_for_another_writer(
    thread: ConnectionThread, patient: ConnectionThread, path: Path
) -> None:
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="database is locked"):
        await thread.run(writing("too late"))
    caller = asyncio.create_task(patient.run(writing("in time")))
    with pytest.raises(StoreError):
        await thread.run(writing("too late"))
    stranger.execute("COMMIT")
    assert await caller == "in time"
    stranger.close()
    assert words(path) == ["in time"]


async def test_a_cancelled_caller_does_not_wait_for_another_writer(
    path: Path, thread: ConnectionThread, patient: ConnectionThread
) -> None:
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    caller = asyncio.create_task(patient.run(writing("cancelled")))
    with pytest.raises(StoreError):
        await thread.run(writing("too late"))
    caller.cancel()
    await asyncio.wait([caller])
    await patient.close()
    stranger.execute("COMMIT")
    stranger.close()
    assert words(path) == []


async def test_a_closed_thread_refuses_work(thread: ConnectionThread, path: Path) -> None:
    held = Held()
    begun = asyncio.create_task(thread.run(held))
    await asyncio.to_thread(held.began.wait)
    held.may_end.set()
    await thread.close()
    await thread.close()
    await begun
    with pytest.raises(StoreError, match="closed"):
        await thread.run(writing("a"))
    assert words(path) == ["held"]
