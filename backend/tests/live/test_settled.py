"""The check that follows every live test finds parts that are left running."""

from __future__ import annotations

import pytest

from tests.live.settled import running_parts


def chat(state: str, status: str, *, later: bool = False) -> dict[str, object]:
    part = {"type": "tool-pay", "state": state}
    more = [{"id": "m2", "parts": [{"type": "text", "text": "Hi", "state": "done"}]}]
    return {"status": status, "messages": [{"id": "m1", "parts": [part]}, *more[: int(later)]]}


@pytest.mark.parametrize(
    ("state", "status", "later", "client"),
    [
        ("input-available", "ready", False, False),
        ("input-streaming", "ready", False, False),
        ("streaming", "ready", False, False),
        ("input-available", "waiting", False, False),
        ("approval-requested", "ready", False, False),
        ("approval-requested", "waiting", True, False),
        ("input-available", "ready", False, True),
    ],
)
def test_a_part_that_is_left_running_is_found(
    state: str, status: str, *, later: bool, client: bool
) -> None:
    tools = ["pay"] if client else []
    assert running_parts(chat(state, status, later=later), tools) == [f"tool-pay of m1 is {state}"]


@pytest.mark.parametrize(
    ("state", "status", "client"),
    [
        ("output-available", "ready", False),
        ("output-denied", "ready", False),
        ("approval-requested", "waiting", False),
        ("input-available", "waiting", True),
    ],
)
def test_a_part_that_has_ended_or_waits_is_not_found(
    state: str, status: str, *, client: bool
) -> None:
    assert running_parts(chat(state, status), ["pay"] if client else []) == []
