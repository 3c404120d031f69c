"""A payload that is a form: a JSON schema, the values to begin with, and what its tool resumes by.

ADK's confirmation has one payload and nothing beside it, so all three are stored in it. A person
sees the schema and the values; the answer is the form with other values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from sluicegate.core.json_values import canonical_json
from sluicegate.errors import UnusableSchema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

_FORM: Final = "sluicegate/form"
_MAX_STATE: Final = 64 * 1024
"""Characters of JSON that a tool may keep with a form."""


@dataclass(frozen=True, slots=True)
class Form:
    """``values`` are by the name of the field; None is a field without a value.

    ``state`` is the tool's and is not shown.
    """

    schema: Mapping[str, Any]
    values: Mapping[str, Any]
    state: JsonValue = None

    def as_payload(self) -> dict[str, Any]:
        """Return the payload of the confirmation."""
        parts = {"schema": dict(self.schema), "values": dict(self.values), "state": self.state}
        return {_FORM: parts}

    @property
    def answer(self) -> dict[str, Any]:
        """The values of the fields that have one."""
        return {name: value for name, value in self.values.items() if value is not None}

    def with_values(self, values: Mapping[str, Any]) -> Form:
        """Return the form with other values; a field that is not named keeps its own."""
        return replace(self, values={**self.values, **values})


def empty_form(schema: Mapping[str, Any], state: JsonValue = None) -> Form:
    """Return a form that has the defaults of its schema.

    Raises:
        UnusableSchema: It describes no object with named properties, or there is more state than
            can be kept.
    """
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        raise UnusableSchema("it describes no object")
    if len(canonical_json(state)) > _MAX_STATE:
        raise UnusableSchema(f"more than {_MAX_STATE:,} characters are to be kept with it")
    values = {
        name: field.get("default") if isinstance(field, dict) else None
        for name, field in properties.items()
    }
    return Form(schema, values, state)


def form_in(payload: object) -> Form | None:
    """Return the form that a payload is; None if it is another one."""
    parts = payload.get(_FORM) if isinstance(payload, dict) and len(payload) == 1 else None
    if not isinstance(parts, dict):
        return None
    schema, values = parts.get("schema"), parts.get("values")
    if not isinstance(schema, dict) or not isinstance(values, dict):
        return None
    return Form(schema, values, parts.get("state"))


def is_form(payload: object) -> bool:
    """Whether a payload is a form; its call has begun, so its arguments stay as they are."""
    return form_in(payload) is not None


def seen_payload(payload: JsonValue) -> JsonValue:
    """Return what a person sees of a payload, and answers in place of it."""
    form = form_in(payload)
    return payload if form is None else dict(form.values)


def seen_schema(payload: JsonValue) -> dict[str, Any] | None:
    """Return the schema of the answer; None for a payload that has none."""
    form = form_in(payload)
    return None if form is None else dict(form.schema)
