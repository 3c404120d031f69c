"""The options that a page stages for decisions: changed arguments and grants (A7, A8)."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.errors import Malformed
from sluicegate.wire.posted_assistant_message import PostedDecision
from sluicegate.wire.requests import parse_chat_request


def part(approval_id: str, state: str = "approval-responded", **approval: Any) -> dict[str, Any]:
    answer = {"id": approval_id, "approved": True, **approval}
    call = {"type": "tool-pay", "toolCallId": f"call-{approval_id}", "state": state}
    return {**call, "approval": answer}


def answers(*parts: dict[str, Any], **staged: Any) -> tuple[PostedDecision, ...]:
    message: Any = {"id": "a1", "role": "assistant", "parts": list(parts)}
    request = parse_chat_request({"id": "chat", "message": message, **staged})
    assert request.continued is not None
    return request.continued.decisions


def test_staged_options_belong_to_the_decision_with_their_id() -> None:
    edited, remembered, plain = answers(
        part("a"), part("b"), part("c"), edits={"a": {"n": 2}}, remember={"b": "chat"}
    )
    assert (edited.edits, edited.is_remembered) == ({"n": 2}, False)
    assert (remembered.edits, remembered.is_remembered) == (None, True)
    assert (plain.edits, plain.is_remembered) == (None, False)


@pytest.mark.parametrize(
    "answered",
    [
        part("a", approved=False),
        part("a", "approval-requested", approved=None),
        part("a", "output-available"),
        part("a", "output-denied", approved=False),
        part("another"),
    ],
)
@pytest.mark.parametrize(
    "staged",
    [
        {"edits": {"a": {"n": 2}}, "remember": {"a": "chat"}},
        {"edits": {"a": "nonsense"}, "remember": {"a": 1}},
    ],
)
def test_staged_options_without_an_approval_in_the_request_are_ignored(
    answered: dict[str, Any], staged: dict[str, Any]
) -> None:
    assert all(a.edits is None and not a.is_remembered for a in answers(answered, **staged))


@pytest.mark.parametrize(
    ("staged", "said"),
    [
        ({"edits": []}, "must be an object with their ids"),
        ({"edits": "a"}, "must be an object with their ids"),
        ({"remember": True}, "must be an object with their ids"),
        ({"edits": {"a": [1]}}, "changed arguments of an approval must be an object"),
        ({"edits": {"a": "n=2"}}, "changed arguments of an approval must be an object"),
        ({"remember": {"a": "user"}}, "for its chat alone"),
        ({"remember": {"a": True}}, "for its chat alone"),
        ({"remember": {"a": {}}}, "for its chat alone"),
    ],
)
def test_invalid_staged_options_of_an_approval_are_refused(
    staged: dict[str, Any], said: str
) -> None:
    with pytest.raises(Malformed, match=said):
        answers(part("a"), **staged)


@pytest.mark.parametrize("staged", [{"edits": None}, {"remember": None}, {"edits": {"a": None}}])
def test_a_staged_option_of_null_counts_as_missing(staged: dict[str, Any]) -> None:
    [answer] = answers(part("a"), **staged)
    assert (answer.edits, answer.is_remembered) == (None, False)


def test_staged_options_beside_a_user_message_are_ignored() -> None:
    question: Any = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
    request = parse_chat_request({"id": "chat", "message": question, "edits": 1, "remember": 2})
    assert request.continued is None
