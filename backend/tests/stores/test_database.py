"""The behaviour of every database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from google.adk.events.event import Event
from google.adk.sessions.database_session_service import DatabaseSessionService
from sqlalchemy import insert, make_url, select, text
from sqlalchemy.exc import DBAPIError

from sluicegate.errors import StoreError, StoreUnavailable
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import SQLITE, Database, Transactions
from sluicegate.stores.sql.postgresql import PostgresServer
from sluicegate.stores.sql.schema import META
from sluicegate.stores.sql.sqlite import SqliteFile
from tests.stores.builders import CHAT, LIMIT, PATIENT, approve, open_database, request

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sluicegate.stores.sql.compiled_statements import CompiledStatement, Row
    from tests.stores.builders import Clock


_WHOLE_SECONDS = {
    "sqlite": "SELECT CAST(strftime('%s', 'now') AS INTEGER)",
    "postgresql": "SELECT CAST(floor(extract(epoch FROM clock_timestamp())) AS BIGINT)",
}


async def test_rows_survive_a_restart(database_url: str) -> None:
    first = await open_database(database_url)
    await approve(Ledger(first))
    await first.close()
    second = await open_database(database_url)
    assert [row.state for row in await Ledger(second).rows(CHAT)] == ["approved"]
    await second.close()


async def test_an_error_does_not_contain_bound_values(database: Database) -> None:
    drop = text("DROP TABLE sluicegate_approvals")
    await database.write(lambda connection: connection.execute(drop))
    with pytest.raises(StoreError) as failure:
        await Ledger(database).request([replace(request(), tool="hunter2")])
    assert "hunter2" not in str(failure.value)
    assert "hunter2" not in str(failure.value.__cause__)
    async with database.sessions.connect() as connection:
        with pytest.raises(DBAPIError) as refusal:
            await connection.execute(text("SELECT :word FROM nowhere"), {"word": "hunter2"})
    assert "hunter2" not in str(refusal.value)


async def test_a_closed_database_stays_closed(database: Database) -> None:
    ledger = Ledger(database)
    await database.close()
    await database.close()
    with pytest.raises(StoreError, match="closed"):
        await ledger.rows(CHAT)
    with pytest.raises(StoreError, match="closed"):
        await ledger.request([request()])


async def test_the_clock_is_that_of_the_database_plus_the_offset(
    database: Database, clock: Clock
) -> None:
    whole_seconds = text(_WHOLE_SECONDS[database.sessions.dialect.name])

    def look(connection: Connection) -> list[float]:
        clock.ahead = 0.0
        before = connection.scalar(whole_seconds)
        now = connection.scalar(select(database.now()))
        clock.ahead = 3600.0
        later = connection.scalar(select(database.now()))
        return [before, now or 0.0, (later or 0.0) - 3600, connection.scalar(whole_seconds) + 1]

    times = await database.read(look)
    # SQLite's clock has steps of a millisecond.
    assert times == sorted(times, key=lambda time: round(time, 2))


async def test_adk_stores_its_sessions_in_the_same_database(database: Database) -> None:
    service = DatabaseSessionService(db_engine=database.sessions)
    session = await service.create_session(app_name="app", user_id="ann", session_id="chat-1")
    await service.append_event(session, Event(author="user"))
    await Ledger(database).request([request()])
    loaded = await service.get_session(app_name="app", user_id="ann", session_id="chat-1")
    assert loaded is not None
    assert len(loaded.events) == 1
    await service.delete_session(app_name="app", user_id="ann", session_id="chat-1")
    count = text("SELECT count(*) FROM events")
    assert await database.read(lambda connection: connection.scalar(count)) == 0
    assert len(await Ledger(database).rows(CHAT)) == 1


class FailingTransactions:
    """Transactions whose first single statements fail as if the database were unavailable."""

    def __init__(self, transactions: Transactions, failures: int) -> None:
        self._transactions = transactions
        self._failures = failures
        self.attempts = 0
        self.attempted, self.executed = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transactions, name)

    async def execute(
        self, prepared: CompiledStatement, values: Any, *, shielded: bool = False
    ) -> list[Row]:
        self.attempts += 1
        self.attempted.set()
        if self.attempts <= self._failures:
            raise StoreUnavailable("gone")
        rows = await self._transactions.execute(prepared, values, shielded=shielded)
        self.executed.set()
        return rows


Fail = Callable[[int], tuple[Database, FailingTransactions]]


@pytest.fixture
async def fail(database_url: str) -> AsyncIterator[Fail]:
    """Makes the first single statements of a database fail."""
    await (await open_database(database_url)).close()
    url = make_url(database_url)
    transactions: Transactions
    if url.drivername == SQLITE:
        transactions = await SqliteFile.open(url, exclusive=True, busy_timeout=LIMIT)
    else:
        transactions = await PostgresServer.open(url, PATIENT)
    opened: list[Database] = []

    def make(failures: int) -> tuple[Database, FailingTransactions]:
        failing = FailingTransactions(transactions, failures)
        timings = replace(PATIENT, retry_pause=0.001)
        opened.append(Database(cast("Transactions", failing), timings=timings))
        return opened[-1], failing

    yield make
    for database in opened:
        await database.close()
    await transactions.close()


def note(database: Database) -> CompiledStatement:
    return database.prepare(insert(META).values(name="told", value="yes").returning(META.c.value))


async def test_a_statement_is_retried_while_the_database_is_unavailable(fail: Fail) -> None:
    database, failing = fail(2)
    assert await database.execute(note(database), {}, retry_for=LIMIT) == [{"value": "yes"}]
    assert failing.attempts == 3


@pytest.mark.parametrize("seconds", [0.0, 0.002])
async def test_retries_come_to_an_end(fail: Fail, seconds: float) -> None:
    database, _ = fail(1_000_000)
    with pytest.raises(StoreUnavailable, match="gone"):
        await database.execute(note(database), {}, retry_for=seconds)


async def test_an_error_that_may_not_pass_is_not_retried(database: Database) -> None:
    with pytest.raises(StoreError, match="sluicegate_nowhere"):
        await database.write(
            lambda connection: connection.execute(text("DELETE FROM sluicegate_nowhere"))
        )


async def test_a_shielded_statement_outlives_its_caller(fail: Fail) -> None:
    database, failing = fail(1)
    work = database.execute(note(database), {}, shielded=True, retry_for=LIMIT)
    caller = asyncio.create_task(work)
    await failing.attempted.wait()
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    await failing.executed.wait()


async def test_tables_of_adk_without_a_version_are_completed(database_url: str) -> None:
    first = await open_database(database_url)
    await first.create_session_tables(DatabaseSessionService(db_engine=first.sessions))
    async with first.sessions.begin() as connection:
        # As after the death of a process between ADK's two transactions.
        await connection.execute(text("DELETE FROM adk_internal_metadata"))
    await first.close()
    second = await open_database(database_url)
    sessions = DatabaseSessionService(db_engine=second.sessions)
    await second.create_session_tables(sessions)
    await sessions.create_session(app_name="app", user_id="ann", session_id="chat")
    await second.close()
