"""The audit trail: every decision and what came of it, written once and never changed (A10)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from sqlalchemy import URL, insert, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from sluicegate.errors import ConfigurationError
from sluicegate.stores.sql.schema import AUDIT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import ColumnElement, Connection, Select

    from sluicegate.core.approvals import Grant
    from sluicegate.core.keys import ChatKey

GRANTED: Final = "granted"
REVOKED: Final = "revoked"
"""What is noted of remembered approvals, besides the states of a call."""

_PAGE: Final = 1_000
_C = AUDIT.c


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One line: ``by`` and ``via`` are the person and the transport of the decision behind it.

    ``action`` is the state that a call came into, ``granted`` or ``revoked``; ``at`` is seconds
    since the epoch, by the database's clock; ``args_hash`` is that of the arguments in force.
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
    """Which entries are wanted; ``since`` is the first second, ``until`` the first one after."""

    chat: str | None = None
    user: str | None = None
    since: float | None = None
    until: float | None = None


def note_grant(
    connection: Connection,
    chat: ChatKey,
    grant: Grant,
    action: str,
    *,
    now: ColumnElement[float],
    via: str,
) -> None:
    """Note that an approval is remembered from now on, or is no more.

    ``granted_by`` of the grant is whoever does it.
    """
    entry = {
        **chat._asdict(),
        "at": now,
        "invocation": "",
        "call": "",
        "approval_id": grant.approval_id,
        "tool": grant.tool,
        "action": action,
        "by": grant.granted_by,
        "via": via or None,
    }
    connection.execute(insert(AUDIT).values(entry))


async def read_audit(url: str, wanted: AuditFilter) -> AsyncIterator[AuditEntry]:
    """Read the trail of a database from its beginning, beside whatever server uses it.

    Nothing is written: an SQLite file is opened read-only.

    Raises:
        ConfigurationError: the database cannot be read, or no server has ever used it.
    """
    engine = create_async_engine(_read_only(url))
    try:
        async with engine.connect() as connection:
            if not await connection.run_sync(lambda c: inspect(c).has_table(AUDIT.name)):
                raise ConfigurationError(
                    "The database has no audit trail; name the one that a server uses."
                )
            last = 0
            while True:
                page = list(await connection.execute(_statement(wanted, last)))
                for row in page:
                    yield AuditEntry(**row._mapping)
                if len(page) < _PAGE:
                    return
                last = page[-1].id
    except (SQLAlchemyError, OSError) as error:
        raise ConfigurationError(
            f"The database cannot be read: {type(error).__name__}; check the URL and its rights."
        ) from None
    finally:
        await engine.dispose()


def _statement(wanted: AuditFilter, last: int) -> Select[Any]:
    statement = select(AUDIT).where(_C.id > last).order_by(_C.id).limit(_PAGE)
    if wanted.chat is not None:
        statement = statement.where(_C.chat == wanted.chat)
    if wanted.user is not None:
        statement = statement.where(_C.user == wanted.user)
    if wanted.since is not None:
        statement = statement.where(_C.at >= wanted.since)
    if wanted.until is not None:
        statement = statement.where(_C.at < wanted.until)
    return statement


def _read_only(url: str) -> URL:
    try:
        parsed = make_url(url)
        parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError):
        raise ConfigurationError(
            "The setting sessions is not the URL of a database; see docs/reference/settings.md."
        ) from None
    if parsed.get_backend_name() != "sqlite":
        return parsed
    path = Path(parsed.database or "").absolute()
    if not path.is_file():
        raise ConfigurationError(f"There is no database {path}; name the one that a server uses.")
    query = {"mode": "ro", "uri": "true"}
    return URL.create("sqlite+aiosqlite", database=f"file:{quote(str(path))}", query=query)
