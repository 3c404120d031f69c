"""What only a database on a PostgreSQL server does."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.adk.sessions.database_session_service import DatabaseSessionService
from sqlalchemy import text

from sluicegate.errors import ConfigurationError, StoreUnavailable
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.postgresql import (
    _OWN_CONNECTIONS,
    _STATEMENT_CONNECTIONS,
    ANSWER_SECONDS,
    PostgresServer,
)
from tests.real_stores.databases import execute
from tests.real_stores.ports import free_port
from tests.real_stores.postgres import Postgres
from tests.stores.builders import CHAT, approve, key, request, yes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, TextClause


@pytest.fixture
def own_server(real_stores_folder: Path, tmp_path: Path) -> Iterator[Postgres]:
    """A server that may be killed."""
    server = Postgres(real_stores_folder / tmp_path.name)
    server.create()
    server.start()
    yield server
    server.stop()


def name_of(url: str) -> str:
    return url.rpartition("/")[2]


async def test_what_is_committed_outlives_a_power_cut(
    postgres: Postgres, postgresql_url: str
) -> None:
    await execute(
        postgres, f"ALTER DATABASE {name_of(postgresql_url)} SET synchronous_commit = off"
    )
    database = await Database.open(postgresql_url)
    query = text("SHOW synchronous_commit")
    assert await database.write(lambda connection: connection.scalar(query)) == "on"
    await database.close()


async def test_servers_that_start_at_once_make_one_schema(postgresql_url: str) -> None:
    databases = await asyncio.gather(*(Database.open(postgresql_url) for _ in range(6)))
    await approve(Ledger(databases[0]))
    for database in databases:
        assert not database.is_exclusive
        assert len(await Ledger(database).rows(CHAT)) == 1
        await database.close()


async def test_a_missing_driver_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    monkeypatch.delitem(sys.modules, "sluicegate.stores.sql.postgresql")
    with pytest.raises(ConfigurationError, match=r"pip install 'sluicegate\[postgresql\]'"):
        await Database.open("postgresql+asyncpg://user:hunter2@localhost/db")


async def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    url = f"postgresql+asyncpg://ann:hunter2@127.0.0.1:{free_port()}/chats"
    with pytest.raises(ConfigurationError, match=r"ann:\*\*\*@127\.0\.0\.1.* cannot be used") as no:
        await Database.open(url)
    assert "hunter2" not in str(no.value)


async def test_a_database_that_is_not_there_is_named(postgres: Postgres) -> None:
    with pytest.raises(ConfigurationError, match='"nowhere" does not exist'):
        await Database.open(postgres.url("nowhere"))


@pytest.mark.parametrize("apart", [-3600.0, -1.5, 1.5, 3600.0])
async def test_a_clock_that_is_wrong_is_refused(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch, apart: float
) -> None:
    real = time.time
    monkeypatch.setattr("sluicegate.stores.sql.postgresql.time.time", lambda: real() + apart)
    with pytest.raises(ConfigurationError, match="seconds apart; set both by the same time"):
        await Database.open(postgresql_url)


async def test_a_server_that_is_killed_is_unavailable_and_works_again(own_server: Postgres) -> None:
    database = await Database.open(own_server.url())
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


async def test_a_server_that_does_not_answer_is_told_in_time(
    own_server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = await Database.open(own_server.url())
    ledger = Ledger(database)
    await approve(ledger)
    own_server.freeze()
    with monkeypatch.context() as patched:
        patched.setattr("sluicegate.stores.sql.postgresql.ANSWER_SECONDS", 0.2)
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await ledger.claim(key(), owner="me", args_hash="hash")
    own_server.thaw()
    # The claim may have arrived; what counts is that its owner was not told that it won.
    row = await ledger.claim(key(), owner="other", args_hash="hash")
    assert row is None or row.owner == "me"
    await database.close()
    assert ANSWER_SECONDS < 5


async def test_a_transaction_that_was_given_up_changes_nothing(postgresql_url: str) -> None:
    database = await Database.open(postgresql_url)
    ledger = Ledger(database)
    await approve(ledger)
    async with database.sessions.begin() as other:
        await other.execute(text("SELECT * FROM sluicegate_approvals FOR UPDATE"))
        refused = asyncio.create_task(ledger.refuse(key(), "not today"))
        lasting = asyncio.create_task(
            database.write(lambda connection: connection.execute(_rename()), is_lasting=True)
        )
        while await waiting(database) < 2:
            pass
        for task in (refused, lasting):
            task.cancel()
        await asyncio.wait([refused, lasting])
    while await waiting(database):
        pass
    [row] = await ledger.rows(CHAT)
    assert (row.state, row.tool) == ("approved", "renamed")
    await database.close()


def _rename() -> TextClause:
    return text("UPDATE sluicegate_approvals SET tool = 'renamed'")


async def waiting(database: Database) -> int:
    """How many transactions wait for a lock."""
    query = text(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )

    def count(connection: Connection) -> int:
        return connection.scalar(query) or 0

    return await database.read(count)


async def test_a_pool_that_is_used_up_makes_nobody_wait_for_ever(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluicegate.stores.sql.postgresql.POOL_SECONDS", 0.05)
    database = await Database.open(postgresql_url)
    server = database._transactions
    assert isinstance(server, PostgresServer)
    ledger = Ledger(database)
    connections = [await server._own.connect() for _ in range(_OWN_CONNECTIONS)]
    with pytest.raises(StoreUnavailable):
        await ledger.supersede([key()])
    assert await ledger.rows(CHAT) == []
    statements = [await server._statements.acquire() for _ in range(_STATEMENT_CONNECTIONS)]
    with monkeypatch.context() as patched:
        patched.setattr("sluicegate.stores.sql.postgresql.ANSWER_SECONDS", 0.05)
        with pytest.raises(StoreUnavailable):
            await ledger.rows(CHAT)
    for connection in connections:
        await connection.close()
    for statement in statements:
        await server._statements.release(statement)
    assert await ledger.supersede([key()]) == await ledger.rows(CHAT) == []
    await database.close()


async def test_adk_makes_its_tables_once_for_processes_that_start_at_once(
    postgresql_url: str,
) -> None:
    databases = await asyncio.gather(*(Database.open(postgresql_url) for _ in range(6)))
    services = [DatabaseSessionService(db_engine=database.sessions) for database in databases]
    await asyncio.gather(
        *(
            database.make_tables_of(service)
            for database, service in zip(databases, services, strict=True)
        )
    )
    for number, service in enumerate(services):
        await service.create_session(app_name="app", user_id="ann", session_id=f"chat-{number}")
    for database in databases:
        await database.close()
