"""The copy of arguments that an approver sees, and the defaults beside them."""

from __future__ import annotations

import math
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest

from sluicegate.core.exactly_shown_arguments import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_VALUES,
    NotShowable,
    shown_arguments,
)
from sluicegate.core.json_values import hash_arguments
from sluicegate.core.schema_defaults import defaults_in


class Word(StrEnum):
    YES = "yes"


def nested(levels: int) -> Any:
    """A value of so many levels."""
    value: Any = {"x": 1}
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**53) + 1,
        1.5,
        -0.0,
        1e300,
        "",
        "\U0001f600 \u202e",
        [],
        {},
        [{"constructor": {"a": 1}, "prototype": 2, "": [None]}],
        nested(MAX_DEPTH - 1),
        [0] * (MAX_VALUES - 1),
        "x" * (MAX_CHARACTERS - 1),
    ],
    ids=range(15),
)
def test_what_every_client_reads_back_unchanged_is_shown(value: Any) -> None:
    shown = shown_arguments({"a": value})
    assert shown.arguments == {"a": value}
    assert shown.digest == hash_arguments({"a": value})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (nested(MAX_DEPTH), "nested more than 24 levels"),
        ([0] * MAX_VALUES, "more than 10000 values"),
        ("x" * MAX_CHARACTERS, "more than 1048576 characters"),
        (2**53, "beyond 2^53"),
        (-(2**53), "beyond 2^53"),
        (math.nan, "not finite"),
        (-math.inf, "not finite"),
        ("\0", "cannot be stored"),
        ({"\ud800": 1}, "cannot be stored"),
        ({1: 2}, "not a text"),
        ({"__proto__": 1}, "the key __proto__"),
        ([{"constructor": {"prototype": None}}], "the key constructor"),
        (b"x", "type bytes"),
        ({1}, "type set"),
        (Decimal(1), "type Decimal"),
        (Word.YES, "type Word"),
    ],
)
def test_what_would_be_shown_as_something_else_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(NotShowable, match=reason.replace("^", r"\^")):
        shown_arguments({"a": value})


def test_a_value_that_contains_itself_is_nested_too_deeply() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(NotShowable, match="levels"):
        shown_arguments({"a": value})


def test_a_copy_shares_nothing_with_the_arguments() -> None:
    arguments = {"a": [{"b": 1}]}
    shown = shown_arguments(arguments)
    arguments["a"][0]["b"] = 2
    assert shown.arguments == {"a": [{"b": 1}]}


CITY = {"type": "object", "properties": {"city": {"default": "Bonn"}, "zip": {"type": "string"}}}
LINE = {"properties": {"unit": {"default": "box"}, "to": {"$ref": "#/$defs/City"}}}
SCHEMA = {
    "properties": {
        "n": {"type": "integer"},
        "limit": {"default": 10},
        "cc": {"default": None},
        "to": {"$ref": "#/$defs/City"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/City"}, {"type": "null"}], "default": None},
        "either": {"oneOf": [CITY, {"properties": {}}]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "grid": {"anyOf": [{"items": {"items": CITY}}, {"type": "null"}]},
        "loop": {"$ref": "#/$defs/Loop"},
        "away": {"$ref": "https://example.test/x"},
    },
    "$defs": {"City": CITY, "Line": LINE, "Loop": {"$ref": "#/$defs/Loop"}},
}


@pytest.mark.parametrize(
    ("arguments", "defaults"),
    [
        ({}, {"limit": 10, "cc": None, "maybe": None}),
        ({"limit": 1, "cc": "x", "maybe": None}, {}),
        ({"limit": 1, "cc": 1, "maybe": 1, "to": {}}, {"to.city": "Bonn"}),
        ({"limit": 1, "cc": 1, "maybe": {"zip": "1"}, "to": {"city": 1}}, {"maybe.city": "Bonn"}),
        (
            {"limit": 1, "cc": 1, "maybe": 1, "lines": [{"unit": "kg"}, {"to": {}}, "x"]},
            {"lines[].unit": "box", "lines[].to.city": "Bonn"},
        ),
        ({"limit": 1, "cc": 1, "maybe": 1, "lines": [{"unit": "kg"}]}, {}),
        ({"limit": 1, "cc": 1, "maybe": 1, "grid": [[], [{}]]}, {"grid[][].city": "Bonn"}),
        ({"limit": 1, "cc": 1, "maybe": 1, "either": {}, "loop": {}, "away": {}}, {}),
    ],
)
def test_defaults_are_those_of_what_is_left_out(
    arguments: dict[str, Any], defaults: dict[str, Any]
) -> None:
    assert defaults_in(SCHEMA, arguments) == defaults


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {"a": True}}])
def test_a_schema_without_properties_has_no_defaults(schema: dict[str, Any]) -> None:
    assert defaults_in(schema, {"a": {}}) == {}


@pytest.mark.parametrize(
    ("name", "reference"),
    [("a/b", "#/$defs/a~1b"), ("a~b", "#/$defs/a~0b"), ("a b", "#/$defs/a%20b")],
)
def test_a_reference_is_a_json_pointer_in_a_uri(name: str, reference: str) -> None:
    schema = {"properties": {"to": {"$ref": reference}}, "$defs": {name: CITY}}
    assert defaults_in(schema, {"to": {}}) == {"to.city": "Bonn"}


def test_a_reference_may_name_the_whole_schema() -> None:
    schema = {"properties": {"unit": {"default": "box"}, "inner": {"$ref": "#"}}}
    assert defaults_in(schema, {"unit": "bag", "inner": {}}) == {"inner.unit": "box"}


def test_the_digest_covers_the_defaults() -> None:
    one, other = ({"properties": {"limit": {"default": limit}}} for limit in (10, 1000))
    digests = {shown_arguments({"n": 1}, schema).digest for schema in (None, one, other)}
    assert len(digests) == 3
    # Given as an argument, it is not a default.
    assert shown_arguments({"n": 1, "limit": 10}).digest not in digests
