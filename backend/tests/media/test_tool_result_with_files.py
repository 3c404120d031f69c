"""Results of tools, and the parts that they become."""

from __future__ import annotations

import base64
import inspect
import itertools
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from google.adk.tools.function_tool import FunctionTool
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from sluicegate import ToolResult
from sluicegate.errors import DetailError, DetailTypeError, SluicegateError
from sluicegate.media.attachments_and_links import MAX_DESCRIPTION, Attachment, Link
from sluicegate.media.tool_result_with_files import MAX_FILE_BYTES, MAX_FILES
from sluicegate.wire.stored_files import StoredFile
from tests.media import samples

BLOB = types.Blob(data=samples.PNG, mime_type="image/png", display_name="chart.png")
FILE = types.FileData(file_uri="gs://bucket/a.pdf", mime_type="application/pdf", display_name="a")
STORED = StoredFile.of(b"x", "text/plain", title="notes.txt")


def response(result: ToolResult) -> dict[str, Any]:
    [answer, *_] = result.to_parts(name="draw", id="c1")
    assert answer.function_response is not None
    return answer.function_response.response or {}


def kinds(result: ToolResult) -> list[str]:
    return [
        "response" if part.function_response else "inline" if part.inline_data else "file"
        for part in result.to_parts(name="draw", id="c1")
    ]


def test_the_response_comes_first_with_the_name_and_the_id_of_its_call() -> None:
    [answer] = ToolResult().to_parts(name="draw", id="c1")
    assert answer == types.Part(
        function_response=types.FunctionResponse(
            id="c1", name="draw", response={"status": "success"}
        )
    )


def test_name_and_id_are_given_by_name() -> None:
    parameters = inspect.signature(ToolResult.to_parts).parameters
    kinds = [p.kind for name, p in parameters.items() if name != "self"]
    assert kinds == [inspect.Parameter.KEYWORD_ONLY] * 2


@pytest.mark.parametrize(("name", "id_"), [("", "c1"), ("draw", "")])
def test_a_call_without_a_name_or_an_id_is_an_error(name: str, id_: str) -> None:
    with pytest.raises(DetailError):
        ToolResult().to_parts(name=name, id=id_)


@pytest.mark.parametrize("status", ["success", "error", "denied", "pending"])
def test_the_status_is_always_present(status: Any) -> None:
    assert response(ToolResult(status=status)) == {"status": status}


def test_texts_are_joined_in_order_and_empty_ones_left_out() -> None:
    assert response(ToolResult(["one", "", BLOB, "two", types.Part(text="three")])) == {
        "status": "success",
        "text_result": "one\ntwo\nthree",
    }
    assert "text_result" not in response(ToolResult([""]))
    assert ToolResult(["one", {"a": 1}, "two"]).text == "one\ntwo"


def test_mappings_are_merged_and_later_keys_win() -> None:
    result = ToolResult([{"a": 1, "b": {"c": 1}}, "text", {"b": {"d": 2}, "e": date(2030, 1, 2)}])
    assert response(result)["structured_result"] == {"a": 1, "b": {"d": 2}, "e": "2030-01-02"}
    assert "structured_result" not in response(ToolResult(["text", {}]))


def test_numbers_that_json_cannot_represent_become_null() -> None:
    assert response(ToolResult([{"a": float("nan")}]))["structured_result"] == {"a": None}


@pytest.mark.parametrize(
    "order", list(itertools.permutations([BLOB, FILE, STORED, Link("https://a.example/b", "a/b")]))
)
def test_files_keep_the_order_of_their_author(order: tuple[Any, ...]) -> None:
    parts = ToolResult(["text", *order, {"a": 1}]).to_parts(name="draw", id="c1")
    uris = {id(FILE): FILE.file_uri, id(STORED): STORED.uri}
    for part, detail in zip(parts[1:], order, strict=True):
        if detail is BLOB:
            assert part.inline_data == types.Blob(data=samples.PNG, mime_type="image/png")
        else:
            assert part.file_data is not None
            assert part.file_data.file_uri == uris.get(id(detail), "https://a.example/b")


