"""The hash chains of the audit trail: every line is chained, and every change is found."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import struct
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, select, text

from sluicegate.errors import ConfigurationError, StoreError
from sluicegate.stores.approvals.audit_verification import (
    ChainEntry,
    Checkpoint,
    read_checkpoint,
    verify_audit,
)
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.audit_chain_triggers import (
    CHAIN_LENGTH,
    CHAIN_LOCK,
    CHAINS,
    COMMITMENT_FUNCTION,
    DIGEST_FUNCTION,
    line_digest,
)
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.schema import AUDIT, AUDIT_CHAIN
from tests.real_stores.databases import connection_to
from tests.stores.builders import LIMIT, claim, key, no, open_database, request, yes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import asyncpg

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


@asynccontextmanager
async def transactions_in(url: str, chains: int) -> AsyncIterator[asyncpg.Connection]:
    """Hold the locks of the first chains, as transactions do that have not committed."""
    async with connection_to(url) as connection:
        await connection.execute(
            f"SELECT pg_advisory_lock({CHAIN_LOCK} + chain) FROM generate_series(0, {chains - 1}) "
            "AS chain"
        )
        yield connection


async def broken(url: str, checkpoint: Checkpoint | None = None) -> str | None:
    return (await verify_audit(url, checkpoint)).broken


async def test_every_line_is_chained(ledger: Ledger, grants: Grants, database_url: str) -> None:
    await write_lines(ledger)
    found = await verify_audit(database_url)
    assert (found.chained, found.broken, found.unchained) == (LINES, None, 0)
    assert len(found.last.entries) == 1
    assert await read_checkpoint(database_url) == found.last


async def test_the_digest_is_the_documented_one(
    ledger: Ledger, database: Database, database_url: str
) -> None:
    await ledger.record_decisions([yes(reason="Größe ✓")], by="ann", via="sse")
    statement = select(AUDIT).order_by(AUDIT.c.id)
    lines = await database.read(lambda connection: list(connection.execute(statement)))
    digest = hashlib.sha256(b"\n0\nid=1:0\n").hexdigest()
    entries = select(AUDIT_CHAIN).where(AUDIT_CHAIN.c.number > 0).order_by(AUDIT_CHAIN.c.number)
    chain = await database.read(lambda connection: list(connection.execute(entries)))
    for line, entry in zip(lines, chain, strict=True):
        covered = {name: line._mapping[name] for name in ("id", "at", "app", "tool", "action")}
        written = f"{digest}\n{entry.number}\n"
        # Those of people are covered by commitments: see test_audit_erasure.py.
        for name, value in {
            **covered,
            "content": entry.content,
            "person": entry.person,
        }.items():
            if value is not None:
                shown = struct.pack(">d", value).hex() if name == "at" else str(value)
                written += f"{name}={len(shown.encode())}:{shown}\n"
        digest = hashlib.sha256(written.encode()).hexdigest()
    [last] = (await read_checkpoint(database_url)).entries
    assert last == ChainEntry(2, 2, digest)
    assert "person=64:" in written


async def test_concurrent_writers_lose_no_line(database_url: str) -> None:
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
    assert (found.broken, found.chained) == (None, 3 * 40 + 2 * 3 * 40)
    for database in databases:
        await database.close()


async def test_commits_do_not_wait_for_each_other(postgresql_url: str) -> None:
    database = await open_database(postgresql_url)
    ledger = Ledger(database)
    async with connection_to(postgresql_url) as other, other.transaction():
        await other.execute("SET CONSTRAINTS sluicegate_audit_chained IMMEDIATE")
        for number in range(2):
            await other.execute(
                'INSERT INTO sluicegate_audit (at, app, "user", chat, invocation, call, '
                "approval_id, tool, action) VALUES "
                f"(0, 'app', 'ann', 'chat-2', '', '{number}', '', 'pay', 'requested')"
            )
        # The other transaction is open meanwhile.
        await ledger.request([request("a"), request("b")])
        await ledger.record_decisions([yes("a")], by="ann")
    await ledger.request([request("c")])
    found = await verify_audit(postgresql_url)
    assert (found.broken, found.chained) == (None, 6)
    # Line, entry: two of the other transaction and the last one, and three beside it.
    assert [(entry.line, entry.number) for entry in found.last.entries] == [
        (6, 3),
        (5, CHAIN_LENGTH + 3),
    ]
    assert await read_checkpoint(postgresql_url) == found.last
    await database.close()


async def test_a_commit_waits_while_others_use_every_chain(postgresql_url: str) -> None:
    database = await open_database(postgresql_url)
    async with transactions_in(postgresql_url, CHAINS) as other:
        writing = asyncio.create_task(Ledger(database).request([request("a"), request("b")]))
        waits = (
            "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
            "WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
        )
        async with asyncio.timeout(LIMIT):
            while await other.fetchval(waits) == 0:
                pass
        assert not writing.done()
    await writing
    found = await verify_audit(postgresql_url)
    assert (found.broken, found.chained) == (None, 2)
    await database.close()


async def write_in_three_chains(url: str) -> Checkpoint:
    """Lines 1 to 9: chains 0, 1 and 2 have one line each in turn."""
    database = await open_database(url)
    for number in range(9):
        if number % 3 == 0:
            await Ledger(database).request([request(f"call-{number}")])
            continue
        async with transactions_in(url, number % 3):
            await Ledger(database).request([request(f"call-{number}")])
    await database.close()
    checkpoint = await read_checkpoint(url)
    assert [entry.number for entry in checkpoint.entries] == [
        3,
        CHAIN_LENGTH + 3,
        2 * CHAIN_LENGTH + 3,
    ]
    return checkpoint


def without_lines(*lines: int) -> tuple[str, ...]:
    removed = ", ".join(map(str, lines))
    return (
        f"DELETE FROM sluicegate_audit WHERE id IN ({removed})",
        f"DELETE FROM sluicegate_audit_chain WHERE line IN ({removed})",
    )


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (("UPDATE sluicegate_audit SET tool = 'x' WHERE id IN (8, 6)",), "Line 6 was changed."),
        (("UPDATE sluicegate_audit SET tool = 'x' WHERE id IN (4, 5)",), "Line 4 was changed."),
        (("DELETE FROM sluicegate_audit WHERE id = 9",), "Line 9 was removed."),
        (without_lines(5), "The line after line 2 was removed."),
        (without_lines(3), "The first line of the chain of line 6 was removed."),
        (
            (
                f"UPDATE sluicegate_audit_chain SET number = number + {CHAIN_LENGTH} "
                "WHERE line IN (3, 6, 9)",
            ),
            "Line 3 was changed.",
        ),
    ],
)
async def test_the_first_broken_line_of_all_chains_is_named(
    postgresql_url: str, changes: tuple[str, ...], named: str
) -> None:
    await write_in_three_chains(postgresql_url)
    await tamper(postgresql_url, *changes)
    assert await broken(postgresql_url) == named


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (
            (8,),
            "The chain of line 8 of the checkpoint ends after line 5: its last lines were removed.",
        ),
        (
            (7,),
            "The chain of line 7 of the checkpoint ends after line 4: its last lines were removed.",
        ),
        ((2, 5, 8), "The chain of line 8 of the checkpoint was removed."),
        ((1, 4, 7), "The chain of line 7 of the checkpoint was removed."),
    ],
)
async def test_a_checkpoint_shows_a_removed_end_of_any_chain(
    postgresql_url: str, lines: tuple[int, ...], named: str
) -> None:
    signed = await write_in_three_chains(postgresql_url)
    assert await broken(postgresql_url, signed) is None
    await tamper(postgresql_url, *without_lines(*lines))
    assert await broken(postgresql_url) is None
    assert await broken(postgresql_url, Checkpoint.parse(str(signed))) == named


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
    forged = Checkpoint((replace(signed.entries[0], digest="0" * 64),))
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
        "The chain of line 10 of the checkpoint ends after line 8: its last lines were removed."
    )


@pytest.mark.parametrize(
    "said",
    [
        "",
        "x",
        f"sluicegate audit: line 1, entry 1, sha256 {'0' * 63}",
        f"sluicegate audit: line 1, entry {'1' * 5000}, sha256 {'0' * 64}",
        "{0}\nand more",
        "{0}\n{0}",
        "{1}\n{0}",
    ],
)
def test_only_a_whole_checkpoint_is_read(said: str) -> None:
    entries = ChainEntry(1, 1, "0" * 64), ChainEntry(2, CHAIN_LENGTH + 1, "1" * 64)
    assert Checkpoint.parse(str(Checkpoint(entries))) == Checkpoint(entries)
    assert Checkpoint.parse(f"{entries[0]}\r\n") == Checkpoint(entries[:1])
    with pytest.raises(ConfigurationError, match="not a checkpoint"):
        Checkpoint.parse(said.format(*entries))


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
    for function in (DIGEST_FUNCTION, COMMITMENT_FUNCTION):
        connection.create_function(function, -1, lambda *_: "0" * 64)
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
    assert (await verify_audit(postgresql_url)).chained == 1


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
    with pytest.raises(sqlite3.OperationalError, match=COMMITMENT_FUNCTION):
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
