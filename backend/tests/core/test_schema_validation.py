"""The check of arguments is bounded for every schema that is accepted (ASVS 1.5.3, AISVS C9)."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from sluicegate.core.bounded_schema_structure import (
    DIALECTS,
    MAX_BRANCHES,
    MAX_REFERENCES,
    MAX_SCHEMAS,
)
from sluicegate.core.linear_patterns import MAX_SIZE, LinearPattern, pattern_size
from sluicegate.core.schema_validation import ArgumentSchema, compile_schema, validation_error
from sluicegate.errors import UnusableSchema

TOO_LARGE = "they are too large or too deep to be checked with the tool's schema"


def described(**properties: Any) -> dict[str, Any]:
    """The schema of an object with these properties."""
    return {"type": "object", "properties": properties}


def chain(length: int, **last: Any) -> dict[str, Any]:
    """Definitions of which each refers twice to the next."""
    both = [
        {f"d{n}": described(x={"$ref": f"#/$defs/d{n + 1}"}, y={"$ref": f"#/$defs/d{n + 1}"})}
        for n in range(length)
    ]
    return {name: each for one in both for name, each in one.items()} | {f"d{length}": last}


def inside(depth: int) -> Any:
    return {"x": inside(depth - 1)} if depth else 1


TREE = {
    "$defs": {
        "node": {
            "anyOf": [
                described(x={"$ref": "#/$defs/node"}, tag={"const": "a"}),
                described(x={"$ref": "#/$defs/node"}, tag={"const": "b"}),
                {"type": "string"},
            ]
        }
    },
    **described(x={"$ref": "#/$defs/node"}),
}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (described(a={"pattern": "^(?!x)a"}), "'^(?!x)a' is not valid, or has look-around"),
        (described(a={"pattern": r"(a)\1"}), "look-around or back-references"),
        (described(a={"pattern": "("}), "is not valid"),
        (described(a={"pattern": 3}), "the value of pattern is not valid"),
        (described(a={"pattern": "((a{30}){30}){30}"}), "too large when its repetitions"),
        (described(a={"pattern": "(?x)a # )\n{9999}"}), "has comments"),
        (described(**{f"p{n}": {"pattern": f"a{{4000}}{n}"} for n in range(2)}), "together"),
        ({"type": "object", "patternProperties": {"(?=a)": {}}}, "look-around"),
        (described(a={"$ref": "https://example.com/schema"}), "names no schema inside it"),
        (described(a={"$ref": "file:///etc/passwd"}), "names no schema inside it"),
        (described(a={"$ref": "#/$defs/none"}), "names no schema inside it"),
        ({**described(a={"$ref": "#/default"}), "default": {"type": 3}}, "names no schema inside"),
        (described(a={"$ref": 3}), "the value of $ref is not valid"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}}, "leads back to itself"),
        ({"allOf": [{"$ref": "#"}]}, "leads back to itself"),
        ({"$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}}, "back to"),
        ({"$defs": chain(30)}, "expand to more than"),
        ({"$defs": chain(12)}, "expand to more than"),
        (described(**{f"p{n}": {} for n in range(MAX_SCHEMAS)}), f"more than {MAX_SCHEMAS} schem"),
        ({"anyOf": [{}] * (MAX_BRANCHES + 1)}, f"more than {MAX_BRANCHES} alternatives"),
        (
            {
                "$defs": {"a": {}},
                **described(**{f"p{n}": {"$ref": "#/$defs/a"} for n in range(501)}),
            },
            f"more than {MAX_REFERENCES} references",
        ),
        ({"unevaluatedProperties": False}, "unevaluatedProperties, which cannot be checked"),
        ({"$dynamicRef": "#x"}, "$dynamicRef, which cannot be checked"),
        (described(a={"$schema": "http://json-schema.org/draft-07/schema#"}), "of its own"),
        (described(a={"$id": "http://example.com"}), "of its own"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "older than draft 6"),
        ({"$schema": 7}, "its $schema is no text"),
        (described(a=3), "neither an object nor true or false"),
        ({"properties": []}, "the value of properties is not valid"),
        ({"allOf": {}}, "the value of allOf is not valid"),
        ({"multipleOf": 0}, "the value of multipleOf is not valid"),
        ({"type": "text"}, "the value of type is not valid"),
        ({"required": [1]}, "the value of required is not valid"),
        ({"minLength": True}, "the value of minLength is not valid"),
    ],
)
def test_an_unbounded_or_invalid_schema_is_refused_with_its_reason(
    schema: dict[str, Any], why: str
) -> None:
    with pytest.raises(UnusableSchema) as refused:
        compile_schema(schema)
    assert why in str(refused.value)


@pytest.mark.parametrize("dialect", [None, "urn:unknown", *DIALECTS, f"{min(DIALECTS)}#"])
def test_schemas_of_every_dialect_check_patterns_references_and_names(dialect: str | None) -> None:
    schema: dict[str, Any] = {
        **described(
            order={"$ref": "#/definitions/order"}, inner={"$ref": "#"}, to={"$ref": "#/$defs/a~1b"}
        ),
        "definitions": {"order": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}},
        "$defs": {"a/b": {"enum": ["me", 1, None]}},
        "patternProperties": {"^x-": {"type": "integer"}},
        "additionalProperties": False,
        **({} if dialect is None else {"$schema": dialect, "$id": "https://example.com/s"}),
    }
    compiled = ArgumentSchema(schema)
    for good in ({"order": "AB-1"}, {"inner": {"inner": {"to": 1.0}}}, {"x-a": 1}, {"to": None}):
        assert compiled.error(good) is None
    for bad, error in (
        ({"order": "AB-1\n"}, "order: 'AB-1\\n' does not match '^[A-Z]{2}-[0-9]+$'"),
        ({"inner": {"order": "ab"}}, "inner.order: 'ab' does not match '^[A-Z]{2}-[0-9]+$'"),
        ({"to": True}, "to: True is not one of ['me', 1, None]"),
        ({"x-a": "1"}, "x-a: '1' is not of type 'integer'"),
        ({"y": 1}, "arguments: Additional properties are not allowed ('y' was unexpected)"),
    ):
        assert compiled.error(bad, root="arguments") == error


@pytest.mark.parametrize(
    ("schema", "arguments", "error"),
    [
        (described(a={"pattern": "^(a+)+$"}), {"a": "a" * 200_000 + "!"}, "a: 'aaa"),
        (described(a={"pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"}), {"a": "a" * 200_000}, "a: 'aaa"),
        (described(a={"pattern": "[ab]*a[ab]{1000}c"}), {"a": "abba" * 25_000}, TOO_LARGE),
        ({"patternProperties": {"^(a|aa)+$": False}}, {"a" * 100_000 + "!": 1}, None),
        ({"propertyNames": {"pattern": "^(a|aa)+$"}}, {"a" * 100_000 + "!": 1}, "'aaa"),
        (TREE, inside(40), TOO_LARGE),
        (described(a={"allOf": [{"items": {}}] * 200}), {"a": [1] * 10_000}, TOO_LARGE),
        (described(a={"anyOf": [{"type": "string"}] * 290}), {"a": ["x" * 99] * 5_000}, TOO_LARGE),
        (described(a={"uniqueItems": True}), {"a": [[n] for n in range(5_000)] * 2}, "a: [[0], "),
        (
            described(a={"items": {"enum": [f"{n}" for n in range(5_000)]}}),
            {"a": ["x"] * 9_000},
            TOO_LARGE,
        ),
        (described(a={"items": {"$ref": "#"}}), {"a": [1]}, "a.0: 1 is not of type 'object'"),
        (described(x={"$ref": "#"}), inside(400), TOO_LARGE),
    ],
)
def test_a_check_takes_a_bounded_time_whatever_schema_and_arguments_are(
    schema: dict[str, Any], arguments: dict[str, Any], error: str | None
) -> None:
    compiled = ArgumentSchema(schema)
    started = time.thread_time()
    found = compiled.error(arguments)
    # The bound is a count of steps; backtracking or doubling would take hours.
    assert time.thread_time() - started < 5
    assert found == error or (error is not None and found is not None and found.startswith(error))


def test_large_ordinary_arguments_are_checked() -> None:
    schema = described(a={"type": "array", "items": {"type": "integer", "minimum": 0}})
    assert ArgumentSchema(schema).error({"a": [1] * 9_000}) is None
    assert ArgumentSchema(TREE).error({"x": {"x": {"x": "leaf", "tag": "a"}}}) is None


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        ("", 0),
        ("abc", 3),
        ("[a-z]+", 1),
        ("[]{9}[]{9}]{2}", 2),
        ("a{3}{3}", 9),
        ("(a{2}b){3}", 9),
        ("(?:ab){2,}", 4),
        ("(?<name>a){05,007}", 7),
        (r"\d{2}", 6),
        (r"[\w-]", 50),
        (r"\p{Greek}{2}", 100),
        (r"\u{61}{2}\{9}", 5),
        (r"\x{61}", 1),
    ],
)
def test_the_size_of_a_pattern_counts_its_repetitions(pattern: str, size: int) -> None:
    assert pattern_size(pattern) == size


@given(st.text(alphabet="ab{}()[]|*+?^$\\,019wdpL-", max_size=40))
def test_any_pattern_is_compiled_or_refused(pattern: str) -> None:
    try:
        compiled = LinearPattern(pattern)
    except UnusableSchema:
        return
    assert compiled.size <= MAX_SIZE
    assert compiled.is_in("") in (True, False)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from("ab"), x, max_size=2),
    max_leaves=6,
)
SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "object", "array"]),
            "enum": st.lists(VALUES, max_size=2),
            "const": VALUES,
            "minimum": st.integers(-3, 3),
            "pattern": st.sampled_from(["a", "^b", "a$"]),
            "required": st.lists(st.sampled_from("ab"), max_size=1),
            "uniqueItems": st.booleans(),
        },
    ),
    lambda x: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), x, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["a", "^b"]), x, max_size=2),
            "additionalProperties": st.booleans() | x,
            "items": x,
            "anyOf": st.lists(x, min_size=1, max_size=2),
            "oneOf": st.lists(x, min_size=1, max_size=2),
            "not": x,
            "if": x,
            "then": x,
        },
    ),
    max_leaves=5,
)


@given(SCHEMAS, VALUES)
def test_a_bounded_check_agrees_with_the_reference(schema: dict[str, Any], value: Any) -> None:
    is_valid = Draft202012Validator(described(v=schema)).is_valid({"v": value})
    assert (ArgumentSchema(described(v=schema)).error({"v": value}) is None) is is_valid


def test_edits_may_not_add_arguments_that_the_schema_does_not_list() -> None:
    schema: dict[str, Any] = described(n={"type": "integer"})
    assert validation_error({"n": 1}, schema) is None
    assert validation_error({"m": 1}, schema) == (
        "Additional properties are not allowed ('m' was unexpected)"
    )
    assert validation_error({}, {"type": "object", "pattern": "(?=a)"}) == (
        "the tool's own schema cannot be used"
    )
