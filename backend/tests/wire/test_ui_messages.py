import copy
from typing import Any

import pytest

from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.ui_messages import Part, UIMessage, current_step, is_tool_part, tool_name


def message(*parts: Part) -> UIMessage:
    return {"id": "m", "role": "assistant", "parts": list(parts)}


def call(state: str, approval: dict[str, Any] | None = None, **more: Any) -> Part:
    part: Part = {"type": "tool-pay", "toolCallId": "c", "state": state, "input": {}, **more}
    return part if approval is None else {**part, "approval": approval}


EQUAL: list[tuple[str, Part, Part]] = [
    (
        "the state and the metadata of a text",
        {"type": "text", "text": "a", "state": "streaming", "providerMetadata": {"g": {}}},
        {"type": "text", "text": "a"},
    ),
    (
        "the state, the id and the metadata of reasoning",
        {"type": "reasoning", "id": "r", "text": "a", "state": "done", "providerMetadata": {}},
        {"type": "reasoning", "text": "a"},
    ),
    (
        "the raw input and the metadata of a call",
        call("output-error", rawInput="{", callProviderMetadata={}, resultProviderMetadata={}),
        call("output-error"),
    ),
    (
        "how an approval was asked for",
        call(
            "approval-requested",
            {"id": "a", "requestReason": "r", "descriptor": {}, "signature": "s"},
        ),
        call("approval-requested", {"id": "a"}),
    ),
]


@pytest.mark.parametrize(("one", "other"), [r[1:] for r in EQUAL], ids=[r[0] for r in EQUAL])
def test_views_of_one_message_may_differ_in(one: Part, other: Part) -> None:
    assert comparable(message(one)) == comparable(message(other))


def test_steps_and_data_are_not_compared() -> None:
    text: Part = {"type": "text", "text": "a"}
    parts: list[Part] = [{"type": "step-start"}, text, {"type": "data-a", "data": 1}]
    assert comparable(message(*parts)) == [text]


DIFFERENT: list[tuple[str, list[Part], list[Part]]] = [
    ("the text", [{"type": "text", "text": "a"}], [{"type": "text", "text": "b"}]),
    (
        "the order",
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        [{"type": "text", "text": "b"}, {"type": "text", "text": "a"}],
    ),
    ("the state of a call", [call("input-available")], [call("input-streaming")]),
    ("an output", [call("output-available", output=None)], [call("output-available")]),
    (
        "the id of a source",
        [{"type": "source-url", "id": "1"}],
        [{"type": "source-url", "id": "2"}],
    ),
    (
        "whether it was approved",
        [call("output-available", {"id": "a", "approved": True})],
        [call("output-available", {"id": "a"})],
    ),
    (
        "the reason",
        [call("output-denied", {"id": "a", "approved": False, "reason": "x"})],
        [call("output-denied", {"id": "a", "approved": False})],
    ),
    ("whether it was asked", [call("input-available", {"id": "a"})], [call("input-available")]),
]


@pytest.mark.parametrize(
    ("one", "other"), [r[1:] for r in DIFFERENT], ids=[r[0] for r in DIFFERENT]
)
def test_views_of_one_message_never_differ_in(one: list[Part], other: list[Part]) -> None:
    assert comparable(message(*one)) != comparable(message(*other))


AUTOMATIC = {"id": "a", "isAutomatic": True, "approved": True}
DECIDED = {"id": "a", "approved": False}
OPEN = {"id": "a"}


@pytest.mark.parametrize(
    ("stored", "resumed", "seen"),
    [
        (call("approval-responded", AUTOMATIC), False, call("input-available")),
        (call("approval-requested", AUTOMATIC), False, call("input-available")),
        (call("output-available", AUTOMATIC, output=1), False, call("output-available", output=1)),
        (call("approval-responded", DECIDED), True, call("input-available")),
        (call("output-denied", DECIDED), True, call("output-denied")),
        (call("approval-requested", OPEN), True, call("approval-requested", OPEN)),
        (call("approval-responded", DECIDED), False, call("approval-responded", DECIDED)),
    ],
)
def test_views_for_ai_sdk_6_are_compared_without_automatic_approvals(
    stored: Part, resumed: bool, seen: Part
) -> None:
    told = comparable(message(seen), major=6, resumed=resumed)
    assert comparable(message(stored), major=6, resumed=resumed) == told


def test_views_for_ai_sdk_7_are_compared_with_every_approval() -> None:
    for approval in (AUTOMATIC, DECIDED):
        stored = message(call("approval-responded", approval))
        assert comparable(stored, resumed=True)[0]["state"] == "approval-responded"
        assert comparable(stored, resumed=True)[0]["approval"]["id"] == "a"


def test_comparing_does_not_change_the_message() -> None:
    stored = message(call("approval-responded", AUTOMATIC, rawInput="{"))
    before = copy.deepcopy(stored)
    comparable(stored, major=6)
    comparable(stored)
    assert stored == before


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ({"type": "tool-get-weather"}, "get-weather"),
        ({"type": "tool-tool-x"}, "tool-x"),
        ({"type": "dynamic-tool", "toolName": "tool-y"}, "tool-y"),
    ],
)
def test_a_tool_part_names_its_tool(part: Part, name: str) -> None:
    assert is_tool_part(part)
    assert tool_name(part) == name


@pytest.mark.parametrize("kind", ["text", "step-start", "data-tool-x", "toolbox", "dynamic-toolx"])
def test_other_parts_are_not_tool_parts(kind: str) -> None:
    assert not is_tool_part({"type": kind})


def test_the_current_step_follows_the_last_step_start() -> None:
    step: Part = {"type": "step-start"}
    one: Part = {"type": "text", "text": "1"}
    two: Part = {"type": "text", "text": "2"}
    assert current_step([one, two]) == [one, two]
    assert current_step([step, one, step, two]) == [two]
    assert current_step([one, step]) == []
    assert current_step([]) == []
