"""Arguments that an approver edited (A7)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from sluicegate.core.exactly_shown_arguments import NotShowable, shown_arguments
from sluicegate.core.json_values import canonical_json
from sluicegate.errors import Malformed
from sluicegate.wire.limits import check_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from sluicegate.core.signals import Call
    from sluicegate.wire.limits import RequestLimits


def checked_edits(
    call: Call,
    edits: dict[str, JsonValue] | None,
    limits: RequestLimits,
    *,
    schema: Mapping[str, JsonValue] | None,
) -> JsonValue:
    """Return the arguments to run with in place of the requested ones, None for no change.

    ``schema`` is what the tool declared at the call, if it differs from that of the call's facts.

    Raises:
        Malformed: The tool's arguments cannot be edited, the edits cannot be shown exactly, or they
            do not fit its schema.
        TooLarge: More values or longer texts than arguments may have.
    """
    if edits is None or effective_edits(call, edits) is None:
        return None
    schema = call.facts.schema if schema is None else schema
    if not call.facts.editable or schema is None:
        raise Malformed(
            f"The arguments of {call.name} cannot be changed; approve or deny the call as it is."
        )
    check_size(edits, limits)
    try:
        shown_arguments(edits)
    except NotShowable as reason:
        raise Malformed(
            f"The changed arguments of {call.name} cannot be shown exactly, since {reason}."
        ) from None
    # The validator takes long to import, and edits are rare.
    validator = importlib.import_module("sluicegate.core.schema_validation")
    error: str | None = validator.validation_error(edits, schema)
    if error is not None:
        raise Malformed(f"The changed arguments of {call.name} do not fit: {error}.")
    return edits


def effective_edits(call: Call, edits: JsonValue) -> JsonValue:
    """Return arguments that differ from the requested ones, None for those that are the same."""
    try:
        return None if canonical_json(edits) == canonical_json(call.args) else edits
    except ValueError:
        return edits
