import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import RequestError
from sluicegate.wire.limits import RequestLimits
from sluicegate.wire.requests import parse_chat_request

CALL = {"type": "tool-pay", "toolCallId": "c1", "input": {"amount": 1}}
GOOD: list[Any] = [
    {
        "id": "chat",
        "trigger": "submit-message",
        "messageId": "u1",
        "tools": {"scroll": {"description": "Scroll.", "parameters": {"type": "object"}}},
        "messages": [
            {
                "id": "u1",
                "role": "user",
                "metadata": {},
                "parts": [
                    {"type": "text", "text": "Hello"},
                    {
                        "type": "file",
                        "mediaType": "image/png",
                        "filename": "a.png",
                        "url": "data:image/png;base64,iVBORw0KGgo=",
                    },
                ],
            }
        ],
    },
    {
        "id": "chat",
        "trigger": "submit-message",
        "messageId": "a1",
        "messages": [
            {
                "id": "a1",
                "role": "assistant",
                "parts": [
                    {"type": "step-start"},
                    CALL
                    | {
                        "state": "approval-responded",
                        "approval": {"id": "ap1", "approved": True, "reason": "ok"},
                    },
                    CALL
                    | {
                        "state": "output-available",
                        "output": 1,
                        "preliminary": False,
                        "approval": {"id": "ap2", "approved": True, "reason": "ok"},
                    },
                    {
                        "type": "dynamic-tool",
                        "toolName": "get_place",
                        "toolCallId": "c2",
                        "state": "output-error",
                        "errorText": "No.",
                    },
                ],
            },
            {"id": "a2", "role": "assistant", "parts": []},
        ],
    },
]
STRANGE: list[Any] = [None, True, 0, -1.5, "", "..", "data:,", [], [[]], ["a1"], {}, {"a": []}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def put(value: Any, path: tuple[Any, ...], strange: Any) -> Any:
    """Return the value with something else in one place, if that place is still there."""
    if not path:
        return strange
    changed = copy.deepcopy(value)
    place = changed
    try:
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = strange
    except (IndexError, KeyError, TypeError):
        return value
    return changed


LIMITS = RequestLimits(page_tools=frozenset({"scroll", "a"}))


def read_or_refuse(body: Any) -> None:
    try:
        request = parse_chat_request(body, LIMITS)
    except RequestError:
        return
    assert (request.user_message is None) is not (request.continued is None)


PLACES = [(body, path) for body in GOOD for path in places(body)]


@pytest.mark.parametrize("body", GOOD)
def test_the_unchanged_requests_are_valid(body: Any) -> None:
    parse_chat_request(body, LIMITS)


@pytest.mark.parametrize("strange", STRANGE, ids=repr)
def test_an_unexpected_value_at_any_path_is_parsed_or_refused(strange: Any) -> None:
    for body, path in PLACES:
        read_or_refuse(put(body, path, strange))


@given(
    st.sampled_from(GOOD),
    st.lists(st.tuples(st.sampled_from([path for _, path in PLACES]), st.sampled_from(STRANGE))),
)
def test_unexpected_values_at_many_paths_are_parsed_or_refused(
    body: Any, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    for path, strange in changes:
        body = put(body, path, strange)
    read_or_refuse(body)
