"""Media types of files, detected from the bytes and compared with the declared type (S4-R41)."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

from sluicegate.errors import MediaError
from sluicegate.wire.media_types import UNKNOWN_TYPE, is_media_type, without_parameters

if TYPE_CHECKING:
    from collections.abc import Iterable
    from mmap import mmap

_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
_BRANDS: Final = {
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"avif": "image/avif",
    b"qt  ": "video/quicktime",
}
_SYNONYMS: Final[tuple[frozenset[str], ...]] = (
    frozenset({"image/jpeg", "image/jpg", "image/pjpeg"}),
    frozenset({"image/heic", "image/heif"}),
    frozenset({"audio/mpeg", "audio/mp3"}),
    frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"}),
    frozenset({"audio/ogg", "video/ogg", "application/ogg", "audio/opus"}),
    frozenset({"audio/flac", "audio/x-flac"}),
    frozenset({"video/mp4", "audio/mp4", "audio/m4a", "audio/x-m4a", "video/quicktime"}),
    frozenset({"video/webm", "audio/webm", "video/x-matroska"}),
    frozenset({"application/gzip", "application/x-gzip"}),
)
"""Media types that have the same signature."""

_IN_ZIP: Final = re.compile(
    r"application/(zip|x-zip-compressed|epub\+zip|java-archive|vnd\.(openxmlformats|oasis)[\w.-]+)"
)
_TEXT: Final = re.compile(
    r"text/.*|application/(json|xml|yaml|x-yaml|csv|.*\+(json|xml))|image/svg\+xml"
)
_MARKUP: Final = re.compile(rb"\s*(<!doctype\s+html|<html|<head|<body|<script|<svg|<\?xml)", re.I)
_INSPECTED_BYTES: Final = 1024
_SIGNED: Final = ("image/", "audio/", "video/", "application/pdf", "application/zip")
"""Types of files that begin with a signature; raw audio is the exception."""
_UNSIGNED_AUDIO: Final = ("audio/pcm", "audio/l16", "audio/basic")


def detect_media_type(data: bytes) -> str | None:
    """Detect the media type from the first bytes; None if it is not recognised."""
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    if data[:2] == b"BM" and data[6:10] == bytes(4):
        return "image/bmp"
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}.get(
            data[8:12]
        )
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "video/mp4")
    if len(data) > 1 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2:
        return "audio/mpeg"
    if b"%PDF-" in data[:_INSPECTED_BYTES]:
        return "application/pdf"
    return None


def is_markup(data: bytes) -> bool:
    """Whether a browser could run scripts in the bytes, as HTML or SVG."""
    return _MARKUP.match(data.removeprefix(b"\xef\xbb\xbf")[:_INSPECTED_BYTES]) is not None


def check_media_type(data: bytes, declared: str | None) -> str:
    """Return the media type of a file, in lower case and without parameters.

    If the declared type is missing or ``application/octet-stream``, it is detected from the bytes.

    Raises:
        MediaError: The bytes do not have the declared type, or there are none.
    """
    if not data:
        raise MediaError("The file is empty.")
    plain = plain_media_type(declared)
    detected = detect_media_type(data)
    if plain == UNKNOWN_TYPE:
        return detected or ("text/html" if is_markup(data) else UNKNOWN_TYPE)
    if not _is_compatible(plain, detected, data):
        raise MediaError(f"The file is declared as {plain}, but its content is something else.")
    return plain


def plain_media_type(declared: str | None) -> str:
    """Return a media type without parameters; ``application/octet-stream`` if it is not valid."""
    plain = without_parameters(declared or "")
    return plain if is_media_type(plain) else UNKNOWN_TYPE


def _is_compatible(plain: str, detected: str | None, data: bytes) -> bool:
    if detected is None:
        if is_text(plain):
            return reads_as_text(data)
        return plain in _UNSIGNED_AUDIO or not plain.startswith(_SIGNED)
    if plain == detected or any({plain, detected} <= types for types in _SYNONYMS):
        return True
    return detected == "application/zip" and _IN_ZIP.fullmatch(plain) is not None


def is_text(media_type: str) -> bool:
    """Whether files of this type are text."""
    return _TEXT.fullmatch(media_type) is not None


def reads_as_text(data: bytes) -> bool:
    """Whether the bytes can be text: no null bytes, unless they begin with a UTF-16 mark."""
    return b"\0" not in data or data.startswith((b"\xff\xfe", b"\xfe\xff"))


def matches_media_type(media_type: str, patterns: Iterable[str]) -> bool:
    """Whether a media type matches a pattern, such as ``image/png`` or ``audio/*``."""
    kind = media_type.partition("/")[0]
    return any(pattern in (media_type, f"{kind}/*", "*/*") for pattern in patterns)


_PAGE: Final = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_COUNT: Final = re.compile(rb"/Count\s+(\d{1,7})")
_START_OF_FRAME: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def longest_side(data: bytes, media_type: str) -> int:
    """Return the longer side of an image in pixels; 0 if it is unknown."""
    try:
        match media_type:
            case "image/png":
                return max(*_unpack_pair(">II", data[16:24]))
            case "image/gif":
                return max(*_unpack_pair("<HH", data[6:10]))
            case "image/jpeg":
                return _jpeg_side(data)
            case "image/webp":
                return _webp_side(data)
    except (struct.error, IndexError):
        pass
    return 0


def count_pages(data: bytes | memoryview | mmap, media_type: str) -> int:
    """Return the pages of a PDF, as far as its page tree is readable; 0 for other files."""
    if media_type != "application/pdf":
        return 0
    counts = [int(digits) for digits in _COUNT.findall(data)]
    return max([len(_PAGE.findall(data)), *counts])


def _jpeg_side(data: bytes) -> int:
    at = 2
    while at + 9 < len(data):
        if data[at] != 0xFF:
            at += 1
            continue
        marker = data[at + 1]
        if marker in _START_OF_FRAME:
            return max(*_unpack_pair(">HH", data[at + 5 : at + 9]))
        if marker in (0x01, 0xFF) or 0xD0 <= marker <= 0xD9:
            at += 1 if marker == 0xFF else 2
            continue
        at += 2 + int(struct.unpack(">H", data[at + 2 : at + 4])[0])
    return 0


def _webp_side(data: bytes) -> int:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + max(int.from_bytes(data[24:27], "little"), int.from_bytes(data[27:30], "little"))
    if kind == b"VP8 ":
        width, height = _unpack_pair("<HH", data[26:30])
        return max(width & 0x3FFF, height & 0x3FFF)
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + max(bits & 0x3FFF, (bits >> 14) & 0x3FFF)
    return 0


def _unpack_pair(layout: str, data: bytes) -> tuple[int, int]:
    first, second = struct.unpack(layout, data)
    return int(first), int(second)
