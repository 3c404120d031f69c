from __future__ import annotations

import pytest
from sqlalchemy import create_engine, insert, inspect, make_url, select, update

from sluicegate.errors import ConfigurationError
from sluicegate.stores.sql.create_or_upgrade_tables import create_or_upgrade_tables
from sluicegate.stores.sql.database_clock import DatabaseSeconds
from sluicegate.stores.sql.schema import CHATS, LEASES, META, METADATA, SCHEMA_VERSION


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
def test_the_clock_is_compiled_for_each_database(url: str, sql: str) -> None:
    dialect = make_url(url).get_dialect()()
    assert str(DatabaseSeconds().compile(dialect=dialect)) == sql


def test_tables_are_created_once() -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        create_or_upgrade_tables(connection)
        create_or_upgrade_tables(connection)
        assert set(inspect(connection).get_table_names()) == set(METADATA.tables)
        versions = list(connection.execute(select(META.c.name, META.c.value)))
    assert versions == [("schema", str(SCHEMA_VERSION))]
    engine.dispose()


def test_no_table_collides_with_those_of_adk() -> None:
    assert all(name.startswith("sluicegate_") for name in METADATA.tables)


def test_an_older_schema_is_extended_and_keeps_its_rows() -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        create_or_upgrade_tables(connection)
        everything = {t: inspect(connection).get_columns(t) for t in METADATA.tables}
        indexes = inspect(connection).get_indexes(CHATS.name)
        connection.execute(insert(CHATS).values(app="a", user="u", chat="c", updated_at=1.0))
        connection.exec_driver_sql("DROP INDEX sluicegate_chats_newest")
        connection.exec_driver_sql("ALTER TABLE sluicegate_chats DROP COLUMN folded_title")
        connection.exec_driver_sql("DROP TABLE sluicegate_leases")
        connection.execute(update(META).values(value="0"))
        create_or_upgrade_tables(connection)
        found = {t: inspect(connection).get_columns(t) for t in METADATA.tables}
        assert {t: {c["name"] for c in found[t]} for t in found} == {
            t: {c["name"] for c in everything[t]} for t in everything
        }
        assert inspect(connection).get_indexes(CHATS.name) == indexes
        assert connection.scalar(select(CHATS.c.chat)) == "c"
        assert connection.scalar(select(META.c.value)) == str(SCHEMA_VERSION)
    engine.dispose()


def test_a_newer_schema_is_refused_and_unchanged() -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        create_or_upgrade_tables(connection)
        connection.exec_driver_sql("DROP TABLE sluicegate_leases")
        connection.execute(update(META).values(value=str(SCHEMA_VERSION + 1)))
        with pytest.raises(ConfigurationError, match="newer sluicegate"):
            create_or_upgrade_tables(connection)
        assert LEASES.name not in inspect(connection).get_table_names()
    engine.dispose()
