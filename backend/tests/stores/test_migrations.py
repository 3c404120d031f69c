"""Databases of earlier versions: each is opened, extended, and keeps its rows."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from sqlalchemy import inspect, select, text
from sqlalchemy.ext.asyncio import create_async_engine

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.stores.approvals.audit_reading import AuditFilter, read_audit
from sluicegate.stores.approvals.audit_verification import read_checkpoint, verify_audit
from sluicegate.stores.approvals.grants import Grants
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sessions import ChatSessions
from sluicegate.stores.sql.audit_chain_triggers import CHAIN_LENGTH, CHAIN_LOCK
from sluicegate.stores.sql.schema import APPROVALS, META, METADATA, NAME_GRANTS, SCHEMA_VERSION
from tests.real_stores.databases import connection_to
from tests.stores.builders import LIMIT, open_database, request

if TYPE_CHECKING:
    from sqlalchemy import Connection

FIXTURES: Final = Path(__file__).parent / "fixtures"
CHAT: Final = ChatKey("shop", "ann", "chat-1")


STATES: Final = {
    "waiting": "requested",
    "denied": "denied",
    "paid": "executed",
    "again": "approved",
}


@pytest.fixture
async def schema_6(database_url: str) -> str:
    """A database that version 6 has written, with rows in every table."""
    await unpack("schema-6", database_url)
    return database_url


@pytest.fixture
async def schema_7(database_url: str) -> str:
    """As `schema_6`, of version 7, which has one chain on either database."""
    await unpack("schema-7", database_url)
    return database_url


@pytest.fixture(params=sorted(file.stem for file in FIXTURES.glob("schema-*.sql")))
async def older(request: pytest.FixtureRequest, database_url: str) -> str:
    await unpack(request.param, database_url)
    return database_url


async def unpack(name: str, url: str) -> None:
    if is_postgresql(url):
        async with connection_to(url) as connection:
            await connection.execute((FIXTURES / f"{name}.sql").read_text("utf-8"))
    else:
        unpack_file(name, Path(url.partition("///")[2]))


def unpack_file(name: str, path: Path) -> None:
    path.write_bytes(gzip.decompress((FIXTURES / f"{name}.db.gz").read_bytes()))


def is_postgresql(url: str) -> bool:
    return url.startswith("postgresql")


def rows_by_table(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    names = inspect(connection).get_table_names()
    return {
        name: [dict(row._mapping) for row in connection.execute(text(f'SELECT * FROM "{name}"'))]
        for name in names
    }


async def test_an_older_database_keeps_its_rows(older: str) -> None:
    before = await raw_rows(older)
    assert all(before.values())
    database = await open_database(older)
    after = await database.read(rows_by_table)
    version = await database.read(lambda connection: connection.scalar(select(META.c.value)))
    assert version == str(SCHEMA_VERSION)
    assert set(METADATA.tables) <= set(after)
    for name, rows in before.items():
        if name == META.name:
            continue
        if name == NAME_GRANTS:
            assert after[name] == []
            continue
        kept = [{key: row[key] for key in rows[0]} for row in after[name]]
        assert sorted(map(str, kept)) == sorted(map(str, rows)), name
    indexes = await database.read(
        lambda connection: {
            each["name"] for each in inspect(connection).get_indexes(APPROVALS.name)
        }
    )
    assert indexes == {index.name for index in APPROVALS.indexes}
    await database.close()


async def raw_rows(url: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table, read before any version migrates them."""
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        found = await connection.run_sync(rows_by_table)
    await engine.dispose()
    return found


async def test_the_approvals_and_the_chat_of_an_older_database_are_read(older: str) -> None:
    has_grants = "sluicegate_tool_grants" in await raw_rows(older)
    database = await open_database(older)
    ledger = Ledger(database)
    rows = await ledger.rows(CHAT)
    # Approvals before schema 10 cover no payload.
    assert [row.approved_payload for row in rows] == [None] * len(rows)
    states = {row.key.call: row.state for row in rows}
    assert states == STATES | {"mailed": "executed" if has_grants else "approved"}
    # Grants of schema 6 do not name what they approve.
    assert len(await Grants(database, ledger).all(CHAT)) == has_grants
    sessions = ChatSessions(database, max_bytes=1 << 20)
    await database.create_session_tables(sessions)
    session = await sessions.get_session(app_name=CHAT.app, user_id=CHAT.user, session_id=CHAT.chat)
    assert session is not None
    assert session.state == {"mood": "good"}
    assert len(session.events) == 1
    await database.close()


async def test_the_lines_of_schema_6_are_named_as_not_chained(schema_6: str) -> None:
    database = await open_database(schema_6)
    await Ledger(database).request([request("new")])
    await database.close()
    again = await open_database(schema_6)
    await again.close()
    found = await verify_audit(schema_6)
    lines = [entry async for entry in read_audit(schema_6, AuditFilter())]
    assert (found.broken, found.chained, found.unchained) == (None, 1, len(lines) - 1)
    assert found.last_unchained == lines[-2].id
    assert found.last.entries[0].line == lines[-1].id == 13


async def test_the_chain_of_schema_7_goes_on_beside_new_ones(schema_7: str) -> None:
    signed = await read_checkpoint(schema_7)
    assert (await verify_audit(schema_7, signed)).chained == 14
    database = await open_database(schema_7)
    ledger = Ledger(database)
    await ledger.request([request("first")])
    async with connection_to(schema_7) if is_postgresql(schema_7) else nullcontext() as other:
        if other is not None:
            # As a transaction that has added a line to the first chain.
            await other.execute(f"SELECT pg_advisory_lock({CHAIN_LOCK})")
        await ledger.request([request("second"), request("third")])
    await database.close()
    found = await verify_audit(schema_7, signed)
    assert (found.broken, found.chained, found.unchained) == (None, 17, 0)
    assert str(signed).startswith("sluicegate audit: line 14, entry 14, sha256 ")
    numbers = [entry.number for entry in found.last.entries]
    assert numbers == ([15, CHAIN_LENGTH + 2] if is_postgresql(schema_7) else [17])


@pytest.mark.parametrize("begins_with", ["a line", "a query of the trail"])
async def test_a_line_of_an_open_transaction_is_in_its_chain_before_the_schema_changes(
    postgresql_url: str, begins_with: str
) -> None:
    await unpack("schema-7", postgresql_url)
    waits = (
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        "WHERE datname = current_database() AND locktype = 'relation' AND NOT granted"
    )
    add_line = (
        'INSERT INTO sluicegate_audit SELECT id + 1, at, app, "user", chat, invocation, call, '
        "approval_id, tool, action FROM sluicegate_audit ORDER BY id DESC LIMIT 1"
    )
    async with connection_to(postgresql_url) as older, older.transaction():
        last = await older.fetchval("SELECT max(number) FROM sluicegate_audit_chain")
        if begins_with == "a line":
            await older.execute(add_line)
        else:
            await older.fetchval("SELECT max(id) FROM sluicegate_audit")
        opening = asyncio.create_task(open_database(postgresql_url))
        async with asyncio.timeout(LIMIT):
            while await older.fetchval(waits) == 0:
                pass
        if begins_with != "a line":
            await older.execute(add_line)
    await (await opening).close()
    found = await verify_audit(postgresql_url)
    assert (found.broken, [entry.number for entry in found.last.entries]) == (None, [last + 1])
