"""What every database must do."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from google.adk.events.event import Event
from google.adk.sessions.database_session_service import DatabaseSessionService
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError, OperationalError

from sluicegate.errors import StoreError, StoreUnavailable
from sluicegate.stores.database import Database
from sluicegate.stores.ledger import DatabaseLedger
from sluicegate.stores.schema import META
from tests.stores.builders import CHAT, approve, request

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tests.stores.builders import Clock


_WHOLE_SECONDS = {
    "sqlite": "SELECT CAST(strftime('%s', 'now') AS INTEGER)",
    "postgresql": "SELECT CAST(floor(extract(epoch FROM clock_timestamp())) AS BIGINT)",
}


async def test_the_rows_are_there_after_a_restart(database_url: str) -> None:
    first = await Database.open(database_url)
    await approve(DatabaseLedger(first))
    await first.close()
    second = await Database.open(database_url)
    assert [row.state for row in await DatabaseLedger(second).rows(CHAT)] == ["approved"]
    await second.close()


async def test_an_error_repeats_nothing_of_what_was_to_be_stored(database: Database) -> None:
    drop = text("DROP TABLE sluicegate_approvals")
    await database.write(lambda connection: connection.execute(drop))
    with pytest.raises(StoreError) as failure:
        await DatabaseLedger(database).request([replace(request(), tool="hunter2")])
    assert "hunter2" not in str(failure.value)
    assert "hunter2" not in str(failure.value.__cause__)
    async with database.sessions.connect() as connection:
        with pytest.raises(DBAPIError) as refusal:
            await connection.execute(text("SELECT :word FROM nowhere"), {"word": "hunter2"})
    assert "hunter2" not in str(refusal.value)


async def test_a_closed_database_stays_closed(database: Database) -> None:
    ledger = DatabaseLedger(database)
    await database.close()
    await database.close()
    with pytest.raises(StoreError, match="closed"):
        await ledger.rows(CHAT)
    with pytest.raises(StoreError, match="closed"):
        await ledger.request([request()])


async def test_the_clock_is_the_databases_plus_the_offset(database: Database, clock: Clock) -> None:
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


async def test_adk_keeps_its_sessions_in_the_same_place(database: Database) -> None:
    service = DatabaseSessionService(db_engine=database.sessions)
    session = await service.create_session(app_name="app", user_id="ann", session_id="chat-1")
    await service.append_event(session, Event(author="user"))
    await DatabaseLedger(database).request([request()])
    loaded = await service.get_session(app_name="app", user_id="ann", session_id="chat-1")
    assert loaded is not None
    assert len(loaded.events) == 1
    await service.delete_session(app_name="app", user_id="ann", session_id="chat-1")
    count = text("SELECT count(*) FROM events")
    assert await database.read(lambda connection: connection.scalar(count)) == 0
    assert len(await DatabaseLedger(database).rows(CHAT)) == 1


async def test_a_write_is_tried_again_while_the_database_does_not_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluicegate.stores.database._PAUSE", 0.001)
    tries: list[int] = []

    def fail_twice(connection: Connection) -> int:
        tries.append(len(tries))
        if len(tries) < 3:
            raise OperationalError("", {}, OSError("gone"))
        return connection.scalar(text("SELECT 7")) or 0

    assert await database.write(fail_twice, patience=10) == 7
    assert tries == [0, 1, 2]


@pytest.mark.parametrize("patience", [0.0, 0.002])
async def test_patience_has_an_end(
    database: Database, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr("sluicegate.stores.database._PAUSE", 0.001)

    def fail(_: Connection) -> None:
        raise OperationalError("", {}, OSError("gone"))

    with pytest.raises(StoreUnavailable, match="gone"):
        await database.write(fail, patience=patience)


async def test_an_error_of_ours_is_not_tried_again(database: Database) -> None:
    with pytest.raises(StoreError, match="sluicegate_nowhere"):
        await database.write(
            lambda connection: connection.execute(text("DELETE FROM sluicegate_nowhere"))
        )


async def test_a_lasting_write_outlives_its_caller(database: Database) -> None:
    began, may_end = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    failed: list[int] = []

    def fail_once(connection: Connection) -> None:
        if not failed:
            failed.append(1)
            loop.call_soon_threadsafe(began.set)
            raise OperationalError("", {}, OSError("gone"))
        connection.execute(insert(META).values(name="told", value="yes"))
        loop.call_soon_threadsafe(may_end.set)

    caller = asyncio.create_task(database.write(fail_once, is_lasting=True, patience=10))
    await began.wait()
    caller.cancel()
    await asyncio.wait([caller])
    await may_end.wait()
    await database.close()
    assert caller.cancelled()


async def test_tables_of_adk_without_their_version_are_taken_over(database_url: str) -> None:
    first = await Database.open(database_url)
    await first.prepare(DatabaseSessionService(db_engine=first.sessions))
    async with first.sessions.begin() as connection:
        # As a process leaves them that dies between ADK's two transactions.
        await connection.execute(text("DELETE FROM adk_internal_metadata"))
    await first.close()
    second = await Database.open(database_url)
    sessions = DatabaseSessionService(db_engine=second.sessions)
    await second.prepare(sessions)
    await sessions.create_session(app_name="app", user_id="ann", session_id="chat")
    await second.close()
