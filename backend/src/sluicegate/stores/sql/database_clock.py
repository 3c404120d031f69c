"""The database's clock, which all processes that share the database read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Double, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

if TYPE_CHECKING:
    from sqlalchemy.sql.compiler import SQLCompiler


class DatabaseSeconds(FunctionElement[float]):
    """The database's current time in seconds since the epoch."""

    inherit_cache = True
    type = Double()


@compiles(DatabaseSeconds, "sqlite")
def _sqlite_seconds(_element: DatabaseSeconds, _compiler: SQLCompiler, **_options: Any) -> str:
    # unixepoch('subsec') is NULL before SQLite 3.42, and a lease with it would never end.
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(DatabaseSeconds, "postgresql")
def _postgresql_seconds(_element: DatabaseSeconds, _compiler: SQLCompiler, **_options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"


NOW: Final = DatabaseSeconds() + bindparam("clock_ahead", type_=Double)
"""The current time in statements that are built once; `Database.clock_values` binds it."""
