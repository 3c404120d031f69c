from __future__ import annotations

import pytest
from sqlalchemy import create_engine, inspect, make_url, select

from sluicegate.stores.schema import META, METADATA, SCHEMA_VERSION, DatabaseSeconds, create_tables


@pytest.mark.parametrize(
    ("url", "sql"),
    [
        ("sqlite://", "((julianday('now') - 2440587.5) * 86400.0)"),
        (
            "postgresql://",
            "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)",
        ),
    ],
    ids=["sqlite", "postgresql"],
)
def test_the_clock_is_spelled_for_each_database(url: str, sql: str) -> None:
    dialect = make_url(url).get_dialect()()
    assert str(DatabaseSeconds().compile(dialect=dialect)) == sql


def test_tables_are_created_once_and_kept() -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        create_tables(connection)
        create_tables(connection)
        assert set(inspect(connection).get_table_names()) == set(METADATA.tables)
        versions = list(connection.execute(select(META.c.name, META.c.value)))
    assert versions == [("schema", str(SCHEMA_VERSION))]
    engine.dispose()


def test_every_table_can_stand_beside_those_of_adk() -> None:
    assert all(name.startswith("sluicegate_") for name in METADATA.tables)
