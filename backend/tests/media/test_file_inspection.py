"""Media types by bytes and by declaration, sizes of images, pages of documents."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.demo.png_bar_chart import HEIGHT, WIDTH
from sluicegate.errors import MediaError
from sluicegate.media.file_inspection import (
    check_media_type,
    count_pages,
    detect_media_type,
    longest_side,
    matches_media_type,
    plain_media_type,
)
from tests.media import samples


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        (samples.PNG, "image/png"),
        (samples.PNG, "IMAGE/PNG; q=1"),
        (samples.JPEG, "image/jpeg"),
        (samples.JPEG, "image/jpg"),
        (samples.GIF, "image/gif"),
        (samples.WEBP, "image/webp"),
        (samples.BMP, "image/bmp"),
        (samples.HEIC, "image/heif"),
        (samples.PDF, "application/pdf"),
        (b"junk before\n" + samples.PDF, "application/pdf"),
        (samples.WAV, "audio/x-wav"),
        (samples.MP3, "audio/mpeg"),
        (b"\0\1\2\3", "audio/pcm;rate=24000"),
        (samples.MP4, "video/mp4"),
        (samples.WEBM, "audio/webm"),
        (samples.ZIP, samples.DOCX_TYPE),
        (samples.TEXT, "text/plain; charset=utf-8"),
        ("naïve".encode("latin-1"), "text/csv"),
        ("naïve".encode("utf-16"), "text/plain"),
        (b"BM is how this text begins", "text/plain"),
        (samples.JSON, "application/json"),
        (samples.SVG, "image/svg+xml"),
        (b"\1\2", "application/x-thing"),
    ],
)
def test_a_file_of_its_declared_type_is_accepted(data: bytes, declared: str) -> None:
    assert check_media_type(data, declared) == plain_media_type(declared)


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        (samples.JPEG, "image/png"),
        (samples.PNG, "application/pdf"),
        (samples.PNG, "text/plain"),
        (samples.HTML, "image/png"),
        (samples.HTML, "application/pdf"),
        (samples.PDF, "image/png"),
        (samples.ZIP, "application/pdf"),
        (samples.BMP, "image/png"),
        (samples.TEXT, "image/png"),
        (samples.TEXT, "video/mp4"),
        (samples.PNG, samples.DOCX_TYPE),
        (b"\0\1\2", "text/plain"),
        (b"", "text/plain"),
        (b"", None),
    ],
)
def test_a_file_of_another_type_is_refused(data: bytes, declared: str | None) -> None:
    with pytest.raises(MediaError):
        check_media_type(data, declared)


@pytest.mark.parametrize("declared", [None, "", "application/octet-stream", "image", "a b/c"])
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (samples.PNG, "image/png"),
        (samples.PDF, "application/pdf"),
        (samples.HTML, "text/html"),
        (b"\xef\xbb\xbf \n" + samples.SVG, "text/html"),
        (b"\1\2", "application/octet-stream"),
    ],
)
def test_a_missing_type_is_detected_from_the_bytes(
    data: bytes, declared: str | None, kind: str
) -> None:
    assert check_media_type(data, declared) == kind


@given(data=st.binary(max_size=64), declared=st.none() | st.text(max_size=20))
def test_any_bytes_are_accepted_or_refused(data: bytes, declared: str | None) -> None:
    assert "/" in (detect_media_type(data) or "a/b")
    with contextlib.suppress(MediaError):
        assert "/" in check_media_type(data, declared)


@pytest.mark.parametrize(
    ("media_type", "patterns", "found"),
    [
        ("image/png", ["image/png"], True),
        ("audio/ogg", ["image/png", "audio/*"], True),
        ("image/bmp", ["image/png", "audio/*"], False),
        ("image/bmp", ["*/*"], True),
        ("image/bmp", [], False),
    ],
)
def test_media_types_match_patterns(media_type: str, patterns: list[str], found: bool) -> None:
    assert matches_media_type(media_type, patterns) is found


def jpeg(width: int, height: int) -> bytes:
    segment = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    filler = b"\xff\xff\xfe" + struct.pack(">H", 4) + b"hi"
    frame = b"\xff\xc2" + struct.pack(">HBHH", 11, 8, height, width) + bytes(6)
    return b"\xff\xd8" + segment + filler + frame + b"\xff\xd9"


def webp(kind: bytes, rest: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + bytes(4) + rest


PICTURES: list[tuple[str, bytes, int]] = [
    ("image/png", samples.PNG, max(WIDTH, HEIGHT)),
    ("image/gif", b"GIF89a" + struct.pack("<HH", 12, 700) + bytes(4), 700),
    ("image/jpeg", jpeg(4_000, 30), 4_000),
    ("image/jpeg", jpeg(30, 4_000), 4_000),
    ("image/webp", webp(b"VP8 ", bytes(6) + struct.pack("<HH", 640, 480)), 640),
    ("image/webp", webp(b"VP8L", b"\x2f" + (639 | 479 << 14).to_bytes(4, "little")), 640),
    (
        "image/webp",
        webp(b"VP8X", bytes(4) + (8_999).to_bytes(3, "little") + (1).to_bytes(3, "little")),
        9_000,
    ),
]


@pytest.mark.parametrize(("media_type", "data", "side"), PICTURES)
def test_the_longer_side_is_read_from_the_header(media_type: str, data: bytes, side: int) -> None:
    assert longest_side(data, media_type) == side


@pytest.mark.parametrize(
    "media_type", ["image/png", "image/gif", "image/jpeg", "image/webp", "a/b"]
)
@given(data=st.binary(max_size=80))
def test_an_unknown_side_is_zero(media_type: str, data: bytes) -> None:
    assert longest_side(data, media_type) >= 0


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"%PDF-1.4 /Type /Page /Type/Page /Type /Pages", 2),
        (b"%PDF-1.7 <</Type/Pages/Count 12/Kids[]>>", 12),
        (b"%PDF-1.4", 0),
    ],
)
def test_pages_of_a_document_are_counted(data: bytes, count: int) -> None:
    assert count_pages(data, "application/pdf") == count
    assert count_pages(data, "text/plain") == 0
