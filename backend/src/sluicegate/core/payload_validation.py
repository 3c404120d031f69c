"""The payload of an approval: valid for the payload or the form that the tool asks with."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_core import PydanticSerializationError, to_jsonable_python

from sluicegate.core.confirmation_payload_form import form_in, seen_payload
from sluicegate.core.exactly_shown_arguments import NotShowable, PayloadNotShowable, shown_arguments
from sluicegate.core.json_values import is_same
from sluicegate.errors import Malformed
from sluicegate.wire.limits import check_size

if TYPE_CHECKING:
    from pydantic import JsonValue

    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.call_state import CallState
    from sluicegate.core.confirmation_payload_form import Form
    from sluicegate.wire.limits import RequestLimits

_Shape: TypeAlias = "dict[str, _Shape] | list[_Shape] | str | None"
"""The members of an object, the shape of a list's items, the name of a type, or anything."""


def shown_payload(payload: Any) -> JsonValue:
    """Copy a payload as JSON that every store and client reads back unchanged.

    Raises:
        PayloadNotShowable: It is not JSON, or the copy would differ from it.
    """
    try:
        return shown_arguments({"": to_jsonable_python(payload)}).arguments[""]
    except NotShowable as reason:
        raise PayloadNotShowable(*reason.args) from None
    except (PydanticSerializationError, ValueError):
        raise PayloadNotShowable(f"a {type(payload).__name__} is not JSON") from None


def checked_payload(
    state: CallState, payload: JsonValue, limits: RequestLimits, *, approved: bool
) -> JsonValue:
    """Return the payload that the tool gets in place of the requested one, None for no change.

    A yes to a form needs values that fit its schema, if only those that it has.

    Raises:
        Malformed: The request has no payload, or this one has another shape or cannot be shown.
        TooLarge: More values or longer texts than a payload may have.
    """
    name, requested = state.call.name, covered_payload(state)
    form = form_in(requested)
    if payload is None and (form is None or not approved):
        return None
    if requested is None:
        raise Malformed(f"The approval of {name} asks for no payload; decide it without one.")
    check_size(payload, limits)
    try:
        shown_payload(payload)
    except NotShowable as reason:
        raise Malformed(f"The payload of {name} cannot be shown exactly, since {reason}.") from None
    if form is not None:
        return _checked_form(name, form, payload)
    error = _misfit(payload, _shape(requested), "it")
    if error is not None:
        raise Malformed(f"The payload of {name} does not fit the requested one: {error}.")
    return None if is_same(payload, requested) else payload


def _checked_form(name: str, form: Form, values: JsonValue) -> JsonValue:
    if values is not None and (
        not isinstance(values, dict) or not values.keys() <= form.values.keys()
    ):
        fields = ", ".join(form.values) or "no fields"
        raise Malformed(f"The payload of {name} must be an object with {fields}.")
    answered = form if values is None else form.with_values(values)
    # The validator takes long to import, and forms are rare.
    validator = importlib.import_module("sluicegate.core.schema_validation")
    error: str | None = validator.compile_schema(form.schema).error(answered.answer, root="it")
    if error is not None:
        raise Malformed(f"The payload of {name} does not fit the form: {error}.")
    return None if is_same(answered.answer, form.answer) else answered.as_payload()


def is_approved_payload(row: ApprovalRow, payload: JsonValue) -> bool:
    """Whether an answer states the payload that a row approves."""
    form, approved = form_in(row.payload), row.approved_payload
    if form is None or not isinstance(payload, dict):
        return is_same(payload, seen_payload(approved))
    return is_same(form.with_values(payload).as_payload(), approved)


def covered_payload(state: CallState) -> JsonValue:
    """The payload that the approval of a call covers, None without one."""
    request = state.request
    return request.payload if request is not None and request.covers_payload else None


def _shape(value: JsonValue) -> _Shape:
    if isinstance(value, dict):
        return {name: _shape(member) for name, member in value.items()}
    if isinstance(value, list):
        shapes = [_shape(item) for item in value]
        return shapes[:1] if all(shape == shapes[0] for shape in shapes) else []
    return _type_of(value)


def _type_of(value: JsonValue) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true or false"
    return "a text" if isinstance(value, str) else "a number"


def _misfit(value: JsonValue, shape: _Shape, path: str) -> str | None:
    """Why a value has another shape, as a clause; None if it has this one."""
    if shape is None:
        return None
    if isinstance(shape, dict):
        if not isinstance(value, dict) or value.keys() != shape.keys():
            return f"{path} must be an object with {', '.join(shape) or 'no members'}"
        errors = (_misfit(value[name], each, name) for name, each in shape.items())
        return next((error for error in errors if error is not None), None)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{path} must be a list"
        errors = (_misfit(item, shape[0], f"an item of {path}") for item in value if shape)
        return next((error for error in errors if error is not None), None)
    fits = not isinstance(value, dict | list) and _type_of(value) == shape
    return None if fits else f"{path} must be {shape}"
