from __future__ import annotations

from typing import Any

import pytest

from sluicegate.replay.client_request_comparison import difference


def user(text: str = "Hi", *files: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    parts += [{"type": "file", "mediaType": kind, "url": "data:,x"} for kind in files]
    return {"id": "c", "message": {"id": "u", "role": "user", "parts": parts}}


def answered(**approval: Any) -> dict[str, Any]:
    part = {
        "type": "tool-pay",
        "toolCallId": "t1",
        "state": "approval-responded",
        "approval": {"id": "a1", **approval},
    }
    return {"message": {"id": "m", "role": "assistant", "parts": [part]}}


def output_request(output: Any, **more: Any) -> dict[str, Any]:
    part = {"type": "dynamic-tool", "toolName": "locate", "toolCallId": "t2", "output": output}
    part |= {"state": "output-available", **more}
    return {"message": {"id": "m", "role": "assistant", "parts": [{"type": "step-start"}, part]}}


SAME = [
    (user(), {**user(), "id": "another", "messageId": "x", "trigger": "submit-message"}),
    (user("Hi", "image/png"), user("Hi", "image/png")),
    (answered(approved=True), answered(approved=True)),
    (answered(approved=False, reason="[redacted]"), answered(approved=False, reason="why")),
    (output_request({"lat": "[redacted]", "at": [1]}), output_request({"lat": 4, "at": [1]})),
    (output_request("x", providerExecuted=True), output_request("y", providerExecuted=True)),
]


@pytest.mark.parametrize(("asked", "posted"), SAME)
def test_ignored_fields_may_differ(asked: dict[str, Any], posted: dict[str, Any]) -> None:
    assert difference(asked, posted) is None


DIFFERENT = [
    (user("Hi"), user("Ho"), 'the text is "Ho" and was "Hi"'),
    (user(), answered(approved=True), 'the message\'s role is "assistant" and was "user"'),
    (
        user(),
        {**user(), "trigger": "regenerate-message"},
        'the trigger is "regenerate-message" and was "submit-message"',
    ),
    (user("Hi", "image/png"), user("Hi"), 'file 1 is missing, which was "image/png"'),
    (user(), user("Hi", "image/png"), 'file 1 is "image/png" and was not there'),
    (
        answered(approved=True),
        answered(approved=False),
        "the answer to pay (a1) is false and was true",
    ),
    (answered(approved=True), answered(), "the answer to pay (a1) is missing, which was true"),
    (
        answered(approved=True, reason="a"),
        answered(approved=True, reason="b"),
        'the reason given to pay (a1) is "b" and was "a"',
    ),
    (
        output_request({"n": 1}),
        output_request({"n": True}),
        'the output of locate (t2) is {"n": true} and was',
    ),
    (
        output_request([1, 2]),
        output_request([1]),
        "the output of locate (t2) is [1] and was [1, 2]",
    ),
    (
        output_request({"a": 1}),
        output_request({"b": 1}),
        'the output of locate (t2) is {"b": 1} and was',
    ),
    (
        {**answered(approved=True), "edits": {"a1": {"n": 1}}},
        {**answered(approved=True), "edits": {"a1": {"n": 2}}},
        'what it says under edits is {"a1": {"n": 2}} and was',
    ),
    (user("x" * 99), user("y"), 'the text is "y" and was "xxxx'),
]


@pytest.mark.parametrize(("asked", "posted", "sentence"), DIFFERENT)
def test_the_first_difference_is_named(
    asked: dict[str, Any], posted: dict[str, Any], sentence: str
) -> None:
    found = difference(asked, posted)
    assert found is not None
    assert found.startswith(sentence)
    assert len(found) < 160