@pytest.mark.parametrize("data", ["PNG", "JPEG", "GIF", "WEBP", "PDF", "WAV", "MP3", "MP4", "WEBM"])
def test_every_kind_of_file_is_sent_completely(data: str) -> None:
    content: bytes = getattr(samples, data)
    part = ToolResult([Attachment(data=content)]).to_parts(name="draw", id="c1")[1]
    assert part.inline_data is not None
    assert part.inline_data.data == content


def test_no_display_name_and_no_nested_part_is_sent() -> None:
    parts = ToolResult([BLOB, FILE, types.Part(inline_data=BLOB)]).to_parts(name="draw", id="c1")
    dumped = str([part.model_dump(exclude_none=True) for part in parts])
    assert "display_name" not in dumped
    assert parts[0].function_response is not None
    assert parts[0].function_response.parts is None


def test_a_path_is_read_when_the_parts_are_made(tmp_path: Path) -> None:
    path = tmp_path / "chart.png"
    result = ToolResult([path])
    with pytest.raises(DetailError, match="cannot be read"):
        result.to_parts(name="draw", id="c1")
    path.write_bytes(b"")
    with pytest.raises(DetailError, match="empty"):
        result.to_parts(name="draw", id="c1")
    path.write_bytes(samples.PNG)
    part = result.to_parts(name="draw", id="c1")[1]
    assert part.inline_data == types.Blob(data=samples.PNG, mime_type="image/png")


WRONG: list[tuple[Any, type[SluicegateError], str]] = [
    ("text", DetailTypeError, "details is a str"),
    (b"bytes", DetailTypeError, "details is a bytes"),
    ({"a": 1}, DetailTypeError, "details is a dict"),
    (7, DetailTypeError, "details is a int"),
    ({1, 2}, DetailTypeError, "details is a set"),
    ([None], DetailTypeError, r"details\[0\] is a NoneType"),
    (["a", 1.5], DetailTypeError, r"details\[1\] is a float"),
    ([b"bytes"], DetailTypeError, r"details\[0\] is a bytes"),
    ([["a"]], DetailTypeError, r"details\[0\] is a list"),
    ([types.Part(function_call=types.FunctionCall(name="x"))], DetailTypeError, r"details\[0\]"),
    ([types.Blob(mime_type="image/png")], DetailError, r"details\[0\]: a blob has no data"),
    ([types.Blob(data=b"", mime_type="image/png")], DetailError, "no data"),
    ([types.Blob(data=b"x")], DetailError, "no mime_type"),
    ([types.FileData(file_uri="gs://a/b")], DetailError, "no mime_type"),
    ([types.FileData(mime_type="image/png")], DetailError, "no file_uri"),
    ([types.FileData(file_uri="gs://a", mime_type="picture")], DetailError, "no mime_type"),
    ([types.Image()], DetailError, "no file_uri"),
    ([{1: "a"}], DetailTypeError, r"details\[0\] has a key that is not a string"),
    ([{"a": object()}], DetailTypeError, r"details\[0\]\.a is not JSON"),
    ([{"a": {"b": b"x"}}], DetailTypeError, r"details\[0\]\.a holds bytes"),
]


@pytest.mark.parametrize(("details", "error", "said"), WRONG)
def test_an_invalid_detail_is_named_by_its_path(
    details: Any, error: type[SluicegateError], said: str
) -> None:
    with pytest.raises(error, match=said) as caught:
        ToolResult(details)
    assert isinstance(caught.value, ValueError | TypeError)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(DetailError, match="status"):
        ToolResult([], status="done")  # type: ignore[arg-type]


def test_a_loop_in_a_detail_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    with pytest.raises(DetailTypeError, match=r"details\[0\]"):
        ToolResult([loop])


