from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.utils.streaming_utils import _JsonPathTracker, _parse_json_path
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.core.streamed_arguments import ArgumentsWriter, parse_path

if TYPE_CHECKING:
    from pydantic import JsonValue

MEMBERS = st.dictionaries(
    st.text(max_size=6),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-1000, 1000)
        | st.floats(-1e6, 1e6, allow_nan=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
        max_leaves=12,
    ),
    max_size=5,
)


def written(pieces: list[tuple[str, Any]], final: JsonValue) -> str:
    """The text of pieces: strings are appended, other values are set."""
    writer = ArgumentsWriter()
    text = ""
    for path, value in pieces:
        if isinstance(value, str):
            text += writer.add_string(parse_path(path), value)
        else:
            text += writer.add_scalar(parse_path(path), value)
    return text + writer.finish(final)


@pytest.mark.parametrize(
    ("pieces", "final", "text"),
    [
        ([], {}, "{}"),
        ([], None, "{}"),
        ([], {"a": [1]}, '{"a":[1]}'),
        ([("$.city", "To"), ("$.city", "kyo")], {"city": "Tokyo"}, '{"city":"Tokyo"}'),
        ([("$.q", 'a "b"\n')], {"q": 'a "b"\n'}, '{"q":"a \\"b\\"\\n"}'),
        ([("$.a", 1.0), ("$.b", True), ("$.c", None)], {"a": 1, "b": True, "c": None}, None),
        ([("$.n", 1), ("$.n", 12)], {"n": 12}, '{"n":12}'),
        ([("$.a.b", "x"), ("$.a.c[0]", 1), ("$.d", 2)], {"a": {"b": "x", "c": [1]}, "d": 2}, None),
        ([("$.l[0].x", "a"), ("$.l[1].x", "b")], {"l": [{"x": "a"}, {"x": "b"}]}, None),
        ([("$.l[2]", 5)], {"l": [None, None, 5]}, '{"l":[null,null,5]}'),
        ([("$.a", "x")], {"a": "x", "empty": {}, "none": []}, '{"a":"x","empty":{},"none":[]}'),
        ([("$.a.b", 1)], {"a": {"b": 1, "c": []}}, '{"a":{"b":1,"c":[]}}'),
    ],
)
def test_pieces_become_the_text_of_the_arguments(
    pieces: list[tuple[str, Any]], final: JsonValue, text: str | None
) -> None:
    found = written(pieces, final)
    assert json.loads(found) == (final or {})
    if text is not None:
        assert found == text


@pytest.mark.parametrize(
    ("pieces", "final"),
    [
        ([("$.a.x", 1), ("$.b", 2), ("$.a.y", 3)], {"a": {"x": 1, "y": 3}, "b": 2}),
        ([("$.l[1]", 1), ("$.m", 1), ("$.l[0]", 2)], {"l": [2, 1], "m": 1}),
        ([("$.a", "old"), ("$.b", 1)], {"a": "new", "b": 1}),
        ([("$.a", "x"), ("$.a", 1)], {"a": 1}),
        ([("$.a", "x"), ("$.a.b", 1)], {"a": {"b": 1}}),
        ([("$.a[0]", 1), ("$.a.b", 2)], {"a": {"b": 2}}),
        ([("$.a", True)], {"a": 1}),
        ([("$[0]", 1), ("", 2), ("$.l[99999]", 1)], {"a": 1}),
        ([("$" + ".a" * 100, 1)], {"a": "deep"}),
    ],
)
def test_a_value_that_changes_after_it_was_written_is_written_again(
    pieces: list[tuple[str, Any]], final: JsonValue
) -> None:
    found = json.loads(written(pieces, final))
    assert found == final
    assert str(found) == str(final)


@pytest.mark.parametrize(
    "path",
    [
        "$.a",
        "$.a.b[3].c",
        "$['a b'].c",
        '$["x\\"y"]',
        "$['it\\'s']",
        "a.b",
        "$[ 0 ]",
        "$",
        "$.a\\u0041",
    ],
)
def test_paths_are_read_as_adk_reads_them(path: str) -> None:
    assert list(parse_path(path)) == _parse_json_path(path)


@given(members=MEMBERS, size=st.integers(1, 9))
def test_partial_arguments_of_adk_are_joined_to_the_providers_json(
    members: dict[str, Any], size: int
) -> None:
    text = json.dumps(members)
    tracker = _JsonPathTracker()
    writer = ArgumentsWriter()
    found = ""
    for start in range(0, len(text), size):
        for piece in tracker.handle_chunk(text[start : start + size]):
            path = parse_path(piece.json_path or "")
            if piece.string_value is not None:
                found += writer.add_string(path, piece.string_value)
            elif piece.number_value is not None:
                found += writer.add_scalar(path, piece.number_value)
            elif piece.bool_value is not None:
                found += writer.add_scalar(path, piece.bool_value)
            elif piece.null_value is not None:
                found += writer.add_scalar(path, None)
    found += writer.finish(members)
    assert json.loads(found) == members


@given(
    pieces=st.lists(
        st.tuples(
            st.sampled_from(
                ["$.a", "$.a.b", "$.a.b[0]", "$.a.b[1].c", "$.d", "$.d[2]", "$.e['f']"]
            ),
            st.text(max_size=3) | st.integers(0, 3) | st.none() | st.booleans(),
        ),
        max_size=12,
    ),
    members=MEMBERS,
)
def test_any_pieces_in_any_order_end_in_legal_json_that_holds_the_arguments(
    pieces: list[tuple[str, Any]], members: dict[str, Any]
) -> None:
    found = json.loads(written(pieces, members))
    assert {key: found[key] for key in members} == members


def test_the_value_written_so_far_is_readable() -> None:
    writer = ArgumentsWriter()
    writer.add_scalar(("n",), 1)
    writer.add_string(("a", "b"), "he")
    writer.add_string(("a", "b"), "llo")
    assert writer.value == {"n": 1, "a": {"b": "hello"}}
    assert writer.add_string(("a", "b"), "!") == "!"
