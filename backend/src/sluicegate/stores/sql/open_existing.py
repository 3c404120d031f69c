"""Connections of commands to a database that a server may be using; they create no tables."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sqlalchemy import URL, inspect, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.ext.asyncio import AsyncConnection


@asynccontextmanager
async def open_existing(
    url: str, table: str, *, missing: str, may_write: bool = False
) -> AsyncIterator[AsyncConnection]:
    """Open a connection to a database that has a table; what is written is committed at the end.

    Args:
        url: The URL of the setting ``sessions``.
        table: The name of the table.
        missing: The sentence for a database without it.
        may_write: Whether an SQLite file is opened for writing.

    Raises:
        ConfigurationError: the database cannot be used, or has no such table.
    """
    engine = create_async_engine(_location(url, may_write=may_write))
    try:
        async with engine.begin() as connection:
            if not await connection.run_sync(lambda c: inspect(c).has_table(table)):
                raise ConfigurationError(missing)
            yield connection
    except (SQLAlchemyError, OSError) as error:
        raise ConfigurationError(
            f"The database cannot be read: {_reason(error)}; check the URL and its rights."
        ) from None
    finally:
        await engine.dispose()


def _reason(error: SQLAlchemyError | OSError) -> str:
    """Return the message of the server or the driver, without the statement."""
    cause: BaseException = error
    if isinstance(error, DBAPIError) and error.orig is not None:
        cause = error.orig.__cause__ or error.orig
    return str(cause).rstrip(".") or type(cause).__name__


def _location(url: str, *, may_write: bool) -> URL:
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
    query = {"mode": "rw" if may_write else "ro", "uri": "true"}
    return URL.create("sqlite+aiosqlite", database=f"file:{quote(str(path))}", query=query)
