"""Statements that are compiled once and executed by the driver."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from sqlalchemy import bindparam, insert, make_url, select, text, update
from sqlalchemy.dialects import sqlite

from sluicegate.errors import StoreError
from sluicegate.stores.sql.compiled_statements import CompiledStatement
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.schema import META
from tests.stores.builders import open_database

POSTGRESQL = make_url("postgresql+asyncpg://").get_dialect()()
RENAMED = (
    update(META)
    .where(META.c.name == bindparam("old"), META.c.value == "fixed")
    .values(name=bindparam("new"))
)
ADDED = (
    insert(META)
    .values(name=bindparam("its_name"), value=bindparam("its_value"))
    .returning(META.c.name, META.c.value)
)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        (sqlite.dialect(), "SET name=? WHERE sluicegate_meta.name = ? AND"),
        (
            make_url("postgresql+asyncpg://").get_dialect()(),
            "SET name=$1::VARCHAR WHERE sluicegate_meta.name = $2",
        ),
    ],
    ids=["sqlite", "postgresql"],
)
def test_values_are_bound_in_the_order_of_the_placeholders(dialect: Any, sql: str) -> None:
    prepared = CompiledStatement(RENAMED, dialect)
    assert sql in prepared.sql
    values = {"old": "a", "new": None, "not of this statement": 1}
    assert prepared.arguments(values) == (None, "a", "fixed")
    with pytest.raises(KeyError, match="old"):
        prepared.arguments({"new": "b"})


async def test_the_second_statement_is_executed_only_after_a_row(sqlite_url: str) -> None:
    database = await open_database(sqlite_url)
    note = database.prepare(insert(META).values(name="noted", value=bindparam("its_value")))
    found = select(META.c.name).where(META.c.name == bindparam("its_name"))
    looking = database.prepare(found, then=note)
    noted = database.prepare(select(META.c.value).where(META.c.name == "noted"))
    assert await database.execute(looking, {"its_name": "nobody", "its_value": "seen"}) == []
    assert await database.fetch(noted, {}) == []
    rows = await database.execute(looking, {"its_name": "schema", "its_value": "seen"})
    assert rows == [{"name": "schema"}]
    assert await database.fetch(noted, {}) == [{"value": "seen"}]
    await database.close()


async def test_a_failed_statement_raises_and_changes_nothing(database: Database) -> None:
    added = database.prepare(ADDED)
    values = {"its_name": "twice", "its_value": "x"}
    assert await database.execute(added, values) == [{"name": "twice", "value": "x"}]
    with pytest.raises(StoreError, match=r"(?i)unique") as failure:
        await database.execute(added, values)
    assert "twice" not in str(failure.value)
    with pytest.raises(StoreError):
        await database.execute(database.prepare(text("UPDATE nowhere SET a = 1")), {})
    again = {"its_name": "once more", "its_value": "x"}
    assert len(await database.execute(added, again)) == 1


@pytest.mark.parametrize("value", ["a \ud800 secret", "a \0 secret"])
async def test_no_error_contains_bound_values(database: Database, value: str) -> None:
    values = {"its_name": "a", "its_value": value}
    with contextlib.suppress(StoreError):
        await database.execute(database.prepare(ADDED), values)
        # SQLite takes a zero byte.
        assert "\0" in value
        return
    with pytest.raises(StoreError) as failure:
        await database.execute(database.prepare(ADDED), values)
    assert "secret" not in str(failure.value)
