"""Databases of earlier versions: each is opened, extended, and keeps its rows."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from sqlalchemy import inspect, select, text
from sqlalchemy.ext.asyncio import create_async_engine

from sluicegate.core.keys import ChatKey
from sluicegate.stores.approvals.audit import AuditFilter, read_audit
from sluicegate.stores.approvals.audit_verification import verify_audit
from sluicegate.stores.approvals.grants import Grants
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sessions import ChatSessions
from sluicegate.stores.sql.schema import META, METADATA, NAME_GRANTS, SCHEMA_VERSION
from tests.real_stores.databases import connection_to
from tests.stores.builders import open_database, request

if TYPE_CHECKING:
    from sqlalchemy import Connection

FIXTURES: Final = Path(__file__).parent / "fixtures"
CHAT: Final = ChatKey("shop", "ann", "chat-1")


@pytest.fixture
async def schema_6(database_url: str) -> str:
    """A database that version 6 has written, with rows in every table."""
    if database_url.startswith("sqlite"):
        unpack(Path(database_url.partition("///")[2]))
    else:
        async with connection_to(database_url) as connection:
            await connection.execute((FIXTURES / "schema-6.sql").read_text("utf-8"))
    return database_url


def unpack(path: Path) -> None:
    path.write_bytes(gzip.decompress((FIXTURES / "schema-6.db.gz").read_bytes()))


def rows_by_table(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    names = inspect(connection).get_table_names()
    return {
        name: [dict(row._mapping) for row in connection.execute(text(f'SELECT * FROM "{name}"'))]
        for name in names
    }


async def test_a_database_of_schema_6_keeps_its_rows(schema_6: str) -> None:
    before = await raw_rows(schema_6)
    assert all(before.values())
    database = await open_database(schema_6)
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
    await database.close()


async def raw_rows(url: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table, read before any version migrates them."""
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        found = await connection.run_sync(rows_by_table)
    await engine.dispose()
    return found


async def test_an_approval_of_schema_6_is_decided_and_a_chat_is_read(schema_6: str) -> None:
    database = await open_database(schema_6)
    ledger = Ledger(database)
    states = {row.key.call: row.state for row in await ledger.rows(CHAT)}
    assert states == {
        "waiting": "requested",
        "denied": "denied",
        "paid": "executed",
        "mailed": "approved",
        "again": "approved",
    }
    assert await Grants(database, ledger).all(CHAT) == []
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
    assert (found.broken, found.last.number, found.unchained) == (None, 1, len(lines) - 1)
    assert found.last_unchained == lines[-2].id
    assert found.last.line == lines[-1].id == 13
