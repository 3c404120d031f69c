from __future__ import annotations

import asyncio
import sqlite3
import stat
from typing import TYPE_CHECKING

import pytest
from google.adk.events.event import Event
from google.adk.sessions.database_session_service import DatabaseSessionService
from sqlalchemy import event, select, text

from sluicegate.errors import ConfigurationError, StoreError
from sluicegate.stores.database import Database
from sluicegate.stores.ledger import DatabaseLedger
from tests.stores.builders import CHAT, approve, key, no, request

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncEngine

    from tests.stores.builders import Clock


def url_of(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


async def pragma(engine: AsyncEngine, name: str) -> object:
    async with engine.connect() as connection:
        return await connection.scalar(text(f"PRAGMA {name}"))


@pytest.mark.parametrize(
    ("name", "sessions", "ledger"),
    [
        ("journal_mode", "wal", "wal"),
        ("busy_timeout", 5_000, 5_000),
        ("synchronous", 1, 2),
        ("foreign_keys", 1, 1),
    ],
)
async def test_the_engines_are_set_up(
    database: Database, name: str, sessions: object, ledger: object
) -> None:
    assert await pragma(database.sessions, name) == sessions
    assert await pragma(database.ledger, name) == ledger


async def test_file_and_new_folders_are_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "chats.db"
    database = await Database.open(url_of(path))
    await approve(DatabaseLedger(database))
    files = list(path.parent.iterdir())
    assert {file.name for file in files} >= {"chats.db", "chats.db.lock", "chats.db-wal"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    await database.close()


async def test_a_relative_path_begins_at_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = await Database.open("sqlite+aiosqlite:///.sluicegate/chats.db")
    await database.close()
    assert (tmp_path / ".sluicegate" / "chats.db").is_file()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+asyncpg://user:hunter2@host/db",
        "sqlite:///chats.db",
        "sqlite+pysqlite:///chats.db",
        "chats.db",
        "",
        "sqlite+aiosqlite://",
        "sqlite+aiosqlite:///:memory:",
        "sqlite+aiosqlite:///file:chats.db?uri=true",
        "sqlite+aiosqlite:///chats.db?mode=ro",
        "sqlite+aiosqlite://hunter2@host/chats.db",
    ],
)
async def test_a_url_that_names_no_file_is_refused_in_one_sentence(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"sqlite\+aiosqlite:///PATH\.$") as refusal:
        await Database.open(url)
    assert "hunter2" not in str(refusal.value)
    assert refusal.value.__cause__ is None


async def test_a_second_user_of_the_file_is_refused_until_the_first_has_left(
    tmp_path: Path,
) -> None:
    path = tmp_path / "chats.db"
    link = tmp_path / "link.db"
    link.symlink_to(path)
    first = await Database.open(url_of(path))
    for name in (path, link):
        with pytest.raises(ConfigurationError, match="in use by another process; stop"):
            await Database.open(url_of(name))
    await first.close()
    second = await Database.open(url_of(link))
    assert second.is_exclusive
    await second.close()


async def test_a_shared_database_has_several_users(tmp_path: Path) -> None:
    url = url_of(tmp_path / "chats.db")
    first = await Database.open(url, exclusive=False)
    second = await Database.open(url, exclusive=False)
    await approve(DatabaseLedger(first))
    assert len(await DatabaseLedger(second).rows(CHAT)) == 1
    assert not first.is_exclusive
    await first.close()
    await second.close()


async def test_what_is_not_a_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but quite long enough to look like one " * 20)
    with pytest.raises(ConfigurationError, match=r"cannot be used: file is not a database\.$"):
        await Database.open(url_of(path))
    assert path.read_text().startswith("not a database")
    path.unlink()
    await (await Database.open(url_of(path))).close()


async def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be used: Is a directory\.$"):
        await Database.open(url_of(tmp_path))


