from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.errors import TooLarge
from sluicegate.wire.limits import RequestLimits, check_size

if TYPE_CHECKING:
    from pydantic import JsonValue

LIMITS = RequestLimits(nodes=5, string=3)


@pytest.mark.parametrize(
    ("most", "more"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4, 5]),
        ([[[[1]]]], [[[[[1]]]]]),
        ([[], [], {}, None], [[], [], {}, None, ""]),
        ({"a": 1, "b": {"c": [2]}}, {"a": 1, "b": {"c": [2, 3]}}),
        ([[1], [1]], [[1], [1], [1]]),
        ("abc", "abcd"),
        (["éüö"], ["éüöä"]),
        ({"abc": "abc"}, {"abcd": "abc"}),
        ({"abc": "abc"}, {"abc": "abcd"}),
    ],
)
def test_a_value_is_accepted_at_a_limit_and_refused_one_past_it(most: Any, more: Any) -> None:
    check_size(most, LIMITS)
    with pytest.raises(TooLarge):
        check_size(more, LIMITS)


def test_deep_values_are_refused_without_recursion() -> None:
    deep: JsonValue = None
    for level in range(32):
        deep = {"a": deep} if level % 2 else [deep]
    check_size(deep, RequestLimits())
    for _ in range(9_000):
        deep = [deep]
        with pytest.raises(TooLarge, match="more than 32 levels deep"):
            check_size(deep, RequestLimits())


def test_the_defaults_hold_for_a_large_output() -> None:
    check_size(["x" * 2**20, *[1] * 9_998], RequestLimits())
    with pytest.raises(TooLarge):
        check_size([1] * 10_000, RequestLimits())
    with pytest.raises(TooLarge):
        check_size("x" * (2**20 + 1), RequestLimits())
