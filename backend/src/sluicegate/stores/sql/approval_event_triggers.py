"""The triggers that write the events of approvals, in the transaction of the change.

A trigger sees the old state and the new one, so a statement that leaves the state as it was writes
nothing, and no server can leave an event out. It writes a row for each endpoint of the app. While
no app of the database has an endpoint, there are no triggers, and approvals cost what they did.
"""

from __future__ import annotations

from typing import Final

SILENT: Final = ("executing", "asked_again")
"""States without an event: what they lead to has one."""

_KEY: Final = ("app", "user", "chat", "invocation", "call", "approval_id")
REMINDER: Final = "reminder"
"""What stands for the state in the event of a reminder: the approval is still requested."""

_IS_REMINDED: Final = (
    "NEW.remind_at IS NULL AND OLD.remind_at IS NOT NULL AND NEW.state = 'requested'"
)
_IS_TOLD: Final = f"NEW.state NOT IN ({', '.join(map(repr, SILENT))})"


def removal_statements(dialect: str) -> tuple[str, ...]:
    """Return the statements that remove the triggers if they are there."""
    of_table = "" if dialect == "sqlite" else " ON sluicegate_approvals"
    return tuple(
        f"DROP TRIGGER IF EXISTS sluicegate_outbox_{name}{of_table}"
        for name in ("requested", "changed", "reminded")
    )


def creation_statements(dialect: str, now: str) -> tuple[str, ...]:
    """Return the statements that create the triggers.

    Args:
        dialect: ``sqlite`` or ``postgresql``.
        now: The time of the database as an expression, in seconds since the epoch.
    """
    # The loss of an owner has no time of its own, nor has a deadline that was noticed.
    at = (
        "CASE NEW.state WHEN 'requested' THEN NEW.requested_at WHEN 'approved' THEN NEW.decided_at "
        f"WHEN 'unknown' THEN {now} ELSE COALESCE(NEW.finished_at, {now}) END"
    )
    write = _insertion("NEW.state", at, now)
    remind = _insertion(f"'{REMINDER}'", now, now)
    if dialect == "sqlite":
        return (
            "CREATE TRIGGER sluicegate_outbox_requested AFTER INSERT ON sluicegate_approvals "
            f"BEGIN {write}; END",
            "CREATE TRIGGER sluicegate_outbox_changed AFTER UPDATE OF state "
            f"ON sluicegate_approvals WHEN NEW.state <> OLD.state AND {_IS_TOLD} "
            f"BEGIN {write}; END",
            "CREATE TRIGGER sluicegate_outbox_reminded AFTER UPDATE OF remind_at "
            f"ON sluicegate_approvals WHEN {_IS_REMINDED} BEGIN {remind}; END",
        )
    return (
        "CREATE OR REPLACE FUNCTION sluicegate_outbox_event() RETURNS trigger AS $$ "
        f"BEGIN {write}; RETURN NULL; END $$ LANGUAGE plpgsql",
        "CREATE TRIGGER sluicegate_outbox_requested AFTER INSERT ON sluicegate_approvals "
        "FOR EACH ROW EXECUTE FUNCTION sluicegate_outbox_event()",
        "CREATE TRIGGER sluicegate_outbox_changed AFTER UPDATE OF state ON sluicegate_approvals "
        f"FOR EACH ROW WHEN (NEW.state <> OLD.state AND {_IS_TOLD}) "
        "EXECUTE FUNCTION sluicegate_outbox_event()",
        "CREATE OR REPLACE FUNCTION sluicegate_outbox_reminder() RETURNS trigger AS $$ "
        f"BEGIN {remind}; RETURN NULL; END $$ LANGUAGE plpgsql",
        "CREATE TRIGGER sluicegate_outbox_reminded AFTER UPDATE OF remind_at "
        f"ON sluicegate_approvals FOR EACH ROW WHEN ({_IS_REMINDED}) "
        "EXECUTE FUNCTION sluicegate_outbox_reminder()",
    )


def _insertion(state: str, at: str, now: str) -> str:
    names = ", ".join(f'"{name}"' for name in _KEY)
    values = ", ".join(f'NEW."{name}"' for name in _KEY)
    return (
        f"INSERT INTO sluicegate_outbox ({names}, state, at, since, endpoint, attempts, next_at) "
        f"SELECT {values}, {state}, {at}, {now}, name, 0, 0 "
        "FROM sluicegate_webhooks WHERE app = NEW.app"
    )
