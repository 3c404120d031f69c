"""The options that a page stages for decisions: changed arguments and grants (A7, A8)."""

from __future__ import annotations

from typing import Any

import pytest

from sluicegate.errors import Malformed
from sluicegate.wire.decisions import PostedDecision, RememberOption
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
    assert (edited.edits, edited.remember) == ({"n": 2}, None)
    assert (remembered.edits, remembered.remember) == (None, RememberOption())
    assert (plain.edits, plain.remember) == (None, None)


@pytest.mark.parametrize(
    ("scope", "option"),
    [
        ("chat", RememberOption()),
        ({}, RememberOption()),
        ({"where": None, "ttl": None}, RememberOption()),
        ({"where": ["to", "amount"]}, RememberOption(("amount", "to"))),
        ({"ttl": 1}, RememberOption((), 1.0)),
        ({"where": ["to"], "ttl": 0.5e3}, RememberOption(("to",), 500.0)),
    ],
)
def test_an_approval_is_remembered_for_chosen_arguments_and_a_time(
    scope: Any, option: RememberOption
) -> None:
    [answer] = answers(part("a"), remember={"a": scope})
    assert answer.remember == option


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
    assert all(a.edits is None and a.remember is None for a in answers(answered, **staged))


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
        ({"remember": {"a": []}}, "for its chat alone"),
        ({"remember": {"a": {"values": {"to": "ann"}}}}, "for its chat alone"),
        ({"remember": {"a": {"where": "to"}}}, "a list of different names"),
        ({"remember": {"a": {"where": []}}}, "a list of different names"),
        ({"remember": {"a": {"where": ["to", "to"]}}}, "a list of different names"),
        ({"remember": {"a": {"where": ["to", 1]}}}, "a list of different names"),
        ({"remember": {"a": {"where": {"to": "ann"}}}}, "a list of different names"),
        ({"remember": {"a": {"where": [f"n{n}" for n in range(101)]}}}, "different names"),
        ({"remember": {"a": {"ttl": 0.9}}}, "seconds from 1 on"),
        ({"remember": {"a": {"ttl": -1}}}, "seconds from 1 on"),
        ({"remember": {"a": {"ttl": True}}}, "seconds from 1 on"),
        ({"remember": {"a": {"ttl": "60"}}}, "seconds from 1 on"),
        ({"remember": {"a": {"ttl": 10**400}}}, "seconds from 1 on"),
        ({"remember": {"a": {"ttl": float("nan")}}}, "seconds from 1 on"),
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
    assert (answer.edits, answer.remember) == (None, None)


def test_staged_options_beside_a_user_message_are_ignored() -> None:
    question: Any = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
    request = parse_chat_request({"id": "chat", "message": question, "edits": 1, "remember": 2})
    assert request.continued is None
