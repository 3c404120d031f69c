"""Our tables beside ADK's in the sessions' database.

Texts have no maximum length and times are seconds since the epoch, the same in every database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    event,
    func,
    insert,
    select,
    text,
)

from sluicegate.stores.sql.audit_chain_triggers import (
    creation_statements,
    key_protection,
    line_digest,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

SCHEMA_VERSION: Final = 18
"""Incremented with every change of tables, columns, indexes or triggers."""

LOCK: Final = 0x5105_19A7_E000
"""The key of PostgreSQL's advisory lock under which tables are created."""

METADATA: Final = MetaData()


def _chat_key() -> list[Column[str]]:
    return [Column(name, Text, primary_key=True) for name in ("app", "user", "chat")]


APPROVALS: Final = Table(
    "sluicegate_approvals",
    METADATA,
    *_chat_key(),
    Column("invocation", Text, primary_key=True),
    Column("call", Text, primary_key=True),
    Column("approval_id", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("args_hash", Text, nullable=False),
    Column("requested_at", Double, nullable=False),
    Column("deadline", Double, nullable=False),
    Column("state", Text, nullable=False),
    Column("answer", Boolean),
    Column("reason", Text),
    Column("decided_by", Text),
    Column("decided_at", Double),
    Column("owner", Text),
    Column("claimed_at", Double),
    # JSON as text: unlike the JSON types it holds every string and keeps the order of keys.
    Column("outcome", Text),
    Column("finished_at", Double),
    # What the call did beside its result: changes of the state, the end of a loop (JSON).
    Column("actions", Text),
    # Further JSON: the arguments of the request, and those that the person changed them to.
    Column("arguments", Text),
    Column("edits", Text),
    Column("edits_hash", Text),
    Column("hint", Text),
    # The grant that has approved the call.
    Column("grant_id", Text),
    Column("via", Text),
    # The path of the agent that calls.
    Column("agent", Text),
    Column("definition_hash", Text),
    # JSON: what is new in the tool's definition, and the grant that the decision asks for.
    Column("changed", Text),
    Column("remember", Text),
    # JSON: the payload of the confirmation, and what the person changed it to.
    Column("payload", Text),
    Column("edited_payload", Text),
    # JSON: the people who decide, and what one of them has answered in place of the tool.
    Column("approvers", Text),
    Column("response", Text),
    # When to remind them, and what an expiry means.
    Column("remind_at", Double),
    Column("at_expiry", Text),
    # JSON: what the call would do, as the card shows it, and its digest.
    Column("preview", Text),
    Column("preview_hash", Text),
    Index("sluicegate_approvals_waiting", "app", "user", "state", "requested_at"),
    Index("sluicegate_approvals_due", "app", "state", "deadline"),
    # The first page of an inbox ends there, and is not sorted from all that waits.
    Index("sluicegate_approvals_newest", "app", "state", "requested_at"),
)

DECISIONS: Final = Table(
    "sluicegate_decisions",
    METADATA,
    *_chat_key(),
    Column("invocation", Text, primary_key=True),
    Column("call", Text, primary_key=True),
    # From 1, in the order of the decisions on one approval.
    Column("number", Integer, primary_key=True),
    Column("approval_id", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("approved", Boolean, nullable=False),
    Column("reason", Text),
    Column("via", Text),
    Column("at", Double, nullable=False),
    # Of the arguments and the payload that it is about.
    Column("digest", Text, nullable=False),
    # JSON: what the person changed them to.
    Column("edits", Text),
    Column("edited_payload", Text),
    # The number of the edit after which it no longer counts.
    Column("voided_by", Integer),
)

ENTITLEMENTS: Final = Table(
    "sluicegate_entitlements",
    METADATA,
    Column("app", Text, primary_key=True),
    # A user or a role, with its kind.
    Column("subject", Text, primary_key=True),
    Column("approval_id", Text, primary_key=True),
    Column("requested_at", Double, nullable=False),
    *(Column(name, Text, nullable=False) for name in ("user", "chat", "invocation", "call")),
    Index("sluicegate_entitlements_newest", "app", "subject", "requested_at"),
    Index("sluicegate_entitlements_of_approval", "app", "approval_id"),
)

USER_ROLES: Final = Table(
    "sluicegate_user_roles",
    METADATA,
    Column("user", Text, primary_key=True),
    # JSON: the names of the roles with which the user was last seen.
    Column("roles", Text, nullable=False),
    Column("seen_at", Double, nullable=False),
)

GRANTS: Final = Table(
    "sluicegate_tool_grants",
    METADATA,
    *_chat_key(),
    Column("id", Text, primary_key=True),
    Column("tool", Text, nullable=False),
    Column("agent", Text, nullable=False),
    # JSON: the definition of the tool, and the arguments that must have these values.
    Column("definition", Text, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("approval_id", Text, nullable=False),
    Column("granted_by", Text, nullable=False),
    Column("granted_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)

NAME_GRANTS: Final = "sluicegate_grants"
"""The grants of schemas before 7: they name a tool alone, so they approve nothing any more."""

AUDIT: Final = Table(
    "sluicegate_audit",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at", Double, nullable=False),
    *(Column(name, Text, nullable=False) for name in ("app", "user", "chat")),
    Column("invocation", Text, nullable=False),
    Column("call", Text, nullable=False),
    Column("approval_id", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("by", Text),
    Column("via", Text),
    Column("reason", Text),
    Column("args_hash", Text),
    Index("sluicegate_audit_of_chat", "app", "user", "chat"),
    # What people did to the calls of others; without such people it has no line.
    Index(
        "sluicegate_audit_for_others",
        "app",
        "by",
        sqlite_where=text('"by" <> "user"'),
        postgresql_where=text('"by" <> "user"'),
    ),
)
_ONLY_GROWS: Final = {
    "sqlite": (
        "CREATE TRIGGER sluicegate_audit_delete BEFORE DELETE ON sluicegate_audit "
        "BEGIN SELECT RAISE(ABORT, 'the audit trail only grows'); END",
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION sluicegate_audit_only_grows() RETURNS trigger AS $$ "
        "BEGIN RAISE EXCEPTION 'the audit trail only grows'; END $$ LANGUAGE plpgsql",
    ),
}
"""Statements that make each database refuse to delete a line, also by this program.

Those of the chain refuse every update but an erasure.
"""


def _protect(_audit: Table, connection: Connection, **_options: Any) -> None:
    for statement in _ONLY_GROWS[connection.dialect.name]:
        connection.exec_driver_sql(statement)


event.listen(AUDIT, "after_create", _protect)

AUDIT_CHAIN: Final = Table(
    "sluicegate_audit_chain",
    METADATA,
    # The entry 0 is the beginning; its line is the last one that is not chained, or 0. The first
    # digits of a number are those of the chain.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("line", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    # The commitments that the digest covers; entries before schema 15 cover the values.
    Column("content", Text),
    Column("person", Text),
    Index("sluicegate_audit_chain_of_line", "line"),
)

AUDIT_KEYS: Final = Table(
    "sluicegate_audit_keys",
    METADATA,
    Column("line", BigInteger, primary_key=True),
    # The commitment that it is the key of.
    Column("part", Text, primary_key=True),
    # The person whose data it is.
    Column("owner", Text, nullable=False),
    Column("key", Text, nullable=False),
    Index("sluicegate_audit_keys_of_owner", "owner"),
)
AUDIT_KEYS.add_is_dependent_on(AUDIT)


def _protect_keys(_keys: Table, connection: Connection, **_options: Any) -> None:
    connection.exec_driver_sql(key_protection(connection.dialect.name))


event.listen(AUDIT_KEYS, "after_create", _protect_keys)
AUDIT_CHAIN.add_is_dependent_on(AUDIT)
AUDIT_CHAIN.add_is_dependent_on(AUDIT_KEYS)


def _begin_chain(chain: Table, connection: Connection, **_options: Any) -> None:
    for statement in creation_statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
    # PostgreSQL's trigger has locked the trail, so no line is missed.
    last = connection.scalar(select(func.coalesce(func.max(AUDIT.c.id), 0)))
    begin = {"number": 0, "line": last, "digest": line_digest("", 0, [("id", last)])}
    connection.execute(insert(chain).values(begin))


event.listen(AUDIT_CHAIN, "after_create", _begin_chain)

LEASES: Final = Table(
    "sluicegate_leases",
    METADATA,
    *_chat_key(),
    Column("owner", Text, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("until", Double, nullable=False),
    Column("wants_stop", Boolean),
    Column("read_until", Double),
    # A newer socket at another process wants the chat that is open live.
    Column("wants_release", Boolean),
)

CHATS: Final = Table(
    "sluicegate_chats",
    METADATA,
    *_chat_key(),
    Column("title", Text),
    # The title as searches compare it; databases fold only some alphabets.
    Column("folded_title", Text),
    Column("updated_at", Double, nullable=False),
    Index("sluicegate_chats_newest", "app", "user", "updated_at", "chat"),
)

UPLOADS: Final = Table(
    "sluicegate_uploads",
    METADATA,
    *_chat_key(),
    Column("name", Text, primary_key=True),
    Column("uploaded_at", Double, nullable=False),
    Column("size", BigInteger),
    # Set once a message refers to the file, which is then no longer due.
    Column("is_kept", Boolean),
    Index("sluicegate_uploads_oldest", "app", "uploaded_at"),
)

WORKERS: Final = Table(
    "sluicegate_workers",
    METADATA,
    Column("app", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("url", Text, nullable=False),
    Column("until", Double, nullable=False),
)

COOKIE_SESSIONS: Final = Table(
    "sluicegate_cookie_sessions",
    METADATA,
    # Of the id in the cookie, which also gives the key of the token.
    Column("digest", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("until", Double, nullable=False),
    Index("sluicegate_cookie_sessions_of_user", "user", "created_at"),
)

WEBHOOKS: Final = Table(
    "sluicegate_webhooks",
    METADATA,
    # The endpoints to which the servers of an app deliver.
    Column("app", Text, primary_key=True),
    Column("name", Text, primary_key=True),
)

OUTBOX: Final = Table(
    "sluicegate_outbox",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    *(Column(name, Text, nullable=False) for name in ("app", "user", "chat", "invocation", "call")),
    Column("approval_id", Text, nullable=False),
    # The new state of the approval, and when it had it.
    Column("state", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("endpoint", Text, nullable=False),
    # Attempts are made from here on, for a limited time.
    Column("since", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    # None for a dead letter.
    Column("next_at", Double),
    Column("error", Text),
    Index("sluicegate_outbox_due", "app", "endpoint", "next_at", "id"),
    Index("sluicegate_outbox_of_call", "app", "user", "chat", "invocation", "call", "endpoint"),
    # An id that was used is never used again.
    sqlite_autoincrement=True,
)

META: Final = Table(
    "sluicegate_meta",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
