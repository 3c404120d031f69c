"""Files and results in the form of LiteLLM."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.media.litellm_blocks import (
    data_url,
    decode_text,
    file_block,
    insert_blocks,
    result_text,
)
from sluicegate.media.tool_result_with_files import STATUSES

URL = "data:a/b;base64,QQ=="


@given(data=st.binary(max_size=3 * 64 * 1024 + 50))
def test_a_data_url_holds_the_bytes(data: bytes) -> None:
    assert data_url(data, "image/png") == (
        "data:image/png;base64," + base64.b64encode(data).decode()
    )


@pytest.mark.parametrize("size", [0, 1, 2, 3, 3 * 64 * 1024 - 1, 3 * 64 * 1024, 3 * 64 * 1024 + 1])
def test_a_data_url_does_not_depend_on_its_slices(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert base64.b64decode(data_url(data, "a/b").partition(",")[2]) == data


@pytest.mark.parametrize(
    ("media_type", "title", "block"),
    [
        ("image/png", None, {"type": "image_url", "image_url": {"url": URL}}),
        (
            "audio/mpeg",
            None,
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "mp3"}},
        ),
        (
            "audio/x-wav",
            None,
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
        ),
        ("video/mp4", None, {"type": "video_url", "video_url": {"url": URL}}),
        (
            "application/pdf",
            "report.pdf",
            {"type": "file", "file": {"filename": "report.pdf", "file_data": URL}},
        ),
        (
            "application/pdf",
            None,
            {"type": "file", "file": {"filename": "document.pdf", "file_data": URL}},
        ),
    ],
)
def test_a_file_is_a_block(media_type: str, title: str | None, block: dict[str, Any]) -> None:
    assert file_block(media_type, URL, title) == block


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"status": "success", "text_result": "Done it."}, "Done it."),
        ({"status": "success"}, "Done."),
        ({"status": "error", "text_result": "No."}, "Status: error\nNo."),
        (
            {"status": "success", "text_result": "Two.", "structured_result": {"a": 1}},
            'Two.\n{"a": 1}',
        ),
        (
            {
                "status": "success",
                "text_result": "A chart.",
                "note": "One was left out.",
                "attachments": [{"id": "ab"}],
                "attachments_note": "1 file follows in the next message.",
            },
            "A chart.\n1 file follows in the next message.\nOne was left out.\n"
            '{"attachments": [{"id": "ab"}]}',
        ),
        ({"rows": 3}, '{"rows": 3}'),
        ({"status": "shipped", "text_result": "x"}, '{"status": "shipped", "text_result": "x"}'),
        ({"status": "success", "text_result": 7}, '{"status": "success", "text_result": 7}'),
        ({}, "{}"),
    ],
)
def test_a_result_with_text_is_sent_as_text(response: dict[str, Any], text: str) -> None:
    before = json.dumps(response)
    assert result_text(response, STATUSES) == text
    assert json.dumps(response) == before


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("naïve".encode(), "naïve"),
        (b"\xef\xbb\xbfa", "a"),
        ("naïve".encode("utf-16"), "naïve"),
        ("naïve".encode("latin-1"), "naïve"),
        (b"\xff\xfe\x00", "\ufffd"),
    ],
)
def test_a_text_file_is_decoded_in_its_encoding(data: bytes, text: str) -> None:
    assert decode_text(data) == text


BLOCKS = {
    "t1": [{"type": "text", "text": "words"}],
    "t2": [{"type": "text", "text": "words"}, {"type": "image_url"}],
}
MESSAGES: list[tuple[str, Any, Any]] = [
    ("a plain message", {"role": "user", "content": "hi"}, "hi"),
    ("no content", {"role": "assistant", "content": None}, None),
    ("a lone text", {"role": "tool", "content": '{"sluicegate": "t1"}'}, "words"),
    ("text and file", {"role": "tool", "content": '{"sluicegate": "t2"}'}, BLOCKS["t2"]),
    ("a bare token", {"role": "user", "content": "t2"}, BLOCKS["t2"]),
    (
        "a token among blocks",
        {"role": "user", "content": [{"type": "text", "text": "t2"}, {"type": "x"}]},
        [*BLOCKS["t2"], {"type": "x"}],
    ),
    ("an unknown token", {"role": "tool", "content": '{"sluicegate": "t9"}'}, None),
    ("more than a token", {"role": "tool", "content": '{"sluicegate": "t1", "a": 1}'}, None),
    ("no JSON", {"role": "tool", "content": "{"}, "{"),
]


@pytest.mark.parametrize(
    ("message", "content"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES]
)
def test_only_tokens_are_replaced_by_blocks(message: Any, content: Any) -> None:
    before = json.dumps(message)
    [fresh] = insert_blocks([message], BLOCKS)
    assert fresh["content"] == (content if content is not None else message["content"])
    assert fresh["role"] == message["role"]
    assert json.dumps(message) == before
