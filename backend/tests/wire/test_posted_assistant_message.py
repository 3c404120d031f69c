import dataclasses
from typing import Any

import pytest

from sluicegate.errors import Malformed, TooLarge
from sluicegate.wire.decisions import PostedDecision
from sluicegate.wire.limits import RequestLimits
from sluicegate.wire.posted_assistant_message import (
    ClientOutput,
    PostedAssistantMessage,
    PostedPart,
)
from sluicegate.wire.requests import parse_chat_request

LIMITS = RequestLimits()


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"id": "chat", "messages": list(messages), "trigger": "submit-message", **more}


def message(*parts: Any, id: str = "a1") -> dict[str, Any]:
    return {"id": id, "role": "assistant", "parts": list(parts)}


def call(state: Any, approval: Any = None, **more: Any) -> dict[str, Any]:
    part = {"type": "tool-pay", "toolCallId": "c1", "state": state, **more}
    return part if approval is None else {**part, "approval": approval}


def answered(*, approved: Any = True, id: Any = "ap1", **more: Any) -> dict[str, Any]:
    return call("approval-responded", {"id": id, "approved": approved, **more})


def yes(approval_id: str, reason: str | None = None) -> PostedDecision:
    return PostedDecision(approval_id=approval_id, approved=True, reason=reason)


def no(approval_id: str, reason: str | None = None) -> PostedDecision:
    return PostedDecision(approval_id=approval_id, approved=False, reason=reason)


def ended(decision: PostedDecision) -> PostedDecision:
    return dataclasses.replace(decision, form="known")


def continued(*parts: Any, limits: RequestLimits = LIMITS) -> PostedAssistantMessage:
    request = parse_chat_request(body(message(*parts)), limits)
    assert request.user_message is None
    assert request.continued is not None
    return request.continued


ANSWERS: list[tuple[str, list[Any], list[PostedDecision]]] = [
    ("yes", [answered()], [yes("ap1")]),
    ("no", [answered(approved=False)], [no("ap1")]),
    ("a reason", [answered(approved=False, reason="Too much")], [no("ap1", "Too much")]),
    ("a reason of null", [answered(reason=None)], [yes("ap1")]),
    ("an empty reason", [answered(reason="")], [yes("ap1", "")]),
    (
        "a dynamic tool",
        [answered() | {"type": "dynamic-tool", "toolName": "pay"}],
        [yes("ap1")],
    ),
    (
        "a workflow's id",
        [answered(id="inv/wf@1/step@2:c 3")],
        [yes("inv/wf@1/step@2:c 3")],
    ),
    (
        "the answers keep their order",
        [answered(id="b"), {"type": "step-start"}, answered(approved=False, id="a")],
        [yes("b"), no("a")],
    ),
    ("the same answer twice", [answered(), answered()], [yes("ap1")]),
    (
        "an ended call repeats its answer",
        [
            call("output-available", {"id": "a", "approved": True}, output=1),
            call("output-error", {"id": "b", "approved": True, "reason": "ok"}, errorText="No."),
            call("output-denied", {"id": "c", "approved": False, "reason": "no"}),
        ],
        [ended(yes("a")), ended(yes("b", "ok")), ended(no("c", "no"))],
    ),
    (
        "a part that was announced again repeats its answer",
        [call("input-available", {"id": "a", "approved": False, "reason": "no"})],
        [ended(no("a", "no"))],
    ),
    (
        "what an ended call says is decoration",
        [
            call("output-available", {"id": "a", "approved": "yes"}),
            call("output-available", {"id": "", "approved": True}),
            call("output-available", {"approved": True}),
            call("output-available", "yes"),
            call("output-available", {"id": "b", "approved": True, "reason": 1}),
        ],
        [ended(yes("b"))],
    ),
    (
        "a call that is still open answers nothing",
        [
            call("approval-requested", {"id": "a", "approved": True}),
            call("input-available", {"id": "b"}),
            call("input-streaming", {"id": "c", "approved": True}),
            call(None, {"id": "d", "approved": True}),
            call(["approval-responded"], {"id": "e", "approved": True}) | {"state": {}},
        ],
        [],
    ),
    (
        "other parts answer nothing",
        [
            {"type": "data-tool-x", "state": "approval-responded", "approval": {"approved": 1}},
            {"type": "text", "state": "approval-responded"},
        ],
        [],
    ),
]


@pytest.mark.parametrize(
    ("parts", "answers"), [r[1:] for r in ANSWERS], ids=[r[0] for r in ANSWERS]
)
def test_decisions_are_parsed(parts: list[Any], answers: list[PostedDecision]) -> None:
    assert list(continued(*parts).decisions) == answers


NOT_BOOLEAN: list[Any] = ["yes", "true", 1, 0, [], {}, None]
NO_HANDLE: list[Any] = ["", "a\n", "a\0", "\u202ea", 1, None, [], "x" * 257]
NO_REASON: list[Any] = [1, [], {}, False]

UNCLEAR: list[tuple[str, list[Any]]] = [
    *((f"approved is {value!r}", [answered(approved=value)]) for value in NOT_BOOLEAN),
    ("yes and no", [answered(), answered(approved=False)]),
    (
        "yes, and ended with no",
        [answered(), call("output-denied", {"id": "ap1", "approved": False})],
    ),
    ("one good and one bad", [answered(), answered(approved="yes", id="ap2")]),
]


