"""The hash chains of the audit trail, which the triggers of the database compute.

Each line has an entry in a chain, whose digest covers the line and the digest of the entry
before. A trigger adds it in the transaction of the line, so no server can leave it out, and an
older one beside a newer one need not know of it.

What a line says of people is in the digest as two commitments, each with a random key of its own:
`CONTENT`, which is about the user of the chat, and `PERSON`, which is about the person who acted.
Once the key is deleted the values may be blanked, and nothing else; the chain stays valid.

SQLite has one writer and one chain. On PostgreSQL a transaction adds to the first chain that no
other transaction adds to, so commits do not wait for each other.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Value = str | int | float | None

DIGEST_FUNCTION: Final = "sluicegate_line_digest"
"""The SQL function on our SQLite connections, called with the arguments of `digest_of`."""

COMMITMENT_FUNCTION: Final = "sluicegate_commitment"
"""The SQL function on our SQLite connections, called with the arguments of `commitment_of`."""

OPEN: Final = ("id", "at", "app", "tool", "action")
"""The columns of a line that its digest covers by their values, and that always stay."""

CONTENT: Final = ("user", "chat", "invocation", "call", "approval_id", "args_hash")
PERSON: Final = ("by", "via", "reason")
PARTS: Final = {"content": CONTENT, "person": PERSON}
"""The columns of each commitment, by the column of the chain and the name of the key."""

_NULLABLE: Final = (*PERSON, "args_hash")

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
    return _sha256(f"{previous}\n{number}\n", line)


def commitment(key: str, values: Iterable[tuple[str, Value]]) -> str:
    """Return the commitment to some columns of a line: as `line_digest`, after the key alone."""
    return _sha256(f"{key}\n", values)


def _sha256(head: str, values: Iterable[tuple[str, Value]]) -> str:
    parts = [head]
    for name, value in values:
        if value is None:
            continue
        shown = struct.pack(">d", value).hex() if isinstance(value, float) else str(value)
        length = len(shown) if shown.isascii() else len(shown.encode())
        parts.append(f"{name}={length}:{shown}\n")
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def digest_of(previous: str, number: int, *pairs: Value) -> str:
    """`line_digest` for SQLite, which passes names and values in turn."""
    return line_digest(previous, number, _pairs(pairs))


def commitment_of(key: str, *pairs: Value) -> str:
    """`commitment` for SQLite, which passes names and values in turn."""
    return commitment(key, _pairs(pairs))


def _pairs(values: tuple[Value, ...]) -> Iterator[tuple[str, Value]]:
    return zip(map(str, values[::2]), values[1::2], strict=True)


def is_blank(part: str, values: Iterable[tuple[str, Value]]) -> bool:
    """Whether the columns of a part are as an erased line has them."""
    return all(value in (None, "") for name, value in values if name in PARTS[part])


def key_protection(dialect: str) -> str:
    """Return the statement that lets keys be added and deleted, but not changed."""
    if dialect == "sqlite":
        return (
            "CREATE TRIGGER sluicegate_audit_keys_update BEFORE UPDATE ON sluicegate_audit_keys "
            f"BEGIN SELECT RAISE(ABORT, '{_GROWS}'); END"
        )
    return (
        "CREATE TRIGGER sluicegate_audit_keys_update BEFORE UPDATE ON sluicegate_audit_keys "
        f"FOR EACH ROW {_REFUSE}"
    )


def creation_statements(dialect: str) -> tuple[str, ...]:
    """Return the statements that chain each new line and make line and chain append-only.

    Args:
        dialect: ``sqlite`` or ``postgresql``.
    """
    if dialect == "sqlite":
        return (*_sqlite_replacements(), *_SQLITE_PROTECTION)
    return (*_postgresql_replacements(), *_POSTGRESQL_PROTECTION)


def replacement_statements(dialect: str) -> tuple[str, ...]:
    """Return the statements that replace the triggers that an older version has created."""
    return _sqlite_replacements() if dialect == "sqlite" else _postgresql_replacements()


LOCK_TRAIL: Final = "LOCK TABLE sluicegate_audit IN ACCESS EXCLUSIVE MODE"
"""The statement for PostgreSQL before the trail or its chain is altered.

