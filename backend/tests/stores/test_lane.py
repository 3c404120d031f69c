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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from sqlalchemy import Connection
    from sqlalchemy.engine.interfaces import DBAPIConnection

PATIENCE = 0.05


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.db"
    plain = sqlite3.connect(path)
    plain.execute("CREATE TABLE words (word TEXT)")
    plain.close()
    return path


@pytest.fixture
async def lane(path: Path) -> AsyncIterator[ConnectionThread]:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 0})

    def leave_transactions_to_the_lane(connection: DBAPIConnection, _entry: object) -> None:
        connection.isolation_level = None

    event.listen(engine, "connect", leave_transactions_to_the_lane)
    lane = ConnectionThread(engine, begin="BEGIN IMMEDIATE", patience=PATIENCE)
    yield lane
    await lane.close()


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
        self.may_end.wait(10)


async def test_work_is_committed_and_its_result_returned(
    lane: ConnectionThread, path: Path
) -> None:
    assert await lane.run(writing("a")) == "a"
    assert words(path) == ["a"]


async def test_work_that_raises_leaves_nothing(lane: ConnectionThread, path: Path) -> None:
    def fail(connection: Connection) -> None:
        writing("a")(connection)
        raise KeyError

    with pytest.raises(KeyError):
        await lane.run(fail)
    await lane.run(writing("b"))
    assert words(path) == ["b"]


async def test_what_the_database_refuses_is_a_store_error(lane: ConnectionThread) -> None:
    with pytest.raises(StoreError, match=r"^no such table: nowhere$") as refusal:
        await lane.run(lambda connection: connection.execute(text("SELECT 1 FROM nowhere")))
    assert isinstance(refusal.value.__cause__, OperationalError)


async def test_a_cancelled_transaction_is_given_up(lane: ConnectionThread, path: Path) -> None:
    held = Held()
    caller = asyncio.create_task(lane.run(held))
    await asyncio.to_thread(held.began.wait)
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    held.may_end.set()
    await lane.run(writing("next"))
    assert words(path) == ["next"]


async def test_a_lasting_transaction_ends_without_its_caller(
    lane: ConnectionThread, path: Path
) -> None:
    held = Held()
    caller = asyncio.create_task(lane.run(held, is_lasting=True))
    await asyncio.to_thread(held.began.wait)
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    held.may_end.set()
    await lane.run(writing("next"))
    assert words(path) == ["held", "next"]


@pytest.mark.parametrize("is_lasting", [False, True])
async def test_work_that_still_waits_its_turn(
    lane: ConnectionThread, path: Path, *, is_lasting: bool
) -> None:
    """Cancelled before it has begun, it never begins, unless it is lasting."""
    held = Held()
    first = asyncio.create_task(lane.run(held))
    await asyncio.to_thread(held.began.wait)
    caller = asyncio.create_task(lane.run(writing("queued"), is_lasting=is_lasting))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    held.may_end.set()
    await first
    await lane.run(writing("last"))
    assert words(path) == ["held", *(["queued"] if is_lasting else []), "last"]


async def test_a_transaction_waits_for_another_writer(lane: ConnectionThread, path: Path) -> None:
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="database is locked"):
        await lane.run(writing("too late"))
    patient = ConnectionThread(lane._engine, begin="BEGIN IMMEDIATE", patience=60.0)
    caller = asyncio.create_task(patient.run(writing("in time")))
    with pytest.raises(StoreError):
        await lane.run(writing("too late"))
    stranger.execute("COMMIT")
    assert await caller == "in time"
    stranger.close()
    await patient.close()
    assert words(path) == ["in time"]


async def test_a_cancelled_caller_does_not_wait_for_another_writer(
    path: Path, lane: ConnectionThread
) -> None:
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    patient = ConnectionThread(lane._engine, begin="BEGIN IMMEDIATE", patience=3600.0)
    caller = asyncio.create_task(patient.run(writing("given up")))
    with pytest.raises(StoreError):
        await lane.run(writing("too late"))
    caller.cancel()
    await asyncio.wait([caller])
    await patient.close()
    stranger.execute("COMMIT")
    stranger.close()
    assert words(path) == []


async def test_a_closed_lane_takes_no_work(lane: ConnectionThread, path: Path) -> None:
    held = Held()
    begun = asyncio.create_task(lane.run(held))
    await asyncio.to_thread(held.began.wait)
    held.may_end.set()
    await lane.close()
    await lane.close()
    await begun
    with pytest.raises(StoreError, match="closed"):
        await lane.run(writing("a"))
    assert words(path) == ["held"]
