"""The hash chain of the audit trail: every line is chained, and every change is found."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import struct
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, select, text

from sluicegate.errors import ConfigurationError, StoreError
from sluicegate.stores.approvals.audit_verification import (
    Checkpoint,
    read_checkpoint,
    verify_audit,
)
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.audit_chain import line_digest
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.schema import AUDIT
from tests.real_stores.databases import connection_to
from tests.stores.builders import claim, key, no, open_database, request, yes

if TYPE_CHECKING:
    from pathlib import Path

    from sluicegate.stores.approvals.grants import Grants

LINES = 10
UNPROTECTED = {
    "sqlite": ("PRAGMA writable_schema=ON", "DELETE FROM sqlite_master WHERE type = 'trigger'"),
    "postgresql": ("SET session_replication_role = replica",),
}


async def write_lines(ledger: Ledger) -> None:
    """Ten lines, of single statements and of transactions."""
    await ledger.request([request("a"), request("b", ttl=7200.5), request("c")])
    await ledger.record_decisions([yes("a", reason="Größe ✓"), no("b")], by="ann", via="sse")
    await claim(ledger, "d")
    await ledger.store_outcome(key("d"), owner="me", state="failed", outcome={"error": "No."})
    await ledger.supersede([key("c")])


async def tamper(url: str, *statements: str) -> None:
    """Execute statements as a person who may do anything with the database."""
    if url.startswith("postgresql"):
        async with connection_to(url) as connection:
            for statement in (*UNPROTECTED["postgresql"], *statements):
                await connection.execute(statement)
        return
    path = url.partition("///")[2]
    with sqlite3.connect(path) as connection:
        for statement in UNPROTECTED["sqlite"]:
            connection.execute(statement)
    connection.close()
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


async def broken(url: str, checkpoint: Checkpoint | None = None) -> str | None:
    return (await verify_audit(url, checkpoint)).broken


async def test_every_line_is_chained(ledger: Ledger, grants: Grants, database_url: str) -> None:
    await write_lines(ledger)
    found = await verify_audit(database_url)
    assert (found.last.number, found.broken, found.unchained) == (LINES, None, 0)
    assert await read_checkpoint(database_url) == found.last


async def test_the_digest_is_the_documented_one(
    ledger: Ledger, database: Database, database_url: str
) -> None:
    await ledger.record_decisions([yes(reason="Größe ✓")], by="ann", via="sse")
    statement = select(AUDIT).order_by(AUDIT.c.id)
    lines = await database.read(lambda connection: list(connection.execute(statement)))
    digest = hashlib.sha256(b"\n0\nid=1:0\n").hexdigest()
    for number, line in enumerate(lines, start=1):
        written = f"{digest}\n{number}\n"
        for name, value in line._mapping.items():
            if value is not None:
                shown = struct.pack(">d", value).hex() if name == "at" else str(value)
                written += f"{name}={len(shown.encode())}:{shown}\n"
        digest = hashlib.sha256(written.encode()).hexdigest()
    assert (await read_checkpoint(database_url)).digest == digest
    assert "reason=11:Größe ✓\n" in written


async def test_concurrent_writers_share_one_chain(database_url: str) -> None:
    """Two servers on PostgreSQL; on SQLite one server with many chats."""
    shared = database_url.startswith("postgresql")
    databases = [await open_database(database_url) for _ in range(2 if shared else 1)]
    ledgers = [Ledger(database) for database in databases]
    calls = [f"call-{number}" for number in range(40)]
    await asyncio.gather(
        *(claim(ledgers[number % len(ledgers)], call) for number, call in enumerate(calls))
    )
    # Rows that one transaction closes at once, while others decide each of them.
    groups = [[f"{call}-{number}" for number in range(3)] for call in calls]
    await ledgers[0].request([request(call) for group in groups for call in group])
    await asyncio.gather(
        *(ledgers[0].supersede([key(call) for call in group]) for group in groups),
        *(ledgers[-1].record_decisions([no(call)], by="ann") for group in groups for call in group),
    )
    found = await verify_audit(database_url)
    assert (found.broken, found.last.number) == (None, 3 * 40 + 2 * 3 * 40)
    for database in databases:
        await database.close()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE sluicegate_audit SET tool = 'refund' WHERE id = 4", "Line 4 was changed."),
        ("UPDATE sluicegate_audit SET at = at + 0.000001 WHERE id = 4", "Line 4 was changed."),
        ("UPDATE sluicegate_audit SET reason = NULL WHERE id = 4", "Line 4 was changed."),
        ("UPDATE sluicegate_audit SET args_hash = '' WHERE id = 10", "Line 10 was changed."),
        ("DELETE FROM sluicegate_audit WHERE id = 7", "Line 7 was removed."),
        (
            "DELETE FROM sluicegate_audit_chain WHERE number = 7",
            "The line after line 6 was removed.",
        ),
        (
            "UPDATE sluicegate_audit_chain SET digest = 'x' WHERE number = 7",
            "Line 7 was changed.",
        ),
        (
            "UPDATE sluicegate_audit_chain SET line = 3 WHERE number = 0",
            "The beginning of the chain was changed.",
        ),
        ("DELETE FROM sluicegate_audit_chain", "The chain has no beginning."),
        (
            'INSERT INTO sluicegate_audit (id, at, app, "user", chat, invocation, call, '
            "approval_id, tool, action) VALUES (99, 0, '', '', '', '', '', '', '', 'approved')",
            "Line 99 was added beside the chain.",
        ),
    ],
)
async def test_the_first_broken_line_is_named(
    ledger: Ledger, database: Database, database_url: str, change: str, named: str
) -> None:
    await write_lines(ledger)
    await database.close()
    await tamper(database_url, change)
    assert await broken(database_url) == named


def test_two_columns_cannot_be_read_as_one() -> None:
    assert line_digest("", 1, [("by", "ann\nvia=3:sse")]) != line_digest(
        "", 1, [("by", "ann"), ("via", "sse")]
    )


async def test_a_signed_checkpoint_shows_a_chain_that_was_written_anew(
    ledger: Ledger, database: Database, database_url: str
) -> None:
    await write_lines(ledger)
    signed = Checkpoint.parse(f"{await read_checkpoint(database_url)}\n")
    assert await broken(database_url, signed) is None
    await ledger.request([request("later")])
    assert await broken(database_url, signed) is None
    forged = Checkpoint(signed.line, signed.number, "0" * 64)
    assert await broken(database_url, forged) == (
        "Line 10 or one before it is not the one of the checkpoint."
    )
    await database.close()
    await tamper(
        database_url,
        "DELETE FROM sluicegate_audit WHERE id > 8",
        "DELETE FROM sluicegate_audit_chain WHERE number > 8",
    )
    assert await broken(database_url) is None
    assert await broken(database_url, signed) == (
        "The trail ends after line 8, before line 10 of the checkpoint: its last lines were "
        "removed."
    )


@pytest.mark.parametrize(
    "said", ["", "x", f"sluicegate audit: line 1, entry 1, sha256 {'0' * 63}", "{}\nand more"]
)
def test_only_a_whole_checkpoint_is_read(said: str) -> None:
    printed = str(Checkpoint(1, 1, "0" * 64))
    assert Checkpoint.parse(printed) == Checkpoint(1, 1, "0" * 64)
    with pytest.raises(ConfigurationError, match="not a checkpoint"):
        Checkpoint.parse(said.format(printed))


@pytest.mark.parametrize("recursive", ["ON", "OFF"])
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OR REPLACE INTO sluicegate_audit SELECT 1, at, app, user, chat, invocation, call, "
        "approval_id, 'refund', action, by, via, reason, args_hash FROM sluicegate_audit",
        "REPLACE INTO sluicegate_audit SELECT * FROM sluicegate_audit",
        "INSERT INTO sluicegate_audit SELECT * FROM sluicegate_audit WHERE true "
        "ON CONFLICT (id) DO UPDATE SET tool = 'refund'",
        "UPDATE OR REPLACE sluicegate_audit SET id = 2 WHERE id = 1",
        "INSERT INTO sluicegate_audit SELECT -1, at, app, user, chat, invocation, call, "
        "approval_id, tool, action, by, via, reason, args_hash FROM sluicegate_audit",
        "REPLACE INTO sluicegate_audit_chain SELECT * FROM sluicegate_audit_chain",
        "UPDATE sluicegate_audit_chain SET digest = ''",
        "DELETE FROM sluicegate_audit_chain",
    ],
)
async def test_a_foreign_writer_replaces_no_line_of_a_file(
    sqlite_url: str, folder: Path, statement: str, recursive: str
) -> None:
    database = await open_database(sqlite_url)
    await Ledger(database).request([request("a"), request("b")])
    await database.close()
    connection = sqlite3.connect(folder / "chats.db")
    connection.execute(f"PRAGMA recursive_triggers={recursive}")
    connection.create_function("sluicegate_line_digest", -1, lambda *_: "0" * 64)
    before = list(connection.execute("SELECT * FROM sluicegate_audit"))
    with pytest.raises(sqlite3.DatabaseError, match="the audit trail only grows"):
        connection.execute(statement)
    assert list(connection.execute("SELECT * FROM sluicegate_audit")) == before
    connection.close()
    assert (await verify_audit(sqlite_url)).broken is None


@pytest.mark.parametrize("table", ["sluicegate_audit", "sluicegate_audit_chain"])
@pytest.mark.parametrize("change", ["TRUNCATE {}", "DELETE FROM {}", "UPDATE {} SET {} = {}"])
async def test_nothing_is_removed_on_postgresql(
    postgresql_url: str, table: str, change: str
) -> None:
    database = await open_database(postgresql_url)
    await Ledger(database).request([request()])
    column = "tool" if table == "sluicegate_audit" else "digest"
    statement = text(change.format(table, column, column))
    with pytest.raises(StoreError, match="the audit trail only grows"):
        await database.write(lambda connection: connection.execute(statement))
    await database.close()
    assert (await verify_audit(postgresql_url)).last.number == 1


async def test_without_a_chain_no_transition_is_stored(postgresql_url: str) -> None:
    await (await open_database(postgresql_url)).close()
    await tamper(postgresql_url, "DELETE FROM sluicegate_audit_chain")
    database = await open_database(postgresql_url)
    ledger = Ledger(database)
    with pytest.raises(StoreError):
        await ledger.request([request()])
    with pytest.raises(StoreError):
        await ledger.request([request("a"), request("b")])
    assert await ledger.rows(request().key.chat_key) == []
    await database.close()


async def test_a_program_without_the_digest_adds_no_line_to_a_file(
    sqlite_url: str, folder: Path
) -> None:
    await (await open_database(sqlite_url)).close()
    connection = sqlite3.connect(folder / "chats.db")
    with pytest.raises(sqlite3.OperationalError, match="sluicegate_line_digest"):
        connection.execute(
            "INSERT INTO sluicegate_audit VALUES (1, 0, '', '', '', '', '', '', '', '', '', '', "
            "'', '')"
        )
    connection.close()


async def test_a_database_without_a_chain_is_reported_in_one_sentence(folder: Path) -> None:
    engine = create_engine(f"sqlite:///{folder / 'old.db'}")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE sluicegate_audit (id INTEGER PRIMARY KEY)")
    engine.dispose()
    url = f"sqlite+aiosqlite:///{folder / 'old.db'}"
    with pytest.raises(ConfigurationError, match="has no chain yet; start the server once"):
        await verify_audit(url)
    with pytest.raises(ConfigurationError, match="has no chain yet; start the server once"):
        await read_checkpoint(url)
