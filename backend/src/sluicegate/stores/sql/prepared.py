"""Statements that are put together once and then handed to the driver of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Dialect, Executable
    from sqlalchemy.sql.compiler import SQLCompiler

Row = dict[str, Any]
"""A row by the names of its columns, as the driver has it: SQLite knows numbers for booleans."""

_BOUND: Final = object()


class PreparedStatement:
    """A statement in the words of one database.

    To build a statement, to find it among those that were compiled and to wrap what it returns
    takes several times as long as to run it, so what every approval waits for is prepared.
    ``then`` follows in the same transaction if the statement returned a row, on SQLite; the values
    are the same.
    """

    def __init__(
        self, statement: Executable, dialect: Dialect, *, then: PreparedStatement | None = None
    ) -> None:
        """Compile a statement without lists of values."""
        compiled = cast("SQLCompiler", statement.compile(dialect=dialect))  # type: ignore[attr-defined]
        required = {bind.key for bind in compiled.binds.values() if bind.required}
        self.sql: Final = str(compiled)
        self.then = then
        self._arguments = [
            (name, _BOUND if name in required else compiled.params[name])
            for name in compiled.positiontup or ()
        ]

    def arguments(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return what is bound, in the order of its places; more than that may be given."""
        return tuple(values[name] if value is _BOUND else value for name, value in self._arguments)
