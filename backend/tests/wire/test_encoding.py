import json
from typing import Any

import pytest

from sluicegate.wire.chunks import (
    BaseChunk,
    Chunk,
    DataChunk,
    TextDeltaChunk,
    ToolApprovalRequestChunk,
    ToolOutputAvailableChunk,
    chunk_for_major,
)
from sluicegate.wire.encoding import encode_chunk, to_json
from tests.wire.chunk_samples import WIRE


@pytest.mark.parametrize(("chunk", "text"), WIRE)
def test_an_optional_none_is_not_encoded(chunk: Chunk, text: str) -> None:
    cls: type[BaseChunk] = type(chunk)
    optional: dict[str, Any] = {
        name: None
        for name, field in cls.model_fields.items()
        if not field.is_required() and name != "type" and name not in cls.nullable
    }
    required = {
        name: getattr(chunk, name)
        for name, field in cls.model_fields.items()
        if field.is_required()
    }
    written = json.loads(to_json(cls(**required, **optional)))
    aliases = {cls.model_fields[name].alias for name in required}
    assert set(written) == aliases | {"type"}


def test_an_untransformed_input_is_encoded_only_if_it_was_passed() -> None:
    bare = ToolApprovalRequestChunk(approval_id="a", tool_call_id="c")
    assert to_json(bare) == '{"type":"tool-approval-request","approvalId":"a","toolCallId":"c"}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-1.5, "-1.5"),
        ("", '""'),
        ([], "[]"),
        ({}, "{}"),
        ((1, None), "[1,null]"),
        ({"a": [{"b": None}]}, '{"a":[{"b":null}]}'),
    ],
)
def test_an_output_is_always_encoded(value: object, text: str) -> None:
    chunk = ToolOutputAvailableChunk(tool_call_id="c", output=value)
    assert to_json(chunk).endswith(f',"output":{text}}}')


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"a": [x]}], ids=["bare", "nested"])
def test_a_number_that_is_not_finite_is_refused(number: float, wrap: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(ToolOutputAvailableChunk(tool_call_id="c", output=wrap(number)))


def test_a_value_that_is_not_json_is_refused() -> None:
    with pytest.raises(TypeError):
        to_json(DataChunk(type="data-x", data=object()))


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="Circular"):
        to_json(DataChunk(type="data-x", data=endless))


def test_a_chunk_without_a_type_is_refused() -> None:
    with pytest.raises(TypeError, match="no type"):
        to_json(BaseChunk())


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("\ud83d", "\ufffd"),
        ("a\ude00b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("é😀", "é😀"),
        ("\x00\u2028", "\x00\u2028"),
    ],
)
def test_every_text_is_valid_utf_8(text: str, written: str) -> None:
    for chunk in (
        TextDeltaChunk(id="t", delta=text),
        ToolOutputAvailableChunk(tool_call_id="c", output={"key": [text]}),
        DataChunk(type="data-x", data={text: 1}),
    ):
        read = json.loads(to_json(chunk).encode())
        assert written in (
            read.get("delta"),
            *read.get("output", {}).get("key", []),
            *read.get("data", {}),
        )


@pytest.mark.parametrize(
    ("output", "written"),
    [
        ({"__proto__": 1, "a": 2}, {"a": 2}),
        ([{"b": {"__proto__": {}}}], [{"b": {}}]),
        ({"constructor": {"prototype": 1}, "a": 1}, {"a": 1}),
        ({"constructor": {"name": 1}}, {"constructor": {"name": 1}}),
        ({"constructor": "prototype"}, {"constructor": "prototype"}),
        (("__proto__", {"__proto__": 1}), ["__proto__", {}]),
        ({"text": '"__proto__":'}, {"text": '"__proto__":'}),
    ],
)
def test_keys_at_which_the_client_ends_the_response_are_left_out(
    output: object, written: object
) -> None:
    chunk = ToolOutputAvailableChunk(tool_call_id="c", output=output)
    assert json.loads(to_json(chunk))["output"] == written


@pytest.mark.parametrize(("chunk", "text"), WIRE)
def test_each_major_has_its_text(chunk: BaseChunk, text: str) -> None:
    entry = encode_chunk(chunk)
    fit = chunk_for_major(chunk, 6)
    assert entry.text_for(7) == text
    assert entry.text_for(6) == (None if fit is None else to_json(fit))
    assert entry.text.startswith(f'{{"type":"{entry.kind}"')


def test_a_chunk_for_both_majors_is_encoded_once() -> None:
    entry = encode_chunk(TextDeltaChunk(id="t", delta="x"))
    assert entry.text_for_6 is entry.text


@pytest.mark.parametrize("text", ["plain", "äöü", "😀"])
def test_the_size_is_that_of_the_encoded_bytes(text: str) -> None:
    chunk = TextDeltaChunk(id="t", delta=text)
    assert encode_chunk(chunk).size == len(to_json(chunk).encode())
