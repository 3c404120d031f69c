"""Recognition of files in base64, and of what only resembles one."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import pytest

from sluicegate import ToolResult
from sluicegate.errors import DetailError
from sluicegate.media.attachments_and_links import Attachment
from sluicegate.media.base64_detection import file_in_base64, looks_encoded
from sluicegate.media.extract_result_files import extract_files
from tests.media import samples

KINDS = [
    ("image/png", samples.PNG),
    ("image/jpeg", samples.JPEG),
    ("image/gif", samples.GIF),
    ("image/webp", samples.WEBP),
    ("image/bmp", samples.BMP),
    ("image/heic", samples.HEIC),
    ("application/pdf", samples.PDF),
    ("application/zip", samples.ZIP),
    ("audio/wav", samples.WAV),
    ("audio/mpeg", samples.MP3),
    ("video/mp4", samples.MP4),
    ("video/webm", samples.WEBM),
]
"""Files whose rest is zeros: hardly any letter of their base64 varies."""


def padded(data: bytes, size: int = 1_000) -> bytes:
    return data + bytes(max(0, size - len(data)))


def written(data: bytes) -> dict[str, str]:
    """Every way to write bytes in base64."""
    plain = base64.b64encode(data).decode()
    return {
        "plain": plain,
        "in lines": base64.encodebytes(data).decode(),
        "for URLs": base64.urlsafe_b64encode(data).decode(),
        "without padding": plain.rstrip("="),
        "in spaces": f"  {plain}\n",
    }


@pytest.mark.parametrize(("media_type", "data"), KINDS)
def test_a_file_in_base64_is_recognised_however_it_is_written(media_type: str, data: bytes) -> None:
    filled = [data + random.Random(n).randbytes(1_000 + n) for n in range(3)]
    for whole in (padded(data), *filled):
        for name, text in written(whole).items():
            found = file_in_base64(text)
            assert found == Attachment(data=whole, media_type=media_type), name
            assert looks_encoded(text), name
            with pytest.raises(DetailError, match="base64"):
                ToolResult([{"file": text}])


@pytest.mark.parametrize(
    ("declared", "data"),
    [
        ("image/svg+xml", samples.SVG * 10),
        ("text/csv", samples.CSV * 20),
        ("image/png", b"x" * 300),
    ],
)
def test_a_data_url_is_a_file_of_the_type_that_it_declares(declared: str, data: bytes) -> None:
    encoded = base64.b64encode(data).decode()
    for parameters in ("", ";charset=utf-8"):
        found = file_in_base64(f"data:{declared}{parameters};base64,{encoded}")
        assert found == Attachment(data=data, media_type=declared)


@pytest.mark.parametrize("seed", range(50))
def test_no_value_of_a_tool_result_is_base64(seed: int) -> None:
    """What is no file of a known type is refused too, in the tool's own code (S0-R15)."""
    data = random.Random(seed).randbytes(1_000 + seed)
    for name, text in written(data).items():
        assert looks_encoded(text), name
        with pytest.raises(DetailError, match="base64"):
            ToolResult([{"file": text}])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "word " * 1_000,
        "ACGT" * 1_000,
        "f00d" * 1_000,
        "/9j/" * 10,
        "data:image/png;base64,",
        "data:image/png;base64,%%%" + "a" * 400,
        "data:image/png," + "a" * 400,
        f"The picture is {base64.b64encode(padded(samples.PNG)).decode()}.",
        base64.b64encode(b"\xff\xfb" + bytes(900)).decode(),
        base64.b64encode(b"\x1f\x8b" + bytes(900)).decode(),
        *(base64.b64encode(random.Random(n).randbytes(2_000)).decode() for n in range(200)),
    ],
    ids=lambda text: text[:20],
)
def test_keys_and_other_texts_are_no_files(text: str) -> None:
    assert file_in_base64(text) is None
    assert extract_files({"text": text}).response == {"text": text}


PICTURE = padded(samples.PNG, 3_000)
ENCODED = base64.b64encode(PICTURE).decode()
LEFT = "[attached: image/png]"
ATTACHED = Attachment(data=PICTURE, media_type="image/png")

LIFTED: list[tuple[str, Any, Any]] = [
    ("alone", ENCODED, LEFT),
    ("in a mapping", {"title": "t", "image": ENCODED}, {"title": "t", "image": LEFT}),
    ("deep", {"a": [{"b": (1, ENCODED)}]}, {"a": [{"b": [1, LEFT]}]}),
    ("twice", {"a": ENCODED, "b": ENCODED}, {"a": LEFT, "b": LEFT}),
    ("in a data URL", {"a": f"data:image/png;base64,{ENCODED}"}, {"a": LEFT}),
]


@pytest.mark.parametrize(
    ("result", "rest"), [row[1:] for row in LIFTED], ids=[row[0] for row in LIFTED]
)
def test_a_file_in_base64_is_attached_and_its_place_is_marked(result: Any, rest: Any) -> None:
    found = extract_files(result)
    assert found.files == [ATTACHED]
    assert json.loads(json.dumps(found.response)) == rest
    assert found.notes == ["Base64 of files was replaced: they are attached."]
    assert found.problems == []


def test_structured_content_of_an_mcp_server_is_searched() -> None:
    image = {"type": "image", "data": ENCODED, "mimeType": "image/png"}
    found = extract_files(
        {"content": [image], "structuredContent": {"content": [image]}, "isError": False}
    )
    assert found.files == [ATTACHED]
    assert ENCODED not in json.dumps(found.response)


def test_a_text_that_repeats_structured_content_is_searched() -> None:
    structured = {"image": ENCODED, "title": "t"}
    text = {"type": "text", "text": json.dumps(structured)}
    found = extract_files({"content": [text], "structuredContent": structured, "isError": False})
    assert found.files == [ATTACHED]
    rest = {"image": LEFT, "title": "t"}
    assert found.response["structuredContent"] == rest
    assert json.loads(found.response["content"][0]["text"]) == rest
