"""Creation and upgrade of our tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import (
    Table,
    delete,
    func,
    insert,
    inspect,
    select,
)
from sqlalchemy.schema import CreateColumn

from sluicegate.errors import ConfigurationError
from sluicegate.stores.sql.audit_chain_triggers import (
    LOCK_TRAIL,
    replacement_statements,
)
from sluicegate.stores.sql.schema import (
    AUDIT,
    AUDIT_CHAIN,
    LOCK,
    META,
    METADATA,
    NAME_GRANTS,
    SCHEMA_VERSION,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection


def create_or_upgrade_tables(connection: Connection) -> None:
    """Create missing tables, columns and indexes in the caller's transaction.

    A schema only grows: a column that is added later is nullable or has a default, so that an
    older server can use the same database beside a newer one. Grants of schemas before 7 are
    deleted.

    Raises:
        ConfigurationError: a newer version has created the tables; they stay unchanged.
    """
    if connection.dialect.name == "postgresql":
        # Servers that start at the same time would both try to create a table.
        connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
    if _stored_version(connection) == SCHEMA_VERSION:
        return
    inspector = inspect(connection)
    existing = set(inspector.get_table_names())
    if connection.dialect.name == "postgresql" and AUDIT.name in existing:
        connection.exec_driver_sql(LOCK_TRAIL)
    METADATA.create_all(connection)
    for table in METADATA.sorted_tables:
        if table.name in existing:
            columns = {column["name"] for column in inspector.get_columns(table.name)}
            _add_columns(connection, table, columns)
    if AUDIT_CHAIN.name in existing:
        for statement in replacement_statements(connection.dialect.name):
            connection.exec_driver_sql(statement)
    if NAME_GRANTS in existing:
        connection.exec_driver_sql(f"DELETE FROM {NAME_GRANTS}")
    connection.execute(delete(META).where(META.c.name == "schema"))
    connection.execute(insert(META).values(name="schema", value=str(SCHEMA_VERSION)))


def _stored_version(connection: Connection) -> int | None:
    version = select(META.c.value).where(META.c.name == "schema")
    exists = inspect(connection).has_table(META.name)
    stored = int(connection.scalar(version) or 0) if exists else None
    if stored is not None and stored > SCHEMA_VERSION:
        raise ConfigurationError(
            f"The database has the tables of a newer sluicegate (schema {stored}, this one knows "
            f"{SCHEMA_VERSION}); update sluicegate, or use another database."
        )
    return stored


def _add_columns(connection: Connection, table: Table, existing: set[str]) -> None:
    name = connection.dialect.identifier_preparer.format_table(table)
    for column in table.columns:
        if column.name not in existing:
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {name} ADD COLUMN {definition}")
    for index in table.indexes:
        index.create(connection, checkfirst=True)
