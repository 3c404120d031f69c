from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.core.json_values import canonical_json, hash_arguments

if TYPE_CHECKING:
    from pydantic import JsonValue

ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (1e16, "10000000000000000"),
        (1e23, "1" + "0" * 23),
        (2**60 + 1, str(2**60 + 1)),
        (1e-7, "1e-07"),
        ("ü\ud800\0", '"\\u00fc\\ud800\\u0000"'),
        ([1, [2.0]], "[1,[2]]"),
        ({"b": {"d": 1, "c": 2}, "a": []}, '{"a":[],"b":{"c":2,"d":1}}'),
        ({}, "{}"),
    ],
)
def test_a_value_has_one_spelling(value: JsonValue, text: str) -> None:
    assert canonical_json(value) == text


@pytest.mark.parametrize(
    ("left", "right"),
    [(True, 1), (False, 0), ("1", 1), (None, "null"), ([], {}), (2**60, 2**60 + 1), ([1], [[1]])],
)
def test_different_values_have_different_hashes(left: JsonValue, right: JsonValue) -> None:
    assert hash_arguments(left) != hash_arguments(right)


def test_the_order_of_keys_does_not_change_the_hash() -> None:
    assert hash_arguments({"paid": 1, "to": "a"}) == hash_arguments({"to": "a", "paid": 1})


def test_the_hash_is_a_sha256_in_hexadecimal() -> None:
    expected = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert hash_arguments({}) == expected


@given(ANY_JSON)
def test_the_text_is_ascii_json_of_an_equal_value(value: Any) -> None:
    text = canonical_json(value)
    assert text.isascii()
    assert canonical_json(json.loads(text)) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_written_without_exponent_or_point_has_the_same_hash(number: float) -> None:
    """A database may give a whole number back with all its digits and no point."""
    if number.is_integer():
        digits = f"{json.loads(canonical_json(number)):d}"
        assert hash_arguments(json.loads(digits)) == hash_arguments(number)
    assert hash_arguments(json.loads(repr(number))) == hash_arguments(number)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        canonical_json({"amount": [number]})


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[JsonValue] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="contains itself"):
        canonical_json(endless)


@pytest.mark.parametrize("value", [{1: "a"}, {None: "a"}, {"a": {1, 2}}, b"bytes"])
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)
