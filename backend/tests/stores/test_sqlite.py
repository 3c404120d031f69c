"""Databases in a SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from sluicegate.errors import ConfigurationError, StoreError
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.schema import SCHEMA_VERSION
from sluicegate.stores.sql.sqlite import FileLock
from tests.engine.loop_time import LoopTime
from tests.stores.builders import CHAT, LIMIT, PATIENT, approve, key, open_database, request

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection


IMPATIENT = replace(PATIENT, busy=0.01)


def url_of(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


@pytest.mark.parametrize(
    ("name", "sessions", "written", "read"),
    [
        ("journal_mode", "wal", "wal", "wal"),
        ("synchronous", 1, 2, 2),
        ("busy_timeout", 4_000, 0, 4_000),
        ("foreign_keys", 1, 1, 1),
    ],
)
async def test_the_connections_are_set_up(
    sqlite_url: str, name: str, sessions: object, written: object, read: object
) -> None:
    query = text(f"PRAGMA {name}")
    database = await Database.open(sqlite_url)
    async with database.sessions.connect() as connection:
        assert await connection.scalar(query) == sessions
    assert await database.write(lambda connection: connection.scalar(query)) == written
    assert await database.read(lambda connection: connection.scalar(query)) == read
    await database.close()


async def test_file_and_new_folders_are_private(folder: Path) -> None:
    path = folder / "new" / "deep" / "chats.db"
    database = await open_database(url_of(path))
    await approve(Ledger(database))
    files = list(path.parent.iterdir())
    assert {file.name for file in files} >= {"chats.db", "chats.db.lock", "chats.db-wal"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    await database.close()


async def test_a_relative_path_begins_at_the_working_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    database = await open_database("sqlite+aiosqlite:///.sluicegate/chats.db")
    await database.close()
    assert (folder / ".sluicegate" / "chats.db").is_file()


@pytest.mark.parametrize(
    "url",
    [
        "mysql+aiomysql://user:hunter2@host/db",
        "postgresql://user:hunter2@host/db",
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
async def test_a_url_that_names_no_database_is_refused_in_one_sentence(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"write sqlite\+aiosqlite:///PATH") as refusal:
        await open_database(url)
    assert "hunter2" not in str(refusal.value)
    assert refusal.value.__cause__ is None


async def test_a_second_user_of_the_file_is_refused_until_the_first_has_closed_it(
    folder: Path,
) -> None:
    path = folder / "chats.db"
    link = folder / "link.db"
    link.symlink_to(path)
    first = await open_database(url_of(path))
    for name in (path, link):
        with pytest.raises(ConfigurationError, match="in use by another process; stop"):
            await open_database(url_of(name))
    await first.close()
    second = await open_database(url_of(link))
    assert second.is_exclusive
    await second.close()


async def test_a_shared_database_has_several_users(folder: Path) -> None:
    url = url_of(folder / "chats.db")
    first = await open_database(url, exclusive=False)
    second = await open_database(url, exclusive=False)
    await approve(Ledger(first))
    assert len(await Ledger(second).rows(CHAT)) == 1
    assert not first.is_exclusive
    await first.close()
    await second.close()


async def test_a_file_that_is_no_database_is_refused_and_unchanged(folder: Path) -> None:
    path = folder / "notes.txt"
    path.write_text("not a database, but quite long enough to look like one " * 20)
    with pytest.raises(ConfigurationError, match=r"cannot be used: file is not a database\.$"):
        await open_database(url_of(path))
    assert path.read_text().startswith("not a database")
    path.unlink()
    await (await open_database(url_of(path))).close()


async def test_a_folder_is_no_database(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be used: Is a directory\.$"):
        await open_database(url_of(folder))


async def test_a_path_below_a_file_is_refused(folder: Path) -> None:
    (folder / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        await open_database(url_of(folder / "file" / "chats.db"))


async def test_an_old_sqlite_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(ConfigurationError, match="or later is needed"):
        await open_database(url_of(folder / "chats.db"))


async def test_a_newer_schema_is_refused_and_unchanged(folder: Path) -> None:
    path = folder / "chats.db"
    await (await open_database(url_of(path))).close()
    plain = sqlite3.connect(path)
    plain.execute(f"UPDATE sluicegate_meta SET value = '{SCHEMA_VERSION + 1}'")
    plain.execute("DROP TABLE sluicegate_chats")
    plain.commit()
    with pytest.raises(ConfigurationError, match="newer sluicegate"):
        await open_database(url_of(path))
    tables = {name for (name,) in plain.execute("SELECT name FROM sqlite_master")}
    assert "sluicegate_chats" not in tables
    plain.execute(f"UPDATE sluicegate_meta SET value = '{SCHEMA_VERSION}'")
    plain.commit()
    plain.close()
    await (await open_database(url_of(path))).close()


async def test_a_file_locked_by_another_program_cannot_be_opened(folder: Path) -> None:
    path = folder / "chats.db"
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("PRAGMA journal_mode=WAL")
    stranger.execute("BEGIN IMMEDIATE")
    with pytest.raises(ConfigurationError, match=r"cannot be used: database is locked\.$"):
        await open_database(url_of(path), timings=IMPATIENT)
    stranger.close()
    await (await open_database(url_of(path))).close()


async def test_a_locked_database_is_a_store_error_and_works_again(folder: Path) -> None:
    path = folder / "chats.db"
    database = await open_database(url_of(path), timings=IMPATIENT)
    ledger = Ledger(database)
    await approve(ledger)
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="database is locked"):
        await ledger.claim(key(), owner="me", args_hash="hash")
    assert [row.state for row in await ledger.rows(CHAT)] == ["approved"]
    stranger.close()
    assert await ledger.claim(key(), owner="me", args_hash="hash") is None
    await database.close()


async def test_a_write_excludes_others_from_its_beginning(folder: Path) -> None:
    url = url_of(folder / "chats.db")
    first = await open_database(url, exclusive=False)
    second = await open_database(url, exclusive=False, timings=IMPATIENT)
    began, may_end = threading.Event(), threading.Event()

    def dawdle(_connection: Connection) -> None:
        began.set()
        may_end.wait(LIMIT)

    writer = asyncio.create_task(first.write(dawdle))
    await asyncio.to_thread(began.wait)
    with pytest.raises(StoreError, match="database is locked"):
        await Ledger(second).request([request()])
    may_end.set()
    await writer
    await Ledger(second).request([request()])
    await first.close()
    await second.close()


async def test_a_full_disk_is_a_store_error_and_changes_nothing(sqlite_url: str) -> None:
    database = await open_database(sqlite_url)
    ledger = Ledger(database)
    await approve(ledger)
    await ledger.claim(key(), owner="me", args_hash="hash")
    await database.write(lambda connection: connection.scalar(text("PRAGMA max_page_count = 1")))
    large = "x" * 1_000_000
    storing = asyncio.ensure_future(
        ledger.store_outcome(key(), owner="me", state="executed", outcome=large)
    )
    with LoopTime.of_running_loop() as time:
        while not storing.done():
            # The outcome of a call is retried for half a minute.
            time.advance(1)
            await asyncio.sleep(0)
    with pytest.raises(StoreError, match="disk is full"):
        await storing
    assert [row.state for row in await ledger.rows(CHAT)] == ["executing"]
    assert await ledger.store_outcome(key(), owner="me", state="executed", outcome="small")
    await database.close()


def test_a_held_lock_is_refused_until_its_release(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    first = FileLock(path)
    with pytest.raises(BlockingIOError):
        FileLock(path)
    first.release()
    first.release()
    second = FileLock(path)
    with pytest.raises(BlockingIOError):
        FileLock(path)
    second.release()


def test_the_file_of_a_lock_is_private_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    FileLock(path).release()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
