"""Arguments that a person changed before approving (A7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import SchemaError, best_match  # type: ignore[import-untyped]
from referencing import Registry
from referencing.exceptions import Unresolvable

from sluicegate.core.canonical import canonical_json
from sluicegate.errors import Malformed
from sluicegate.wire.limits import check_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from sluicegate.core.signals import Call
    from sluicegate.wire.limits import RequestLimits

_NOWHERE: Final[Registry[Any]] = Registry()
"""A schema refers to itself alone; nothing is fetched."""

_LONGEST: Final = 200


def checked_edits(
    call: Call, edits: dict[str, JsonValue] | None, limits: RequestLimits
) -> JsonValue:
    """Return the arguments to run with in place of those asked about, None for no change.

    Raises:
        Malformed: the tool's arguments cannot be changed, or these do not fit its schema.
        TooLarge: more values or longer texts than arguments may have.
    """
    if edits is None or _is_same(call, edits):
        return None
    schema = call.facts.schema
    if not call.facts.editable or schema is None:
        raise Malformed(
            f"The arguments of {call.name} cannot be changed; approve or deny the call as it is."
        )
    check_size(edits, limits)
    wrong = _what_is_wrong(edits, schema)
    if wrong is not None:
        raise Malformed(f"The changed arguments of {call.name} do not fit: {wrong}.")
    return edits


def _is_same(call: Call, edits: JsonValue) -> bool:
    try:
        return canonical_json(edits) == canonical_json(call.args)
    except ValueError:
        return False


def _what_is_wrong(edits: dict[str, JsonValue], schema: Mapping[str, JsonValue]) -> str | None:
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
