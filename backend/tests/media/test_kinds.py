"""What a file is, by its bytes and by what it is declared to be."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.errors import MediaError
from sluicegate.media.file_types import (
    check_media_type,
    detect_media_type,
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
def test_a_file_that_is_what_it_says_keeps_its_type(data: bytes, declared: str) -> None:
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
def test_a_file_that_is_not_what_it_says_is_refused(data: bytes, declared: str | None) -> None:
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
def test_without_a_type_the_bytes_decide(data: bytes, declared: str | None, kind: str) -> None:
    assert check_media_type(data, declared) == kind


@given(data=st.binary(max_size=64), declared=st.none() | st.text(max_size=20))
def test_any_bytes_are_judged_or_refused(data: bytes, declared: str | None) -> None:
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
def test_types_fit_patterns(media_type: str, patterns: list[str], found: bool) -> None:
    assert matches_media_type(media_type, patterns) is found