Transactions that have added a line end first, with the function that they began with: at their
commit they add to the chain, so it must not be locked before the trail.
"""


def _sqlite_replacements() -> tuple[str, ...]:
    return (
        "DROP TRIGGER IF EXISTS sluicegate_audit_chained",
        _sqlite_trigger(),
        "DROP TRIGGER IF EXISTS sluicegate_audit_update",
        "CREATE TRIGGER sluicegate_audit_update BEFORE UPDATE ON sluicegate_audit "
        f"WHEN NOT ({_may_erase('IS')}) BEGIN SELECT RAISE(ABORT, '{_GROWS}'); END",
    )


def _sqlite_trigger() -> str:
    acts = " OR ".join(f'NEW."{name}" IS NOT NULL' for name in PERSON)
    shown = ", ".join(f"'{name}', NEW.\"{name}\"" for name in OPEN)
    # REPLACE deletes a row without the triggers of DELETE, unless a connection asks for them; it
    # is undone here, and so is a line between or before the existing ones. Without a last entry
    # there is no digest, which the table refuses.
    return (
        "CREATE TRIGGER sluicegate_audit_chained AFTER INSERT ON sluicegate_audit BEGIN "
        f"SELECT RAISE(ABORT, '{_GROWS}') WHERE NEW.id <= "
        "(SELECT line FROM sluicegate_audit_chain ORDER BY number DESC LIMIT 1); "
        "INSERT INTO sluicegate_audit_keys (line, part, owner, key) "
        "VALUES (NEW.id, 'content', NEW.\"user\", lower(hex(randomblob(32)))); "
        "INSERT INTO sluicegate_audit_keys (line, part, owner, key) "
        'SELECT NEW.id, \'person\', coalesce(NEW."by", NEW."user"), lower(hex(randomblob(32))) '
        f"WHERE {acts}; "
        "INSERT INTO sluicegate_audit_chain (line, content, person, digest) "
        "SELECT NEW.id, of_content, of_person, "
        f"(SELECT {DIGEST_FUNCTION}(digest, number + 1, {shown}, "
        "'content', of_content, 'person', of_person) "
        "FROM sluicegate_audit_chain ORDER BY number DESC LIMIT 1) "
        f"FROM (SELECT ({_sqlite_commitment('content')}) AS of_content, "
        f"({_sqlite_commitment('person')}) AS of_person); END"
    )


def _sqlite_commitment(part: str) -> str:
    values = ", ".join(f"'{name}', NEW.\"{name}\"" for name in PARTS[part])
    return (
        f"SELECT {COMMITMENT_FUNCTION}(key, {values}) FROM sluicegate_audit_keys "
        f"WHERE line = NEW.id AND part = '{part}'"
    )


def _may_erase(same: str) -> str:
    """Return the condition under which a line may be updated: parts without a key are blanked.

    Args:
        same: The operator of the database for values that are equal or both NULL.
    """
    unchanged = {name: f'NEW."{name}" {same} OLD."{name}"' for name in (*OPEN, *CONTENT, *PERSON)}
    conditions = [unchanged[name] for name in OPEN]
    conditions.append(f"NOT ({' AND '.join(unchanged.values())})")
    # Lines from before the keys are in the chain with their values.
    conditions.append(
        "EXISTS (SELECT 1 FROM sluicegate_audit_chain WHERE line = OLD.id AND content IS NOT NULL)"
    )
    for part, columns in PARTS.items():
        kept = " AND ".join(unchanged[name] for name in columns)
        blank = " AND ".join(
            f'NEW."{name}" IS NULL' if name in _NULLABLE else f"NEW.\"{name}\" = ''"
            for name in columns
        )
        has_key = (
            f"EXISTS (SELECT 1 FROM sluicegate_audit_keys WHERE line = OLD.id AND part = '{part}')"
        )
        conditions.append(f"(({kept}) OR ({blank} AND NOT {has_key}))")
    return " AND ".join(conditions)


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


def _postgresql_replacements() -> tuple[str, ...]:
    return (
        _postgresql_function(),
        "CREATE OR REPLACE FUNCTION sluicegate_audit_erases() RETURNS trigger AS $$ "
        f"BEGIN IF NOT ({_may_erase('IS NOT DISTINCT FROM')}) THEN "
        f"RAISE EXCEPTION '{_GROWS}'; END IF; RETURN NEW; END $$ LANGUAGE plpgsql",
        "DROP TRIGGER IF EXISTS sluicegate_audit_only_grows ON sluicegate_audit",
        "CREATE TRIGGER sluicegate_audit_only_grows BEFORE DELETE ON sluicegate_audit "
        f"FOR EACH ROW {_REFUSE}",
        "DROP TRIGGER IF EXISTS sluicegate_audit_erases ON sluicegate_audit",
        "CREATE TRIGGER sluicegate_audit_erases BEFORE UPDATE ON sluicegate_audit "
        "FOR EACH ROW EXECUTE FUNCTION sluicegate_audit_erases()",
    )


def _postgresql_function() -> str:
    shown = " || ".join(_postgresql_field(name) for name in OPEN)
    acts = " OR ".join(f'NEW."{name}" IS NOT NULL' for name in PERSON)
    key = "replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')"
    add_key = "INSERT INTO sluicegate_audit_keys (line, part, owner, key) VALUES"
    return (
        "CREATE OR REPLACE FUNCTION sluicegate_audit_chain_line() RETURNS trigger AS $$ "
        "DECLARE chain BIGINT := 0; last RECORD; of_content TEXT; of_person TEXT; "
        f"content_key TEXT := {key}; person_key TEXT := {key}; BEGIN "
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
        f"of_content := {_postgresql_commitment('content')}; "
        f"{add_key} (NEW.id, 'content', NEW.\"user\", content_key); "
        f"IF {acts} THEN of_person := {_postgresql_commitment('person')}; "
        f'{add_key} (NEW.id, \'person\', coalesce(NEW."by", NEW."user"), person_key); END IF; '
        "INSERT INTO sluicegate_audit_chain (number, line, content, person, digest) VALUES "
        "(last.number + 1, NEW.id, of_content, of_person, encode(sha256(convert_to(last.digest "
        f"|| chr(10) || (last.number + 1) || chr(10) || {shown} "
        "|| 'content=64:' || of_content || chr(10) "
        "|| coalesce('person=64:' || of_person || chr(10), ''), 'UTF8')), 'hex')); "
        "RETURN NULL; END $$ LANGUAGE plpgsql VOLATILE"
    )


def _postgresql_commitment(part: str) -> str:
    fields = " || ".join(_postgresql_field(name) for name in PARTS[part])
    return f"encode(sha256(convert_to({part}_key || chr(10) || {fields}, 'UTF8')), 'hex')"


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
