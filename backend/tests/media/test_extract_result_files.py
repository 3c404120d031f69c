"""Extraction of files from results of every kind."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import CallToolResult, ImageContent, TextContent
from pydantic import BaseModel

from sluicegate.media.attachments_and_links import Attachment, Link
from sluicegate.media.extract_result_files import extract_files
from sluicegate.media.tool_result_with_files import ToolResult
from tests.media import samples

PICTURE = types.Part(inline_data=types.Blob(data=samples.PNG, mime_type="image/png"))
FOUND = Attachment(data=samples.PNG, media_type="image/png")
PNG_TEXT = base64.b64encode(samples.PNG).decode()


RESPONSE = types.Part(
    function_response=types.FunctionResponse(
        id="another",
        name="another",
        response={"a": 1},
        parts=[types.FunctionResponsePart.from_bytes(data=b"x", mime_type="a/b")],
    )
)


class Model(BaseModel):
    name: str = "x"


@pytest.mark.parametrize(
    "result",
    [
        None,
        "text",
        "",
        1,
        1.5,
        True,
        {},
        {"a": [1, {"b": None}]},
        [1, "a"],
        (1,),
        Model(),
        object(),
    ],
)
def test_a_result_without_files_is_unchanged(result: object) -> None:
    taken = extract_files(result)
    assert taken.response is result
    assert (taken.files, taken.problems, taken.is_changed) == ([], [], False)


RESULTS: list[tuple[str, object, object, int]] = [
    ("a part", PICTURE, {}, 1),
    ("a blob", PICTURE.inline_data, {}, 1),
    ("a list of parts", [PICTURE, PICTURE], {}, 2),
    ("a list of texts and parts", ["a", PICTURE, None, types.Part(text="b")], "a\nb", 1),
    ("an empty text", [types.Part(text=""), PICTURE], "", 1),
    ("a content", types.Content(parts=[types.Part(text="a"), PICTURE]), "a", 1),
    ("a part of another kind", types.Part(thought=True), {}, 0),
    ("a response in a part", RESPONSE, {"a": 1}, 1),
    ("a mapping", {"title": "t", "chart": PICTURE}, {"title": "t"}, 1),
    ("deep in a mapping", {"a": {"b": [{"c": PICTURE}, 1]}}, {"a": {"b": [1]}}, 1),
    ("a result", ToolResult(["a", PICTURE]), {"status": "success", "text_result": "a"}, 1),
    (
        "a function response",
        types.FunctionResponse(
            response={"a": 1},
            parts=[types.FunctionResponsePart.from_bytes(data=b"x", mime_type="a/b")],
        ),
        {"a": 1},
        1,
    ),
    (
        "a wrapped result",
        types.FunctionResponse(response={"result": ToolResult(["a"])}),
        {"status": "success", "text_result": "a"},
        0,
    ),
    ("an image", types.Image(image_bytes=samples.PNG, mime_type="image/png"), {}, 1),
]


@pytest.mark.parametrize(
    ("result", "rest", "count"), [row[1:] for row in RESULTS], ids=[row[0] for row in RESULTS]
)
def test_files_are_extracted_and_the_rest_is_unchanged(
    result: object, rest: object, count: int
) -> None:
    taken = extract_files(result)
    assert taken.response == rest
    assert len(taken.files) == count
    assert taken.is_changed


def test_parts_beside_a_function_response_are_ignored_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    taken = extract_files([types.Part(text="before"), RESPONSE, PICTURE])
    assert taken.response == {"a": 1}
    assert [file.data for file in taken.files if isinstance(file, Attachment)] == [b"x"]
    assert caplog.messages == ["a tool returned a function response; 2 other parts are ignored"]


def test_files_keep_their_order() -> None:
    link = types.FileData(file_uri="gs://a/b", mime_type="image/png")
    taken = extract_files({"one": link, "two": [PICTURE], "three": Attachment(data=b"x")})
    assert taken.files == [
        Link("gs://a/b", "image/png"),
        FOUND,
        Attachment(data=b"x"),
    ]


def test_the_value_of_the_tool_is_not_changed() -> None:
    result = {"chart": PICTURE, "more": [PICTURE, {"a": 1}]}
    extract_files(result)
    assert result == {"chart": PICTURE, "more": [PICTURE, {"a": 1}]}


MCP = {
    "content": [
        {"type": "text", "text": "two pictures"},
        {"type": "image", "data": PNG_TEXT, "mimeType": "image/png"},
        {"type": "audio", "data": base64.b64encode(samples.WAV).decode(), "mimeType": "audio/wav"},
        {
            "type": "resource",
            "resource": {
                "uri": "file:///report.pdf",
                "mimeType": "application/pdf",
                "blob": base64.b64encode(samples.PDF).decode(),
            },
        },
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "words"}},
        {"type": "resource_link", "uri": "https://a.example/b", "name": "b"},
    ],
    "isError": False,
}


def test_images_of_an_mcp_tool_are_extracted_without_their_base64() -> None:
    taken = extract_files(MCP)
    assert taken.files == [
        FOUND,
        Attachment(data=samples.WAV, media_type="audio/wav"),
        Attachment(data=samples.PDF, media_type="application/pdf", title="report.pdf"),
    ]
    assert taken.response == {
        "content": [
            {"type": "text", "text": "two pictures"},
            {"type": "image", "mimeType": "image/png"},
            {"type": "audio", "mimeType": "audio/wav"},
            {
                "type": "resource",
                "resource": {"uri": "file:///report.pdf", "mimeType": "application/pdf"},
            },
            {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "words"}},
            {"type": "resource_link", "uri": "https://a.example/b", "name": "b"},
        ],
        "isError": False,
    }


def test_objects_of_the_mcp_package_are_recognised() -> None:
    image = ImageContent(type="image", data=PNG_TEXT, mime_type="image/png")
    taken = extract_files(CallToolResult(content=[TextContent(type="text", text="a"), image]))
    assert taken.files == [FOUND]
    assert PNG_TEXT not in str(taken.response)


@pytest.mark.parametrize("data", ["not base64!", None, 7, ""])
def test_an_image_that_cannot_be_decoded_is_one_sentence(data: object) -> None:
    taken = extract_files({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]})
    assert taken.files == []
    assert taken.problems == ["A file was left out: it is not what the protocol calls for."]


@pytest.mark.parametrize(
    "result",
    [
        {"content": [{"type": "text", "text": "a"}]},
        {"content": "text", "isError": False},
        {"content": [], "isError": False},
        {"content": [1], "isError": False},
        {"content": [{"type": "chapter"}], "isError": False},
        {"content": [{"type": ["image"]}], "isError": False},
    ],
)
def test_similar_results_are_not_taken_for_mcp(result: object) -> None:
    assert extract_files(result).response is result


def test_an_invalid_file_is_one_sentence_and_the_rest_is_unchanged() -> None:
    taken = extract_files({"a": 1, "b": types.Blob(mime_type="image/png"), "c": PICTURE})
    assert taken.response == {"a": 1}
    assert taken.files == [FOUND]
    assert taken.problems == ["A file was left out: a blob has no data."]


class UnreadableMapping(Mapping[str, Any]):
    """A mapping that cannot be read."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


def test_unreadable_containers_are_unchanged() -> None:
    angry = UnreadableMapping()
    loop: list[Any] = [1]
    loop.append(loop)
    assert extract_files(angry).response is angry
    assert extract_files(loop).response is loop
    deep: Any = PICTURE
    for _ in range(200):
        deep = [deep]
    assert extract_files(deep).files == []


@dataclass
class Foreign:
    """Something else."""

    value: int = 1


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.just(PICTURE),
    st.just(types.Part()),
    st.just(types.Blob()),
    st.just(types.FileData(file_uri="a")),
    st.just(Foreign()),
    st.just(Model()),
    st.builds(object),
)
MCP_ITEMS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource", "x"])},
    optional={"data": LEAVES, "mimeType": LEAVES, "resource": LEAVES, "text": LEAVES},
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=4),
        st.fixed_dictionaries({"content": st.lists(MCP_ITEMS, max_size=3)}),
    ),
    max_leaves=20,
)


@given(result=ANYTHING)
def test_no_result_raises(result: object) -> None:
    taken = extract_files(result)
    assert all(sentence.endswith(".") for sentence in taken.problems)
    again = extract_files(taken.response)
    assert again.files == []
