"""The payload of a confirmation: what is shown of it, and what may replace it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from sluicegate.core.call_state import CallState
from sluicegate.core.confirmation_payload import checked_payload, shown_payload
from sluicegate.core.shown_arguments import PayloadNotShowable
from sluicegate.core.signals import ApprovalRequest, Call
from sluicegate.errors import Malformed, TooLarge
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
    assert checked_payload(requested(asked), given, DEFAULT_LIMITS) == given


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
        checked_payload(requested(asked), given, DEFAULT_LIMITS)


def test_the_requested_payload_is_no_change() -> None:
    asked = {"n": 1, "m": [True]}
    assert checked_payload(requested(asked), {"m": [True], "n": 1.0}, DEFAULT_LIMITS) is None
    assert checked_payload(requested(asked), None, DEFAULT_LIMITS) is None


@pytest.mark.parametrize("state", [requested(None), requested({"n": 1}, covers_payload=False)])
def test_a_request_that_covers_no_payload_takes_none(state: CallState) -> None:
    with pytest.raises(Malformed, match="asks for no payload"):
        checked_payload(state, {"n": 1}, DEFAULT_LIMITS)


def test_a_payload_has_the_limits_of_arguments() -> None:
    with pytest.raises(TooLarge):
        checked_payload(requested([]), [0] * 11, RequestLimits(nodes=10))