ENCODED = base64.b64encode(bytes(range(256)) * 4).decode()


@pytest.mark.parametrize(
    "detail",
    [
        ENCODED,
        types.Part(text=ENCODED),
        {"picture": ENCODED},
        {"deep": [{"er": f"data:image/png;base64,{ENCODED}"}]},
        base64.encodebytes(bytes(range(256)) * 4).decode(),
        base64.urlsafe_b64encode(bytes(range(256)) * 4).decode(),
    ],
)
def test_a_file_in_base64_is_refused(detail: Any) -> None:
    with pytest.raises(DetailError, match="base64"):
        ToolResult([detail])


@pytest.mark.parametrize(
    "text", ["ACGT" * 1_000, "word " * 1_000, "a" * 5_000, "f00d" * 1_000, "Über " * 1_000]
)
def test_long_words_are_not_taken_for_base64(text: str) -> None:
    assert ToolResult([text]).text == text


def test_a_result_has_limits_on_files_and_on_their_size() -> None:
    ToolResult([BLOB] * MAX_FILES).to_parts(name="draw", id="c1")
    with pytest.raises(DetailError):
        ToolResult([BLOB] * (MAX_FILES + 1)).to_parts(name="draw", id="c1")
    whole = types.Blob(data=bytes(MAX_FILE_BYTES), mime_type="audio/pcm")
    ToolResult([whole]).to_parts(name="draw", id="c1")
    more = types.Blob(data=bytes(MAX_FILE_BYTES + 1), mime_type="audio/pcm")
    with pytest.raises(DetailError):
        ToolResult([more]).to_parts(name="draw", id="c1")


BAD_ATTACHMENTS: list[tuple[dict[str, Any], str]] = [
    ({}, "either data or path"),
    ({"data": b"x", "path": Path("a")}, "either data or path"),
    ({"data": b""}, "empty"),
    ({"data": "text"}, "data is a str"),
    ({"path": 7}, "path is a int"),
    ({"data": b"x", "media_type": "picture"}, "not a media type"),
    ({"data": b"x", "media_type": 1}, "media_type is a int"),
    ({"data": b"x", "title": 1}, "title is a int"),
    ({"data": b"x", "description": "a" * (MAX_DESCRIPTION + 1)}, "longer than"),
]


@pytest.mark.parametrize(("fields", "said"), BAD_ATTACHMENTS)
def test_an_invalid_attachment_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(DetailError, match=said):
        Attachment(**fields)


def test_an_attachment_in_base64_has_its_bytes_or_none() -> None:
    assert Attachment(data=b"abc", media_type="a/b").base64() == "YWJj"
    assert Attachment(path=Path("a.png")).base64() is None
    assert Attachment(data=b"x", description="a" * MAX_DESCRIPTION).description


DETAILS = st.one_of(
    st.text(max_size=20),
    st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=5), max_size=3),
    st.just(BLOB),
    st.just(FILE),
    st.just(STORED),
)


@given(details=st.lists(DETAILS, max_size=8))
def test_any_details_become_one_response_and_the_files_after_it(details: list[Any]) -> None:
    result = ToolResult(details)
    files = sum(not isinstance(detail, str | dict) for detail in details)
    assert kinds(result)[0] == "response"
    assert len(kinds(result)) == 1 + files
    assert set(response(result)) <= {"status", "text_result", "structured_result"}


def test_a_function_may_be_annotated_with_a_result(caplog: pytest.LogCaptureFixture) -> None:
    """ADK derives a schema from the return annotation and logs a traceback if it cannot."""

    def draw() -> ToolResult:
        """Draw."""
        return ToolResult()

    assert FunctionTool(draw)._get_declaration() is not None
    assert caplog.records == []
    adapter, result = TypeAdapter(ToolResult), ToolResult(["words"])
    assert adapter.json_schema() == {"type": "object"}
    assert adapter.validate_python(result) is result
