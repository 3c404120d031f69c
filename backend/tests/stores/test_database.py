"""What every database must do."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.events.event import Event
from google.adk.sessions.database_session_service import DatabaseSessionService
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError

from sluicegate.errors import StoreError, StoreUnavailable
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.schema import META
from tests.stores.builders import CHAT, approve, request

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sluicegate.stores.sql.prepared import PreparedStatement, Row
    from tests.stores.builders import Clock


_WHOLE_SECONDS = {
    "sqlite": "SELECT CAST(strftime('%s', 'now') AS INTEGER)",
    "postgresql": "SELECT CAST(floor(extract(epoch FROM clock_timestamp())) AS BIGINT)",
}


async def test_the_rows_are_there_after_a_restart(database_url: str) -> None:
    first = await Database.open(database_url)
    await approve(Ledger(first))
    await first.close()
    second = await Database.open(database_url)
    assert [row.state for row in await Ledger(second).rows(CHAT)] == ["approved"]
    await second.close()


async def test_an_error_repeats_nothing_of_what_was_to_be_stored(database: Database) -> None:
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
    await Ledger(database).request([request()])
    loaded = await service.get_session(app_name="app", user_id="ann", session_id="chat-1")
    assert loaded is not None
    assert len(loaded.events) == 1
    await service.delete_session(app_name="app", user_id="ann", session_id="chat-1")
    count = text("SELECT count(*) FROM events")
    assert await database.read(lambda connection: connection.scalar(count)) == 0
    assert len(await Ledger(database).rows(CHAT)) == 1


class Failing:
    """Lets the first statements fail as if the database were away; says when each was tried."""

    def __init__(self, database: Database, times: int, patch: pytest.MonkeyPatch) -> None:
        self._times = times
        self._execute = database._transactions.execute
        self.tries = 0
        self.began, self.done = asyncio.Event(), asyncio.Event()
        patch.setattr("sluicegate.stores.sql.database._PAUSE", 0.001)
        patch.setattr(database._transactions, "execute", self)

    async def __call__(
        self, prepared: PreparedStatement, values: Any, *, is_lasting: bool
    ) -> list[Row]:
        self.tries += 1
        self.began.set()
        if self.tries <= self._times:
            raise StoreUnavailable("gone")
        rows = await self._execute(prepared, values, is_lasting=is_lasting)
        self.done.set()
        return rows


def note(database: Database) -> PreparedStatement:
    return database.prepare(insert(META).values(name="told", value="yes").returning(META.c.value))


async def test_a_statement_is_tried_again_while_the_database_does_not_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(database, 2, monkeypatch)
    assert await database.execute(note(database), {}, patience=10) == [{"value": "yes"}]
    assert failing.tries == 3


@pytest.mark.parametrize("patience", [0.0, 0.002])
async def test_patience_has_an_end(
    database: Database, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    Failing(database, 1_000_000, monkeypatch)
    with pytest.raises(StoreUnavailable, match="gone"):
        await database.execute(note(database), {}, patience=patience)


async def test_an_error_of_ours_is_not_tried_again(database: Database) -> None:
    with pytest.raises(StoreError, match="sluicegate_nowhere"):
        await database.write(
            lambda connection: connection.execute(text("DELETE FROM sluicegate_nowhere"))
        )


async def test_a_lasting_statement_outlives_its_caller(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failing(database, 1, monkeypatch)
    work = database.execute(note(database), {}, is_lasting=True, patience=10)
    caller = asyncio.create_task(work)
    await failing.began.wait()
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    await failing.done.wait()


async def test_tables_of_adk_without_their_version_are_taken_over(database_url: str) -> None:
    first = await Database.open(database_url)
    await first.make_tables_of(DatabaseSessionService(db_engine=first.sessions))
    async with first.sessions.begin() as connection:
        # As a process leaves them that dies between ADK's two transactions.
        await connection.execute(text("DELETE FROM adk_internal_metadata"))
    await first.close()
    second = await Database.open(database_url)
    sessions = DatabaseSessionService(db_engine=second.sessions)
    await second.make_tables_of(sessions)
    await sessions.create_session(app_name="app", user_id="ann", session_id="chat")
    await second.close()
