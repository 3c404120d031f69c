from __future__ import annotations

import json
import math
from collections import OrderedDict, UserString, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue

from sluicegate.core.json_values import (
    MAX_DEPTH,
    canonical_json,
    hash_arguments,
    json_safe,
    storable_json,
)
from sluicegate.media.storable_results import as_storable

if TYPE_CHECKING:
    from collections.abc import Iterator


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


class Word(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise ValueError("no")


class Point(BaseModel):
    x: float
    raw: bytes = b""
    note: str | None = None


@dataclass
class Pair:
    left: Any
    right: Any


class Hostile:
    def __repr__(self) -> str:
        raise ValueError("secret")

    __str__ = __repr__


class BadMapping(dict[str, Any]):
    def items(self) -> Any:
        raise ValueError("secret")


def forever() -> Iterator[int]:
    while True:
        yield 1


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        ("ü\ud800\0", "ü\ud800\0"),
        (float("nan"), None),
        ([float("inf"), -float("inf")], [None, None]),
        (2**53 - 1, 2**53 - 1),
        (2**53, "9007199254740992"),
        (-(10**30), "-1" + "0" * 30),
        ([10**5000], ["[16610 bits]"]),
        (b"abc", "[3 bytes]"),
        (memoryview(b"abcd"), "[4 bytes]"),
        ((1, [2, {3}]), [1, [2, [3]]]),
        (deque([1]), [1]),
        (OrderedDict(a=1), {"a": 1}),
        (
            {1: "a", None: "b", 2.5: "c", b"x": "d"},
            {"1": "a", "null": "b", "2.5": "c", "[1 bytes]": "d"},
        ),
        ({True: 1, False: 2}, {"true": 1, "false": 2}),
        ({(1, 2): 3}, {"[tuple]": 3}),
        (Colour.RED, "red"),
        ({Colour.RED: Level.LOW}, {"red": 1}),
        (Word("plain"), "plain"),
        (Point(x=float("nan"), raw=b"12"), {"x": None, "raw": "[2 bytes]"}),
        (Pair(1, Pair(b"", None)), {"left": 1, "right": {"left": "[0 bytes]", "right": None}}),
        (datetime(2025, 1, 2, 3, 4, tzinfo=UTC), "2025-01-02T03:04:00Z"),
        (date(2025, 1, 2), "2025-01-02"),
        (Decimal("1.50"), "1.50"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("/a"), "/a"),
        (UserString("x"), "[UserString]"),
        (Hostile(), "[Hostile]"),
        ({"a": BadMapping(b=1)}, {"a": "[BadMapping]"}),
        (forever(), "[generator]"),
        (Hostile, "[type]"),
    ],
)
def test_every_value_becomes_json(value: object, found: JsonValue) -> None:
    assert json_safe(value) == found
    assert type(json_safe(value)) is type(found)


def test_a_value_that_contains_itself_becomes_a_note() -> None:
    value: dict[str, Any] = {"twice": [1]}
    value["again"] = [value, value["twice"], value["twice"]]
    assert json_safe(value) == {"twice": [1], "again": ["[contains itself]", [1], [1]]}


def test_values_nested_too_deeply_become_a_note() -> None:
    value: Any = "end"
    for _ in range(100_000):
        value = [value]
    found = json.dumps(json_safe(value))
    assert found == "[" * MAX_DEPTH + '"[nested too deeply]"' + "]" * MAX_DEPTH


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.text() | st.integers() | st.booleans(), inner)
            | st.tuples(inner, inner)
        ),
    )
)
def test_the_result_is_legal_json_and_its_own_fixed_point(value: object) -> None:
    found = json_safe(value)
    json.dumps(found, allow_nan=False)
    assert json_safe(found) == found


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
def test_a_value_that_is_not_json_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


DIRTY: list[tuple[Any, Any]] = [
    ("a\0b", "a\ufffdb"),
    ("\ud800", "\ufffd"),
    ("a\udfff\ud800", "a\ufffd\ufffd"),
    ({"a\0": [1, {"b": "\0"}]}, {"a\ufffd": [1, {"b": "\ufffd"}]}),
]


@pytest.mark.parametrize(("value", "stored"), DIRTY)
def test_characters_that_some_store_refuses_are_replaced(value: Any, stored: Any) -> None:
    assert storable_json(value) == stored
    assert storable_json(stored) is stored


@pytest.mark.parametrize("value", ["", "\x01 é 😀", 1, 0.5, True, None, [], {"a": [{"b": "c"}]}])
def test_storable_values_are_returned_unchanged(value: Any) -> None:
    assert storable_json(value) is value


@pytest.mark.parametrize("result", [None, {}, {"a": 1}, "text", [1, 2]])
def test_plain_results_are_not_changed(result: object) -> None:
    assert as_storable(result) is None


@pytest.mark.parametrize(
    ("result", "stored"),
    [
        ({"data": b"1234"}, {"data": "[4 bytes]"}),
        ({"rate": math.nan}, {"rate": None}),
        ({"text": "a\0"}, {"text": "a\ufffd"}),
        (b"12", {"result": "[2 bytes]"}),
        ({"text": "a\ud800"}, {"text": "a\ufffd"}),
        ({"a\ud800": ["b\ud800", {"c": b"1"}]}, {"a\ufffd": ["b\ufffd", {"c": "[1 bytes]"}]}),
        ([{"rate": math.inf}], {"result": [{"rate": None}]}),
    ],
)
def test_a_result_that_is_not_json_becomes_a_note(result: object, stored: object) -> None:
    assert as_storable(result) == stored


def test_a_result_with_a_reference_cycle_can_be_stored() -> None:
    loop: dict[str, Any] = {"name": "loop"}
    loop["again"] = loop
    assert json.dumps(as_storable(loop))
