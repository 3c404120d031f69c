"""A database of every earlier version is upgraded, with what waited and what was lost in it."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from sqlalchemy import Connection, insert, inspect, text
from sqlalchemy.ext.asyncio import create_async_engine

from sluicegate.stores.approvals.audit_verification import verify_audit
from sluicegate.stores.sql.schema import AUDIT_CHAIN, AUDIT_KEYS, METADATA, SCHEMA_VERSION
from tests.real_stores.databases import connection_to, fresh_database
from tests.server.page import patient_engines
from tests.stores.builders import open_database
from tests.upgrades.old_server import LOST, PAID, WAITING, serving
from tests.upgrades.write_fixtures import COMMITS, FIRST_ON_POSTGRESQL, FIXTURES

if TYPE_CHECKING:
    from tests.real_stores.postgres import Postgres

DATABASES = [
    (version, kind)
    for version in COMMITS
    for kind in ("sqlite", "postgresql")
    if kind == "sqlite" or version >= FIRST_ON_POSTGRESQL
]
PREVIOUS = max(COMMITS)


def test_there_is_a_database_of_every_version() -> None:
    assert set(COMMITS) == set(range(1, PREVIOUS + 1))
    # With a new version, write the fixture of the one before: see write_fixtures.py.
    assert PREVIOUS in (SCHEMA_VERSION - 1, SCHEMA_VERSION)


@asynccontextmanager
async def stored(
    version: int, kind: str, folder: Path, request: pytest.FixtureRequest
) -> AsyncIterator[str]:
    """A database as the server of a version left it."""
    if kind == "sqlite":
        path = folder / "chats.db"
        path.write_bytes(gzip.decompress((FIXTURES / f"schema-{version}.db.gz").read_bytes()))
        yield f"sqlite+aiosqlite:///{path}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    dump = gzip.decompress((FIXTURES / f"schema-{version}.sql.gz").read_bytes())
    async with fresh_database(server) as url:
        async with connection_to(url) as connection:
            await connection.execute(dump.decode())
        yield url


@pytest.fixture(params=DATABASES, ids=lambda each: f"{each[0]}-{each[1]}")
async def old_database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    version, kind = request.param
    async with stored(version, kind, tmp_path, request) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
async def previous_database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    async with stored(PREVIOUS, request.param, tmp_path, request) as url:
        yield url


@asynccontextmanager
async def served(url: str, folder: Path, paid: list[str]) -> AsyncIterator[httpx.AsyncClient]:
    """The new server, with the agent of the old one."""

    def pays(invoice: str) -> dict[str, Any]:
        paid.append(invoice)
        return {"paid": invoice}

    with patient_engines():
        async with serving(url, f"{folder}/files", pays) as http:
            yield http


async def listed(http: httpx.AsyncClient, **query: str) -> list[dict[str, Any]]:
    response = await http.get("/api/approvals", params=query)
    found: list[dict[str, Any]] = response.raise_for_status().json()["approvals"]
    return found


async def call_in(http: httpx.AsyncClient, chat: str) -> dict[str, Any]:
    """The part of the gated call of a chat."""
    messages = (await http.get(f"/api/chats/{chat}")).raise_for_status().json()["messages"]
    parts = [part for message in messages for part in message["parts"]]
    [found] = [part for part in parts if part["type"] in ("tool-pay", "dynamic-tool")]
    return dict(found)


async def test_an_old_approval_is_decided_and_its_call_runs_once(
    old_database: str, tmp_path: Path
) -> None:
    paid: list[str] = []
    async with served(old_database, tmp_path, paid) as http:
        [waiting] = await listed(http)
        assert waiting["chatId"] == WAITING
        decision = f"/api/approvals/{waiting['approvalId']}"
        for _ in range(2):
            assert (await http.post(decision, json={"approved": True})).status_code == 202
            # The turn runs detached; a resume reads it to its end.
            await http.get(f"/api/chat/{WAITING}/stream")
        assert (await call_in(http, WAITING))["output"] == {"paid": WAITING}
        assert (await call_in(http, PAID))["output"] == {"paid": PAID}
        [lost] = await listed(http, state="unknown")
        assert lost["chatId"] == LOST
        assert "output" not in await call_in(http, LOST)
        said = {"outcome": "executed", "reason": "The bank has it."}
        resolution = f"/api/approvals/{lost['approvalId']}/resolution"
        assert (await http.post(resolution, json=said)).json()["state"] == "executed"
    assert paid == [WAITING]
    assert (await verify_audit(old_database)).broken is None


def columns(connection: Connection) -> dict[str, dict[str, Any]]:
    inspector = inspect(connection)
    return {
        table: {column["name"]: column for column in inspector.get_columns(table)}
        for table in inspector.get_table_names()
        if table in METADATA.tables
    }


async def read_columns(url: str) -> dict[str, dict[str, Any]]:
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        found = await connection.run_sync(columns)
    await engine.dispose()
    return found


async def test_an_upgrade_only_adds_what_the_version_before_need_not_know(
    previous_database: str,
) -> None:
    before = await read_columns(previous_database)
    await (await open_database(previous_database)).close()
    after = await read_columns(previous_database)
    for table, old in before.items():
        assert old.keys() <= after[table].keys()
        for name, column in after[table].items():
            if name in old:
                assert str(column["type"]) == str(old[name]["type"])
                assert column["nullable"] == old[name]["nullable"]
            else:
                # A replica of the version before inserts rows without it.
                assert column["nullable"] or column["default"] is not None, (table, name)


async def test_a_replica_of_the_version_before_still_writes_into_every_table(
    previous_database: str,
) -> None:
    known = await read_columns(previous_database)
    database = await open_database(previous_database)

    def write_as_before(connection: Connection) -> list[str]:
        written = []
        for table in METADATA.sorted_tables:
            row = connection.execute(text(f"SELECT * FROM {table.name} LIMIT 1")).mappings().first()
            if row is None or table.name not in known or table in (AUDIT_CHAIN, AUDIT_KEYS):
                # The database itself writes the chain and its keys.
                continue
            values = {name: row[name] for name in known[table.name] if name in table.c}
            values |= new_key(table.name, row)
            connection.execute(insert(table).values(values))
            written.append(table.name)
        return written

    written = await database.write(write_as_before)
    assert {"sluicegate_approvals", "sluicegate_audit", "sluicegate_chats"} <= set(written)
    await database.close()
    assert (await verify_audit(previous_database)).broken is None


def new_key(table: str, row: Any) -> dict[str, Any]:
    """Values that make a row another one."""
    if table == "sluicegate_audit":
        return {"id": row["id"] + 1000}
    key = next(iter(METADATA.tables[table].primary_key.columns)).name
    return {key: f"other {row[key]}"}
