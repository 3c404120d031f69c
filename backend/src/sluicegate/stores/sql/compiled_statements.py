"""Statements that SQLAlchemy compiles once and the driver of the database executes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Dialect, Executable
    from sqlalchemy.sql.compiler import SQLCompiler

Row = dict[str, Any]
"""A row by column name, with the driver's types: SQLite returns numbers for booleans."""

_BOUND: Final = object()

_COMPILED: Final[WeakKeyDictionary[Executable, dict[str, SQLCompiler]]] = WeakKeyDictionary()
"""The statements of this process by driver: compiling one takes up to 2 ms."""


def _compile(statement: Executable, dialect: Dialect) -> SQLCompiler:
    compiled = _COMPILED.setdefault(statement, {})
    if dialect.driver not in compiled:
        text = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
        compiled[dialect.driver] = cast("SQLCompiler", text)
    return compiled[dialect.driver]


class CompiledStatement:
    """A statement in the dialect of one database.

    Executing a statement through SQLAlchemy takes several times as long as through the driver
    alone, so the statements that every approval waits for are prepared.

    Args:
        statement: A statement without expanding parameters.
        dialect: The database's dialect.
        then: On SQLite, a statement to execute in the same transaction, with the same values,
            if this one returned a row.
    """

    def __init__(
        self, statement: Executable, dialect: Dialect, *, then: CompiledStatement | None = None
    ) -> None:
        compiled = _compile(statement, dialect)
        required = {bind.key for bind in compiled.binds.values() if bind.required}
        self.sql: Final = str(compiled)
        self.then: Final = then
        self._arguments = [
            (name, _BOUND if name in required else compiled.params[name])
            for name in compiled.positiontup or ()
        ]

    def arguments(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the positional arguments for ``values``, which may hold further names."""
        return tuple(values[name] if value is _BOUND else value for name, value in self._arguments)
