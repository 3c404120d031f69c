"""Reading of the audit trail: every decision and its outcome (A10)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, or_, select

from sluicegate.stores.sql.open_existing import open_existing
from sluicegate.stores.sql.schema import AUDIT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import Connection, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from sluicegate.stores.sql.database import Database

_PAGE: Final = 1_000
_C = AUDIT.c


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the trail; ``by`` and ``via`` are the person and transport of the decision.

    ``action`` is the new state of a call, ``granted`` or ``revoked``; ``at`` is seconds
    since the epoch, by the database's clock; ``args_hash`` is that of the effective arguments.
    ``approval_id`` is empty for a call that a policy refused before its approval was requested.
    """

    id: int
    at: float
    app: str
    user: str
    chat: str
    invocation: str
    call: str
    approval_id: str
    tool: str
    action: str
    by: str | None
    via: str | None
    reason: str | None
    args_hash: str | None


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A selection of entries; ``since`` is inclusive, ``until`` exclusive, in epoch seconds."""

    chat: str | None = None
    user: str | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """A selection of the entries that a person may see; times as in `AuditFilter`.

    ``text`` is a part of the tool, the reason, the approver, the chat, the id of the approval or
    the name of its user, in any letter case; in a person's own entries the user is not searched.
    """

    text: str | None = None
    tool: str | None = None
    action: str | None = None
    since: float | None = None
    until: float | None = None


class AuditTrail:
    """The entries of the trail that a person may see, or those of all users.

    A person sees those of the own chats, and what the person did to calls of others.

    Every method raises StoreError when the database fails.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        app: str,
        user: str | None,
        selection: HistoryFilter,
        *,
        limit: int,
        before: int | None,
    ) -> list[AuditEntry]:
        """Return up to ``limit`` entries, newest first, with an id below ``before``.

        ``user`` is None for those of all users.
        """
        statement = _visible(app, user, selection).order_by(_C.id.desc()).limit(limit)
        if before is not None:
            statement = statement.where(_C.id < before)

        def read(connection: Connection) -> list[AuditEntry]:
            return [AuditEntry(**row._mapping) for row in connection.execute(statement)]

        return await self._database.read(read)

    async def entries(
        self, app: str, user: str | None, selection: HistoryFilter
    ) -> AsyncIterator[AuditEntry]:
        """Read all of the entries, newest first, a page at a time; ``user`` as in `page`."""
        before: int | None = None
        while True:
            page = await self.page(app, user, selection, limit=_PAGE, before=before)
            for entry in page:
                yield entry
            if len(page) < _PAGE:
                return
            before = page[-1].id


def _visible(app: str, user: str | None, selection: HistoryFilter) -> Select[Any]:
    """Select the entries of a user's chats and what the user did in others, or all.

    Every list and every export for a person goes by it.
    """
    seen = _C.app == app
    if user is not None:
        # Each alternative is in the words of an index, so that both databases look up both.
        decided = and_(_C.app == app, _C.by == user, _C.by != _C.user)
        seen = or_(and_(_C.app == app, _C.user == user), decided)
    statement = select(AUDIT).where(seen)
    if selection.tool is not None:
        statement = statement.where(_C.tool == selection.tool)
    if selection.action is not None:
        statement = statement.where(_C.action == selection.action)
    if selection.since is not None:
        statement = statement.where(_C.at >= selection.since)
    if selection.until is not None:
        statement = statement.where(_C.at < selection.until)
    if selection.text is not None:
        columns = [_C.tool, _C.reason, _C.by, _C.chat, _C.approval_id]
        found = [column.icontains(selection.text, autoescape=True) for column in columns]
        requester = _C.user.icontains(selection.text, autoescape=True)
        found.append(requester if user is None else and_(requester, _C.user != user))
        statement = statement.where(or_(*found))
    return statement


async def read_audit(url: str, selection: AuditFilter) -> AsyncIterator[AuditEntry]:
    """Read the trail of a database from its beginning; servers may use it meanwhile.

    Raises:
        ConfigurationError: the database cannot be read or has no audit trail.
    """
    async with open_audit(url) as connection:
        last = 0
        while True:
            page = list(await connection.execute(_statement(selection, last)))
            for row in page:
                yield AuditEntry(**row._mapping)
            if len(page) < _PAGE:
                return
            last = page[-1].id


@asynccontextmanager
async def open_audit(url: str) -> AsyncIterator[AsyncConnection]:
    """Open a connection to a database with an audit trail; an SQLite file is opened read-only.

    Raises:
        ConfigurationError: the database cannot be read or has no audit trail.
    """
    missing = "The database has no audit trail; name the one that a server uses."
    async with open_existing(url, AUDIT.name, missing=missing) as connection:
        yield connection


def _statement(selection: AuditFilter, last: int) -> Select[Any]:
    statement = select(AUDIT).where(_C.id > last).order_by(_C.id).limit(_PAGE)
    if selection.chat is not None:
        statement = statement.where(_C.chat == selection.chat)
    if selection.user is not None:
        statement = statement.where(_C.user == selection.user)
    if selection.since is not None:
        statement = statement.where(_C.at >= selection.since)
    if selection.until is not None:
        statement = statement.where(_C.at < selection.until)
    return statement
