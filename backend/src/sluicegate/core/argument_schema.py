"""Validates arguments against a tool's JSON schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import SchemaError, best_match  # type: ignore[import-untyped]
from referencing import Registry
from referencing.exceptions import Unresolvable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

_NO_REFERENCES: Final[Registry[Any]] = Registry()
"""A schema may refer only to itself; nothing is fetched."""

_MAX_LENGTH: Final = 200


def is_schema(value: Mapping[str, Any]) -> bool:
    """Whether a value is a JSON schema."""
    try:
        Draft202012Validator.check_schema(dict(value))
    except (RecursionError, SchemaError, Unresolvable):
        return False
    return True


def validation_error(edits: dict[str, JsonValue], schema: Mapping[str, JsonValue]) -> str | None:
    """Return a short description of the first error; None for valid arguments."""
    # Tools ignore arguments that their schema does not list, so such an edit has no effect.
    closed = {"additionalProperties": False, **schema} if "properties" in schema else dict(schema)
    try:
        Draft202012Validator.check_schema(closed)
        error = best_match(Draft202012Validator(closed, registry=_NO_REFERENCES).iter_errors(edits))
    except (RecursionError, SchemaError, Unresolvable):
        return "the tool's own schema cannot be used"
    if error is None:
        return None
    path = ".".join(str(step) for step in error.absolute_path)
    message = f"{path}: {error.message}" if path else str(error.message)
    plain = "".join(c if c.isprintable() else " " for c in message)
    return plain if len(plain) <= _MAX_LENGTH else f"{plain[:_MAX_LENGTH]}…"
