"""Erases what the audit trail says of people, so that its chain stays valid.

The keys of the commitments are deleted, and then the columns are blanked, which the triggers of the
trail allow for parts without a key alone. Number, time, app, tool and action of a line stay. Each
erasure adds a line, which says how many lines it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import delete, func, insert, select, update

from sluicegate.stores.sql.audit_chain_triggers import CONTENT, PERSON
from sluicegate.stores.sql.database_clock import DatabaseSeconds
from sluicegate.stores.sql.schema import AUDIT, AUDIT_CHAIN, AUDIT_KEYS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

_K = AUDIT_KEYS.c
_BLANK_PERSON: Final = dict.fromkeys(PERSON)
_BLANK_LINE: Final = {
    **_BLANK_PERSON,
    **{name: None if AUDIT.c[name].nullable else "" for name in CONTENT},
}


class Erased(NamedTuple):
    """The lines that were erased, and those from before the keys, which stay."""

    lines: int
    kept: int


def erase_person(connection: Connection, app: str, user: str) -> Erased:
    """Erase the lines of a user's chats, and the user as the person who acted in others.

    Args:
        connection: The transaction of the caller.
        app: The name of the app.
        user: The user.
    """
    of_app = select(AUDIT.c.id).where(AUDIT.c.app == app)
    owned = select(_K.line).where(_K.owner == user, _K.line.in_(of_app))
    acted = connection.scalars(owned.where(_K.part == "person")).all()
    lines = connection.scalars(owned.where(_K.part == "content")).all()
    erased = set(lines) | set(acted)
    for line in lines:
        connection.execute(delete(AUDIT_KEYS).where(_K.line == line))
        connection.execute(update(AUDIT).where(AUDIT.c.id == line).values(_BLANK_LINE))
    for line in set(acted) - set(lines):
        connection.execute(delete(AUDIT_KEYS).where(_K.line == line, _K.part == "person"))
        connection.execute(update(AUDIT).where(AUDIT.c.id == line).values(_BLANK_PERSON))
    named = (AUDIT.c.app == app, (AUDIT.c.user == user) | (AUDIT.c.by == user))
    kept = connection.scalar(select(func.count()).where(*named)) or 0
    return _recorded(connection, app, Erased(len(erased), kept))


def erase_before(connection: Connection, app: str, before: ColumnElement[float]) -> Erased:
    """Erase the lines that are older than a time, in seconds since the epoch.

    Args:
        connection: The transaction of the caller.
        app: The name of the app.
        before: The time, an expression of the database.
    """
    old = (AUDIT.c.app == app, AUDIT.c.at < before)
    with_keys = select(AUDIT.c.id).where(*old, AUDIT.c.id.in_(select(_K.line)))
    lines = connection.scalars(with_keys).all()
    for line in lines:
        connection.execute(delete(AUDIT_KEYS).where(_K.line == line))
        connection.execute(update(AUDIT).where(AUDIT.c.id == line).values(_BLANK_LINE))
    committed = select(AUDIT_CHAIN.c.line).where(AUDIT_CHAIN.c.content.is_not(None))
    kept = connection.scalar(select(func.count()).where(*old, AUDIT.c.id.not_in(committed))) or 0
    return _recorded(connection, app, Erased(len(lines), kept))


def _recorded(connection: Connection, app: str, erased: Erased) -> Erased:
    """Add the line of an erasure, which names no person."""
    if erased.lines:
        nothing = {name: "" for name in (*CONTENT, "tool") if not AUDIT.c[name].nullable}
        said = {"app": app, "action": "erased", "reason": f"{erased.lines} lines"}
        connection.execute(insert(AUDIT).values(at=DatabaseSeconds(), **nothing, **said))
    return erased