async def test_a_file_cannot_stand_where_a_folder_must(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        await Database.open(url_of(tmp_path / "file" / "chats.db"))


async def test_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(ConfigurationError, match="or later is needed"):
        await Database.open(url_of(tmp_path / "chats.db"))


async def test_the_rows_are_there_after_a_restart(database_url: str) -> None:
    first = await Database.open(database_url)
    await approve(DatabaseLedger(first))
    await first.close()
    second = await Database.open(database_url)
    assert [row.state for row in await DatabaseLedger(second).rows(CHAT)] == ["approved"]
    await second.close()


async def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    await (await Database.open(url_of(path))).close()
    plain = sqlite3.connect(path)
    plain.execute("UPDATE sluicegate_meta SET value = '2'")
    plain.execute("DROP TABLE sluicegate_chats")
    plain.commit()
    with pytest.raises(ConfigurationError, match="newer sluicegate"):
        await Database.open(url_of(path))
    tables = {name for (name,) in plain.execute("SELECT name FROM sqlite_master")}
    assert "sluicegate_chats" not in tables
    plain.execute("UPDATE sluicegate_meta SET value = '1'")
    plain.commit()
    plain.close()
    await (await Database.open(url_of(path))).close()


async def test_a_file_locked_by_a_stranger_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("PRAGMA journal_mode=WAL")
    stranger.execute("BEGIN IMMEDIATE")
    with pytest.raises(ConfigurationError, match=r"cannot be used: database is locked\.$"):
        await Database.open(url_of(path), busy_timeout=0.01)
    stranger.close()
    await (await Database.open(url_of(path))).close()


async def test_a_locked_database_is_a_store_error_and_works_again(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    database = await Database.open(url_of(path), busy_timeout=0.01)
    ledger = DatabaseLedger(database)
    await approve(ledger)
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="database is locked"):
        await ledger.claim(key(), owner="me", args_hash="hash")
    assert [row.state for row in await ledger.rows(CHAT)] == ["approved"]
    stranger.close()
    assert await ledger.claim(key(), owner="me", args_hash="hash") is None
    await database.close()


async def test_a_full_disk_is_a_store_error_and_changes_nothing(database: Database) -> None:
    ledger = DatabaseLedger(database)
    await approve(ledger)
    await ledger.claim(key(), owner="me", args_hash="hash")
    async with database.ledger.connect() as connection:
        await connection.execute(text("PRAGMA max_page_count = 1"))
    with pytest.raises(StoreError, match="disk is full"):
        await ledger.finish(key(), owner="me", state="executed", outcome="x" * 1_000_000)
    assert [row.state for row in await ledger.rows(CHAT)] == ["executing"]
    assert await ledger.finish(key(), owner="me", state="executed", outcome="small")


async def test_an_error_repeats_nothing_of_what_was_stored(database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute(text("DROP TABLE sluicegate_approvals"))
    with pytest.raises(StoreError) as failure:
        await DatabaseLedger(database).decide([no(reason="hunter2")], by="ann")
    assert "hunter2" not in str(failure.value)
    assert "hunter2" not in str(failure.value.__cause__)


async def test_a_closed_database_stays_closed(database: Database) -> None:
    ledger = DatabaseLedger(database)
    await database.close()
    await database.close()
    with pytest.raises(StoreError, match="closed"):
        await ledger.rows(CHAT)
    with pytest.raises(StoreError, match="closed"):
        await ledger.request([request()])


@pytest.mark.parametrize(
    "moment", ["before_cursor_execute", "begin", "after_cursor_execute", "commit"]
)
async def test_a_cancelled_write_happens_wholly_or_not_at_all(
    database: Database, moment: str
) -> None:
    ledger = DatabaseLedger(database)
    writer = asyncio.create_task(ledger.request([request("a"), request("b")]))

    def cancel(*_event: object) -> None:
        writer.cancel()

    event.listen(database.ledger.sync_engine, moment, cancel)
    await asyncio.wait([writer])
    assert writer.cancelled()
    event.remove(database.ledger.sync_engine, moment, cancel)
    await ledger.request([request("next")])
    written = {row.key.call for row in await ledger.rows(CHAT)}
    assert written in ({"next"}, {"a", "b", "next"})


async def test_the_clock_is_the_databases_plus_the_offset(database: Database, clock: Clock) -> None:
    async with database.reading() as connection:
        query = text("SELECT strftime('%s', 'now')")
        before = int(await connection.scalar(query))
        now = await connection.scalar(select(database.now()))
        clock.ahead = 3600.0
        later = await connection.scalar(select(database.now()))
        after = int(await connection.scalar(query)) + 1
    assert now is not None
    assert later is not None
    assert before - 0.01 <= now <= later - 3600 + 0.01 <= after + 0.02


async def test_adk_keeps_its_sessions_in_the_same_file(database: Database) -> None:
    service = DatabaseSessionService(db_engine=database.sessions)
    session = await service.create_session(app_name="app", user_id="ann", session_id="chat-1")
    await service.append_event(session, Event(author="user"))
    await DatabaseLedger(database).request([request()])
    loaded = await service.get_session(app_name="app", user_id="ann", session_id="chat-1")
    assert loaded is not None
    assert len(loaded.events) == 1
    await service.delete_session(app_name="app", user_id="ann", session_id="chat-1")
    async with database.reading() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM events")) == 0
    assert len(await DatabaseLedger(database).rows(CHAT)) == 1