@pytest.mark.parametrize("parts", [row[1] for row in UNCLEAR], ids=[row[0] for row in UNCLEAR])
def test_an_invalid_decision_is_refused(parts: list[Any]) -> None:
    with pytest.raises(Malformed) as refused:
        continued(*parts)
    assert refused.value.message.endswith(".")


def test_a_reason_is_accepted_at_its_limit_and_refused_one_past_it() -> None:
    assert len(continued(answered(reason="é" * 2_000)).decisions) == 1
    with pytest.raises(Malformed):
        continued(answered(reason="é" * 2_001))


def test_an_approval_id_is_accepted_at_its_limit() -> None:
    assert len(continued(answered(id="x" * 256)).decisions) == 1


def test_decisions_are_accepted_up_to_their_limit() -> None:
    most = [answered(id=f"a{number}") for number in range(100)]
    assert len(continued(*most).decisions) == 100
    with pytest.raises(TooLarge):
        continued(*most, answered(id="one more"))


def test_other_parts_of_a_long_message_are_ignored() -> None:
    posted = continued(*[{"type": "text", "text": "x" * 1000}] * 500, answered())
    assert len(posted.parts) == 501
    assert len(posted.decisions) == 1


OUTPUTS: list[tuple[str, Any, list[ClientOutput]]] = [
    (
        "an output",
        call("output-available", output={"a": 1}),
        [ClientOutput("c1", "pay", {"a": 1}, None)],
    ),
    (
        "an output of null",
        call("output-available", output=None),
        [ClientOutput("c1", "pay", None, None)],
    ),
    (
        "an output that JSON dropped",
        call("output-available"),
        [ClientOutput("c1", "pay", None, None)],
    ),
    ("an error", call("output-error", errorText="No."), [ClientOutput("c1", "pay", None, "No.")]),
    (
        "an error without words",
        call("output-error", output=1),
        [ClientOutput("c1", "pay", None, "The tool failed in the browser.")],
    ),
    (
        "an output after an approval",
        call("output-available", {"id": "a", "approved": True}, output=1),
        [ClientOutput("c1", "pay", 1, None)],
    ),
    (
        "a dynamic tool",
        call("output-available", output=1) | {"type": "dynamic-tool", "toolName": "get-place"},
        [ClientOutput("c1", "get-place", 1, None)],
    ),
    (
        "a name with dashes",
        call("output-available") | {"type": "tool-a-b"},
        [ClientOutput("c1", "a-b", None, None)],
    ),
    ("a preliminary output", call("output-available", output=1, preliminary=True), []),
    ("a denial", call("output-denied"), []),
    ("an open call", call("input-available", output=1), []),
    (
        "an output without a call",
        {"type": "tool-pay", "state": "output-available", "output": 1},
        [],
    ),
    ("a call id that is no text", call("output-available") | {"toolCallId": 1}, []),
    ("a call id that is too long", call("output-available") | {"toolCallId": "x" * 257}, []),
    ("a dynamic tool without a name", call("output-available") | {"type": "dynamic-tool"}, []),
    (
        "a dynamic tool whose name is no text",
        call("output-available") | {"type": "dynamic-tool", "toolName": 1},
        [],
    ),
    ("another part", {"type": "data-x", "toolCallId": "c1", "state": "output-available"}, []),
]


@pytest.mark.parametrize(("part", "outputs"), [r[1:] for r in OUTPUTS], ids=[r[0] for r in OUTPUTS])
def test_outputs_are_parsed(part: Any, outputs: list[ClientOutput]) -> None:
    assert list(continued(part).outputs) == outputs


@pytest.mark.parametrize(
    ("part", "posted"),
    [
        ({"type": "text", "text": "a"}, PostedPart("text", None, None, None)),
        ({"type": "step-start"}, PostedPart("step-start", None, None, None)),
        (
            call("approval-requested", {"id": "ap1"}),
            PostedPart("tool-pay", "c1", "approval-requested", "ap1"),
        ),
        (
            {"type": "tool-pay", "toolCallId": 1, "state": 2, "approval": {"id": []}},
            PostedPart("tool-pay", None, None, None),
        ),
        ({"type": "tool-pay", "approval": "x"}, PostedPart("tool-pay", None, None, None)),
    ],
)
def test_every_part_is_listed_with_its_ids(part: Any, posted: PostedPart) -> None:
    assert continued(part).parts == (posted,)


@pytest.mark.parametrize(
    ("messages", "message_id", "chosen"),
    [
        ([message(id="a1")], None, "a1"),
        ([message(id="a1"), message(id="a2")], None, "a2"),
        ([message(id="a1"), message(id="a2")], "a1", "a1"),
        ([message(id="a1"), message(id="a2")], "a2", "a2"),
        ([message(id="a1"), message(id="a2")], "gone", "a2"),
        ([message(id="u1") | {"role": "user"}, message(id="a2")], "u1", "a2"),
        ([{"id": ["a1"]}, {}, message(id="a1")], "a1", "a1"),
    ],
)
def test_the_named_message_is_continued_or_else_the_last(
    messages: list[Any], message_id: str | None, chosen: str
) -> None:
    request = parse_chat_request(body(*messages, messageId=message_id), LIMITS)
    assert request.continued is not None
    assert request.continued.id == chosen


def test_only_the_continued_message_is_parsed() -> None:
    first, last = message(answered(id="a")), message(answered(approved="yes", id="b"), id="a2")
    request = parse_chat_request(body(first, last, messageId="a1"), LIMITS)
    assert request.continued is not None
    assert request.continued.decisions == (yes("a"),)
