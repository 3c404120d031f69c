"""The payload of a confirmation: what is shown of it, and what may replace it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from sluicegate.core.call_state import CallState
from sluicegate.core.confirmation_payload_form import empty_form, form_in, seen_payload, seen_schema
from sluicegate.core.exactly_shown_arguments import PayloadNotShowable
from sluicegate.core.payload_validation import checked_payload, shown_payload
from sluicegate.core.signals import ApprovalRequest, Call
from sluicegate.errors import Malformed, TooLarge, UnusableSchema
from sluicegate.wire.limits import DEFAULT_LIMITS, RequestLimits


class Trip(BaseModel):
    days: int
    start: date


@dataclass
class Cost:
    euros: float


def requested(payload: Any, *, covers_payload: bool = True) -> CallState:
    request = ApprovalRequest(
        approval_id="a",
        call_id="1",
        confirmation_id="a",
        answer_name="adk_request_confirmation",
        hint="",
        payload=payload,
        branch=None,
        invocation="i",
        covers_payload=covers_payload,
    )
    return CallState(Call("1", "pay", {}), request=request)


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        ({"n": (1, 2)}, {"n": [1, 2]}),
        (Trip(days=3, start=date(2026, 8, 3)), {"days": 3, "start": "2026-08-03"}),
        ([Cost(1.5)], [{"euros": 1.5}]),
        ("text", "text"),
        (False, False),
        ({1: 2}, {"1": 2}),
    ],
)
def test_a_payload_that_is_json_serializable_is_shown_as_json(payload: Any, shown: Any) -> None:
    assert shown_payload(payload) == shown


@pytest.mark.parametrize("payload", [object(), float("inf"), {"n": 2**53 + 1}, "\ud800"])
def test_another_payload_is_not_shown(payload: Any) -> None:
    with pytest.raises(PayloadNotShowable):
        shown_payload(payload)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ({"n": 0, "why": None}, {"n": 2.5, "why": {"any": ["thing"]}}),
        ({"rows": [{"n": 1}]}, {"rows": []}),
        ({"rows": [{"n": 1}]}, {"rows": [{"n": 2}, {"n": 3}]}),
        ([], [1, "two"]),
        ([1, "two"], [None]),
        ("", "text"),
        (False, True),
    ],
)
def test_a_payload_of_the_same_shape_replaces_the_requested_one(asked: Any, given: Any) -> None:
    assert checked_payload(requested(asked), given, DEFAULT_LIMITS, approved=True) == given


@pytest.mark.parametrize(
    ("asked", "given", "reason"),
    [
        ({"n": 0}, {"n": "0"}, "n must be a number"),
        ({"n": 0}, {"n": True}, "n must be a number"),
        ({"n": True}, {"n": 1}, "n must be true or false"),
        ({"n": ""}, {"n": None}, "n must be a text"),
        ({"n": 0, "m": 1}, {"n": 0}, "it must be an object with n, m"),
        ({"n": 0}, {"n": 0, "m": 1}, "it must be an object with n"),
        ({}, [], "it must be an object with no members"),
        ({"rows": [{"n": 1}]}, {"rows": {}}, "rows must be a list"),
        ({"rows": [{"n": 1}]}, {"rows": [{"n": ""}]}, "n must be a number"),
        ({"rows": [1]}, {"rows": [[1]]}, "an item of rows must be a number"),
    ],
)
def test_a_payload_of_another_shape_is_refused(asked: Any, given: Any, reason: str) -> None:
    with pytest.raises(Malformed, match=f"payload of pay does not fit the requested one: {reason}"):
        checked_payload(requested(asked), given, DEFAULT_LIMITS, approved=True)


def test_the_requested_payload_is_no_change() -> None:
    asked = {"n": 1, "m": [True]}
    assert (
        checked_payload(requested(asked), {"m": [True], "n": 1.0}, DEFAULT_LIMITS, approved=True)
        is None
    )
    assert checked_payload(requested(asked), None, DEFAULT_LIMITS, approved=True) is None


@pytest.mark.parametrize("state", [requested(None), requested({"n": 1}, covers_payload=False)])
def test_a_request_that_covers_no_payload_takes_none(state: CallState) -> None:
    with pytest.raises(Malformed, match="asks for no payload"):
        checked_payload(state, {"n": 1}, DEFAULT_LIMITS, approved=True)


def test_a_payload_has_the_limits_of_arguments() -> None:
    with pytest.raises(TooLarge):
        checked_payload(requested([]), [0] * 11, RequestLimits(nodes=10), approved=True)


FORM = empty_form(
    {
        "type": "object",
        "properties": {
            "seat": {"type": "string", "maxLength": 2},
            "meals": {"type": "integer", "default": 1},
        },
        "required": ["seat"],
    },
    state={"kept": True},
)


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"seat": "A1"}, {"seat": "A1", "meals": 1}),
        ({"seat": "A1", "meals": None}, {"seat": "A1"}),
        ({"seat": "A1", "meals": 2}, {"seat": "A1", "meals": 2}),
    ],
)
def test_a_form_is_answered_with_its_defaults_for_what_is_left_out(given: Any, answer: Any) -> None:
    state = requested(FORM.as_payload())
    answered = form_in(checked_payload(state, given, DEFAULT_LIMITS, approved=True))
    assert answered is not None
    assert answered.answer == answer
    assert (answered.schema, answered.state) == (FORM.schema, FORM.state)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (None, "does not fit the form: it: 'seat' is a required property"),
        ({"seat": "A11"}, "does not fit the form: seat: 'A11' is too long"),
        ({"seat": "A1", "row": 1}, "must be an object with seat, meals"),
        (["A1"], "must be an object with seat, meals"),
    ],
)
def test_a_yes_with_an_answer_that_does_not_fit_a_form_is_refused(given: Any, reason: str) -> None:
    state = requested(FORM.as_payload())
    with pytest.raises(Malformed, match=re.escape(f"The payload of pay {reason}")):
        checked_payload(state, given, DEFAULT_LIMITS, approved=True)
    assert checked_payload(state, None, DEFAULT_LIMITS, approved=False) is None


def test_a_person_sees_the_fields_of_a_form_and_not_what_its_tool_keeps() -> None:
    payload = FORM.as_payload()
    assert seen_payload(payload) == {"seat": None, "meals": 1}
    assert seen_schema(payload) == FORM.schema
    assert (seen_payload({"n": 1}), seen_schema({"n": 1})) == ({"n": 1}, None)


@pytest.mark.parametrize(
    "schema", [{}, {"type": "array"}, {"type": "object"}, {"type": "object", "properties": []}]
)
def test_a_form_has_named_fields(schema: Any) -> None:
    with pytest.raises(UnusableSchema):
        empty_form(schema)


def test_what_is_kept_with_a_form_is_bounded() -> None:
    with pytest.raises(UnusableSchema, match="characters are to be kept"):
        empty_form(dict(FORM.schema), "x" * 70_000)
