"""The hash chains of the audit trail, which the triggers of the database compute.

Each line has an entry in a chain, whose digest covers the line and the digest of the entry
before. A trigger adds it in the transaction of the line, so no server can leave it out, and an
older one beside a newer one need not know of it.

SQLite has one writer and one chain. On PostgreSQL a transaction adds to the first chain that no
other transaction adds to, so commits do not wait for each other.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Value = str | int | float | None

DIGEST_FUNCTION: Final = "sluicegate_line_digest"
"""The SQL function on our SQLite connections, called with the arguments of `digest_values`."""

CHAINS: Final = 64
"""The chains of a PostgreSQL database; so many transactions add lines at the same time."""

CHAIN_LENGTH: Final = 10**12
"""Entry ``n`` of chain ``c`` has the number ``c * CHAIN_LENGTH + n``; all begin with entry 0."""

CHAIN_LOCK: Final = 0x5105_19A7_E001
"""The key of PostgreSQL's advisory lock of chain 0; those of the other chains follow."""

_GROWS: Final = "the audit trail only grows"


def line_digest(previous: str, number: int, line: Iterable[tuple[str, Value]]) -> str:
    r"""Return the SHA-256 of a line, in hexadecimal digits.

    It is computed over the digest of the entry before, the number of the entry, and
    ``NAME=LENGTH:VALUE`` for each column that is not NULL, each followed by a line feed. The
    length counts bytes of UTF-8; times are the hexadecimal digits of a big-endian IEEE 754 double.

    Args:
        previous: The digest of the entry before, which is entry 0 for the first of each chain;
            empty for entry 0.
        number: The number of the entry.
        line: The names and values of the columns, in the order of the table.
    """
    parts = [f"{previous}\n{number}\n"]
    for name, value in line:
        if value is None:
            continue
        shown = struct.pack(">d", value).hex() if isinstance(value, float) else str(value)
        length = len(shown) if shown.isascii() else len(shown.encode())
        parts.append(f"{name}={length}:{shown}\n")
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def digest_values(names: Sequence[str], previous: str, number: int, *line: Value) -> str:
    """`line_digest` for SQLite, which passes the values of a line in the order of ``names``."""
    return line_digest(previous, number, zip(names, line, strict=True))


def creation_statements(dialect: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the statements that chain each new line and make line and chain append-only.

    Args:
        dialect: ``sqlite`` or ``postgresql``.
        columns: The names of the columns of the trail, in their order: ``id`` and ``at``, a time,
            and texts.
    """
    if dialect == "sqlite":
        return (_sqlite_trigger(columns), *_SQLITE_PROTECTION)
    return (_postgresql_function(columns), *_POSTGRESQL_PROTECTION)


def replacement_statements(dialect: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the statements that replace the trigger that an older version has created."""
    if dialect == "sqlite":
        return "DROP TRIGGER IF EXISTS sluicegate_audit_chained", _sqlite_trigger(columns)
    # Transactions that have added a line end first, with the function that they began with.
    lock = "LOCK TABLE sluicegate_audit IN SHARE ROW EXCLUSIVE MODE"
    return lock, _postgresql_function(columns)


def _sqlite_trigger(columns: Sequence[str]) -> str:
    values = ", ".join(f'NEW."{name}"' for name in columns)
    # REPLACE deletes a row without the triggers of DELETE, unless a connection asks for them; it
    # is undone here, and so is a line between or before the existing ones. Without a last entry
    # there is no digest, which the table refuses.
    return (
        "CREATE TRIGGER sluicegate_audit_chained AFTER INSERT ON sluicegate_audit BEGIN "
        "INSERT INTO sluicegate_audit_chain (line, digest) VALUES (NEW.id, "
        f"(SELECT CASE WHEN NEW.id <= line THEN RAISE(ABORT, '{_GROWS}') "
        f"ELSE {DIGEST_FUNCTION}(digest, number + 1, {values}) END "
        "FROM sluicegate_audit_chain ORDER BY number DESC LIMIT 1)); END"
    )


_SQLITE_PROTECTION: Final = (
    "CREATE TRIGGER sluicegate_audit_chain_insert BEFORE INSERT ON sluicegate_audit_chain "
    "WHEN NEW.number IN (SELECT number FROM sluicegate_audit_chain) "
    f"BEGIN SELECT RAISE(ABORT, '{_GROWS}'); END",
    *(
        f"CREATE TRIGGER sluicegate_audit_chain_{change.lower()} BEFORE {change} "
        f"ON sluicegate_audit_chain BEGIN SELECT RAISE(ABORT, '{_GROWS}'); END"
        for change in ("UPDATE", "DELETE")
    ),
)


def _postgresql_function(columns: Sequence[str]) -> str:
    fields = " || ".join(_postgresql_field(name) for name in columns)
    return (
        "CREATE OR REPLACE FUNCTION sluicegate_audit_chain_line() RETURNS trigger AS $$ "
        "DECLARE chain BIGINT := 0; last RECORD; BEGIN "
        f"WHILE chain < {CHAINS} AND NOT pg_try_advisory_xact_lock({CHAIN_LOCK} + chain) "
        "LOOP chain := chain + 1; END LOOP; "
        # A transaction that has a lock never comes here, so this wait cannot be part of a deadlock.
        f"IF chain = {CHAINS} THEN chain := mod(pg_backend_pid(), {CHAINS}); "
        f"PERFORM pg_advisory_xact_lock({CHAIN_LOCK} + chain); END IF; "
        # The queries of a volatile function see what was committed before it had the lock.
        "SELECT number, digest INTO last FROM sluicegate_audit_chain "
        f"WHERE number > chain * {CHAIN_LENGTH} AND number < (chain + 1) * {CHAIN_LENGTH} "
        "ORDER BY number DESC LIMIT 1; "
        f"IF NOT FOUND THEN SELECT chain * {CHAIN_LENGTH} AS number, digest INTO STRICT last "
        "FROM sluicegate_audit_chain WHERE number = 0; END IF; "
        "INSERT INTO sluicegate_audit_chain (number, line, digest) VALUES "
        "(last.number + 1, NEW.id, encode(sha256(convert_to(last.digest || chr(10) || "
        f"(last.number + 1) || chr(10) || {fields}, 'UTF8')), 'hex')); "
        "RETURN NULL; END $$ LANGUAGE plpgsql VOLATILE"
    )


_REFUSE: Final = "EXECUTE FUNCTION sluicegate_audit_only_grows()"
_POSTGRESQL_PROTECTION: Final = (
    # Deferred to the commit: the lock is the last one of a transaction, so it cannot deadlock
    # with those of rows, and it is never held while a client sends its next statement.
    "CREATE CONSTRAINT TRIGGER sluicegate_audit_chained AFTER INSERT ON sluicegate_audit "
    "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION sluicegate_audit_chain_line()",
    "CREATE TRIGGER sluicegate_audit_chain_only_grows BEFORE UPDATE OR DELETE "
    f"ON sluicegate_audit_chain FOR EACH ROW {_REFUSE}",
    *(
        f"CREATE TRIGGER {table}_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT {_REFUSE}"
        for table in ("sluicegate_audit", "sluicegate_audit_chain")
    ),
)


def _postgresql_field(name: str) -> str:
    value = f'NEW."{name}"'
    text = {"at": f"encode(float8send({value}), 'hex')", "id": f"{value}::text"}.get(name, value)
    length = f"octet_length(convert_to({text}, 'UTF8'))"
    return f"coalesce('{name}=' || {length} || ':' || {text} || chr(10), '')"
