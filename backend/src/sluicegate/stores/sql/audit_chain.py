"""The hash chain of the audit trail, which the triggers of the database compute.

Each line has an entry in the chain, whose digest covers the line and the digest of the entry
before. A trigger adds it in the transaction of the line, so no server can leave it out, and an
older one beside a newer one need not know of it.
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

CHAIN_LOCK: Final = 0x5105_19A7_E001
"""The key of PostgreSQL's advisory lock under which a line is added to the chain."""

_GROWS: Final = "the audit trail only grows"


def line_digest(previous: str, number: int, line: Iterable[tuple[str, Value]]) -> str:
    r"""Return the SHA-256 of a line, in hexadecimal digits.

    It is computed over the digest of the entry before, the number of the entry, and
    ``NAME=LENGTH:VALUE`` for each column that is not NULL, each followed by a line feed. The
    length counts bytes of UTF-8; times are the hexadecimal digits of a big-endian IEEE 754 double.

    Args:
        previous: The digest of the entry before; empty for the first.
        number: The number of the entry, from 0.
        line: The names and values of the columns, in the order of the table.
    """
    parts = [previous.encode(), b"%d" % number]
    for name, value in line:
        if value is None:
            continue
        if isinstance(value, float):
            encoded = struct.pack(">d", value).hex().encode()
        else:
            encoded = str(value).encode()
        parts.append(b"%s=%d:%s" % (name.encode(), len(encoded), encoded))
    return hashlib.sha256(b"\n".join(parts) + b"\n").hexdigest()


def digest_values(names: Sequence[str], previous: Value, number: Value, *line: Value) -> str:
    """`line_digest` for SQLite, which passes the values of a line in the order of ``names``."""
    if not isinstance(previous, str) or not isinstance(number, int):
        raise TypeError("the chain of the audit trail has no beginning")
    return line_digest(previous, number, zip(names, line, strict=True))


def chain_statements(dialect: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the statements that chain each new line and make line and chain append-only.

    Args:
        dialect: ``sqlite`` or ``postgresql``.
        columns: The names of the columns of the trail, in their order: ``id`` and ``at``, a time,
            and texts.
    """
    return _sqlite(columns) if dialect == "sqlite" else _postgresql(columns)


def _sqlite(columns: Sequence[str]) -> tuple[str, ...]:
    values = ", ".join(f'NEW."{name}"' for name in columns)
    return (
        # REPLACE deletes a row without the triggers of DELETE, unless a connection asks for them;
        # it is undone here, and so is a line between or before the existing ones.
        "CREATE TRIGGER sluicegate_audit_chained AFTER INSERT ON sluicegate_audit BEGIN "
        f"SELECT RAISE(ABORT, '{_GROWS}') WHERE NEW.id <= "
        "(SELECT line FROM sluicegate_audit_chain ORDER BY number DESC LIMIT 1); "
        "INSERT INTO sluicegate_audit_chain (line, digest) VALUES (NEW.id, "
        f"{DIGEST_FUNCTION}((SELECT digest FROM sluicegate_audit_chain ORDER BY number DESC "
        "LIMIT 1), (SELECT max(number) + 1 FROM sluicegate_audit_chain), "
        f"{values})); END",
        "CREATE TRIGGER sluicegate_audit_chain_insert BEFORE INSERT ON sluicegate_audit_chain "
        "WHEN NEW.number IN (SELECT number FROM sluicegate_audit_chain) "
        f"BEGIN SELECT RAISE(ABORT, '{_GROWS}'); END",
        *(
            f"CREATE TRIGGER sluicegate_audit_chain_{change.lower()} BEFORE {change} "
            f"ON sluicegate_audit_chain BEGIN SELECT RAISE(ABORT, '{_GROWS}'); END"
            for change in ("UPDATE", "DELETE")
        ),
    )


def _postgresql(columns: Sequence[str]) -> tuple[str, ...]:
    fields = " || ".join(_postgresql_field(name) for name in columns)
    refuse = "EXECUTE FUNCTION sluicegate_audit_only_grows()"
    return (
        # The queries of a volatile function see what was committed while it waited for the lock.
        "CREATE OR REPLACE FUNCTION sluicegate_audit_chain_line() RETURNS trigger AS $$ "
        "DECLARE last RECORD; "
        f"BEGIN PERFORM pg_advisory_xact_lock({CHAIN_LOCK}); "
        "SELECT number, digest INTO STRICT last FROM sluicegate_audit_chain "
        "ORDER BY number DESC LIMIT 1; "
        "INSERT INTO sluicegate_audit_chain (number, line, digest) VALUES "
        "(last.number + 1, NEW.id, encode(sha256(convert_to(last.digest || chr(10) || "
        f"(last.number + 1) || chr(10) || {fields}, 'UTF8')), 'hex')); "
        "RETURN NULL; END $$ LANGUAGE plpgsql VOLATILE",
        # Deferred to the commit: the lock is the last one of a transaction, so it cannot deadlock
        # with those of rows, and it is never held while a client sends its next statement.
        "CREATE CONSTRAINT TRIGGER sluicegate_audit_chained AFTER INSERT ON sluicegate_audit "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION sluicegate_audit_chain_line()",
        "CREATE TRIGGER sluicegate_audit_chain_only_grows BEFORE UPDATE OR DELETE "
        f"ON sluicegate_audit_chain FOR EACH ROW {refuse}",
        *(
            f"CREATE TRIGGER {table}_truncate BEFORE TRUNCATE ON {table} "
            f"FOR EACH STATEMENT {refuse}"
            for table in ("sluicegate_audit", "sluicegate_audit_chain")
        ),
    )


def _postgresql_field(name: str) -> str:
    value = f'NEW."{name}"'
    text = {"at": f"encode(float8send({value}), 'hex')", "id": f"{value}::text"}.get(name, value)
    length = f"octet_length(convert_to({text}, 'UTF8'))"
    return f"coalesce('{name}=' || {length} || ':' || {text} || chr(10), '')"
