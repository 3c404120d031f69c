"""Whether arguments fit a tool's JSON schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import SchemaError, best_match  # type: ignore[import-untyped]
from referencing import Registry
from referencing.exceptions import Unresolvable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

_NOWHERE: Final[Registry[Any]] = Registry()
"""A schema refers to itself alone; nothing is fetched."""

_LONGEST: Final = 200


def is_schema(value: Mapping[str, Any]) -> bool:
    """Whether a value is a JSON schema."""
    try:
        Draft202012Validator.check_schema(dict(value))
    except (RecursionError, SchemaError, Unresolvable):
        return False
    return True


def what_is_wrong(edits: dict[str, JsonValue], schema: Mapping[str, JsonValue]) -> str | None:
    """Return what does not fit, in a few words; None when everything does."""
    # A schema that says nothing of other names means those it lists: nobody reads the others.
    closed = {"additionalProperties": False, **schema} if "properties" in schema else dict(schema)
    try:
        Draft202012Validator.check_schema(closed)
        error = best_match(Draft202012Validator(closed, registry=_NOWHERE).iter_errors(edits))
    except (RecursionError, SchemaError, Unresolvable):
        return "the tool's own schema cannot be used"
    if error is None:
        return None
    place = ".".join(str(step) for step in error.absolute_path)
    said = f"{place}: {error.message}" if place else str(error.message)
    plain = "".join(c if c.isprintable() else " " for c in said)
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}…"
