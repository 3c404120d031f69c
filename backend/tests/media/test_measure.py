"""Sizes of pictures and pages of documents, by their headers."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.demo.chart import HEIGHT, WIDTH
from sluicegate.media.file_types import count_pages, longest_side
from tests.media import samples


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
def test_a_side_that_cannot_be_told_is_none(media_type: str, data: bytes) -> None:
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
