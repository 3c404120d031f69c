from __future__ import annotations

import json
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

from sluicegate.core.json_values import MAX_DEPTH, json_safe

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


def test_a_value_that_contains_itself_says_so() -> None:
    value: dict[str, Any] = {"twice": [1]}
    value["again"] = [value, value["twice"], value["twice"]]
    assert json_safe(value) == {"twice": [1], "again": ["[contains itself]", [1], [1]]}


def test_what_is_nested_too_deeply_is_cut() -> None:
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
