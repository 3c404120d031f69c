"""Databases on a PostgreSQL server."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import asyncpg
import pytest
from google.adk.sessions.database_session_service import DatabaseSessionService
from sqlalchemy import func, make_url, select, text

from sluicegate.errors import ConfigurationError, StoreUnavailable
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.postgresql import (
    STATEMENT_CONNECTIONS,
    TRANSACTION_CONNECTIONS,
    PostgresServer,
    clocks_agree,
)
from sluicegate.stores.sql.time_limits import DatabaseTimings
from tests.real_stores.databases import connection_to, execute
from tests.real_stores.ports import free_port
from tests.real_stores.postgres import Postgres
from tests.stores.builders import CHAT, LIMIT, PATIENT, approve, key, open_database, request, yes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from sqlalchemy import TextClause

_T = TypeVar("_T")


@pytest.fixture
def own_server(real_stores_folder: Path, tmp_path: Path) -> Iterator[Postgres]:
    """A server that a test may kill."""
    server = Postgres(real_stores_folder / tmp_path.name)
    server.create()
    server.start()
    yield server
    server.stop()


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


async def test_commits_survive_a_power_cut(postgres: Postgres, postgresql_url: str) -> None:
    await execute(
        postgres, f"ALTER DATABASE {name_of(postgresql_url)} SET synchronous_commit = off"
    )
    database = await open_database(postgresql_url)
    query = text("SHOW synchronous_commit")
    assert await database.write(lambda connection: connection.scalar(query)) == "on"
    await database.close()


async def test_servers_that_start_at_once_create_one_schema(postgresql_url: str) -> None:
    databases = await asyncio.gather(*(open_database(postgresql_url) for _ in range(6)))
    await approve(Ledger(databases[0]))
    for database in databases:
        assert not database.is_exclusive
        assert len(await Ledger(database).rows(CHAT)) == 1
        await database.close()


async def test_a_missing_driver_is_reported_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    monkeypatch.delitem(sys.modules, "sluicegate.stores.sql.postgresql")
    with pytest.raises(ConfigurationError, match=r"pip install asyncpg"):
        await open_database("postgresql+asyncpg://user:hunter2@localhost/db")


async def test_an_unreachable_server_is_named_without_the_password() -> None:
    url = f"postgresql+asyncpg://ann:hunter2@127.0.0.1:{free_port()}/chats"
    with pytest.raises(ConfigurationError, match=r"ann:\*\*\*@127\.0\.0\.1.* cannot be used") as no:
        await open_database(url)
    assert "hunter2" not in str(no.value)


async def test_a_missing_database_is_named(postgres: Postgres) -> None:
    with pytest.raises(ConfigurationError, match='"nowhere" does not exist'):
        await open_database(postgres.url("nowhere"))


@pytest.mark.parametrize("apart", [-3600.0, 3600.0])
async def test_a_wrong_clock_is_refused(postgresql_url: str, apart: float) -> None:
    with pytest.raises(ConfigurationError, match="seconds apart; set both by the same time"):
        await PostgresServer.open(
            make_url(postgresql_url), PATIENT, wall_clock=lambda: time.time() + apart
        )


@pytest.mark.parametrize(
    ("now", "agrees"), [(98.5, False), (99.0, True), (104.0, True), (104.5, False)]
)
def test_clocks_may_differ_by_a_second(now: float, *, agrees: bool) -> None:
    before, after = 100.0, 103.0
    assert clocks_agree(before, now, after) is agrees


async def test_a_killed_server_is_unavailable_until_its_restart(own_server: Postgres) -> None:
    database = await open_database(own_server.url())
    ledger = Ledger(database)
    await ledger.request([request()])
    own_server.kill()
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await ledger.record_decisions([yes()], by="ann")
        with pytest.raises(StoreUnavailable):
            await ledger.rows(CHAT)
    own_server.start()
    assert [row.state for row in await ledger.rows(CHAT)] == ["requested"]
    await ledger.record_decisions([yes()], by="ann")
    await database.close()


def test_a_request_learns_in_time_that_the_database_is_down() -> None:
    timings = DatabaseTimings()
    assert max(timings.connect, timings.pool, timings.command, timings.response) < 5


async def test_an_unresponsive_server_is_unavailable_in_time(own_server: Postgres) -> None:
    database = await open_database(own_server.url())
    await approve(Ledger(database))
    timings = replace(PATIENT, response=2.0)
    hasty = await eventually(lambda: Database.open(own_server.url(), timings=timings))
    await eventually(lambda: Ledger(hasty).rows(CHAT))
    own_server.freeze()
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await Ledger(hasty).claim(key(), owner="me", args_hash="hash")
    own_server.thaw()
    # The claim may have arrived; its owner has only learned that it may not have won.
    row = await Ledger(database).claim(key(), owner="other", args_hash="hash")
    assert row is None or row.owner == "me"
    await hasty.close()
    await database.close()


async def eventually(attempt: Callable[[], Awaitable[_T]]) -> _T:
    """Attempt what a busy machine may not do in time until it succeeds."""
    async with asyncio.timeout(LIMIT):
        while True:
            with contextlib.suppress(ConfigurationError, StoreUnavailable):
                return await attempt()


async def test_a_cancelled_transaction_changes_nothing(postgresql_url: str) -> None:
    database = await open_database(postgresql_url)
    ledger = Ledger(database)
    await approve(ledger)
    async with connection_to(postgresql_url) as other, other.transaction():
        await other.execute("SELECT * FROM sluicegate_approvals FOR UPDATE")
        refused = asyncio.create_task(ledger.refuse(key(), "not today"))
        shielded = asyncio.create_task(
            database.write(lambda connection: connection.execute(_rename()), shielded=True)
        )
        await blocked(other, 2)
        for task in (refused, shielded):
            task.cancel()
        await asyncio.wait([refused, shielded])
    # Closing the database waits for the transactions that have begun.
    await database.close()
    database = await open_database(postgresql_url)
    [row] = await Ledger(database).rows(CHAT)
    assert (row.state, row.tool) == ("approved", "renamed")
    await database.close()


def _rename() -> TextClause:
    return text("UPDATE sluicegate_approvals SET tool = 'renamed'")


async def blocked(connection: asyncpg.Connection, count: int) -> None:
    """Wait until that many transactions wait for a lock."""
    query = (
        "SELECT pg_stat_clear_snapshot(), (SELECT count(*) FROM pg_stat_activity "
        "WHERE wait_event_type = 'Lock' AND datname = current_database())"
    )
    async with asyncio.timeout(LIMIT):
        while (await connection.fetchrow(query))[1] < count:
            pass


async def test_a_call_does_not_wait_for_an_exhausted_pool(postgresql_url: str) -> None:
    database = await open_database(postgresql_url)
    hasty = await open_database(postgresql_url, timings=replace(PATIENT, pool=1.0))
    ledger = Ledger(hasty)
    lock = select(func.pg_advisory_lock(1))
    async with connection_to(postgresql_url) as holder:
        await holder.execute("SELECT pg_advisory_lock(1)")
        transactions = [
            asyncio.create_task(hasty.write(lambda connection: connection.execute(lock).all()))
            for _ in range(TRANSACTION_CONNECTIONS)
        ]
        await blocked(holder, TRANSACTION_CONNECTIONS)
        with pytest.raises(StoreUnavailable):
            await ledger.supersede([key()])
        # Single statements have connections of their own.
        await eventually(lambda: ledger.rows(CHAT))
        waiting = hasty.prepare(lock)
        statements = [
            asyncio.create_task(eventually(lambda: hasty.execute(waiting, {})))
            for _ in range(STATEMENT_CONNECTIONS)
        ]
        await blocked(holder, TRANSACTION_CONNECTIONS + STATEMENT_CONNECTIONS)
        with pytest.raises(StoreUnavailable):
            await ledger.rows(CHAT)
        for task in (*transactions, *statements):
            task.cancel()
        await asyncio.wait([*transactions, *statements])
    await eventually(lambda: ledger.supersede([key()]))
    await eventually(lambda: ledger.rows(CHAT))
    await hasty.close()
    await database.close()


async def test_adk_creates_its_tables_once_for_processes_that_start_at_once(
    postgresql_url: str,
) -> None:
    databases = await asyncio.gather(*(open_database(postgresql_url) for _ in range(6)))
    services = [DatabaseSessionService(db_engine=database.sessions) for database in databases]
    await asyncio.gather(
        *(
            database.create_session_tables(service)
            for database, service in zip(databases, services, strict=True)
        )
    )
    for number, service in enumerate(services):
        await service.create_session(app_name="app", user_id="ann", session_id=f"chat-{number}")
    for database in databases:
        await database.close()
