"""How large a picture is and how many pages a document has, without decoding either (S4-R47)."""

from __future__ import annotations

import re
import struct
from typing import Final

_PAGE: Final = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_COUNT: Final = re.compile(rb"/Count\s+(\d{1,7})")
_START_OF_FRAME: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def longest_side(data: bytes, media_type: str) -> int:
    """The longer side of a picture in pixels; 0 where it cannot be told."""
    try:
        match media_type:
            case "image/png":
                return max(*_two(">II", data[16:24]))
            case "image/gif":
                return max(*_two("<HH", data[6:10]))
            case "image/jpeg":
                return _jpeg(data)
            case "image/webp":
                return _webp(data)
    except (struct.error, IndexError):
        pass
    return 0


def pages(data: bytes, media_type: str) -> int:
    """Pages of a PDF as far as its tree can be read; 0 for everything else."""
    if media_type != "application/pdf":
        return 0
    counts = [int(found) for found in _COUNT.findall(data)]
    return max([len(_PAGE.findall(data)), *counts])


def _jpeg(data: bytes) -> int:
    at = 2
    while at + 9 < len(data):
        if data[at] != 0xFF:
            at += 1
            continue
        marker = data[at + 1]
        if marker in _START_OF_FRAME:
            return max(*_two(">HH", data[at + 5 : at + 9]))
        if marker in (0x01, 0xFF) or 0xD0 <= marker <= 0xD9:
            at += 1 if marker == 0xFF else 2
            continue
        at += 2 + int(struct.unpack(">H", data[at + 2 : at + 4])[0])
    return 0


def _webp(data: bytes) -> int:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + max(int.from_bytes(data[24:27], "little"), int.from_bytes(data[27:30], "little"))
    if kind == b"VP8 ":
        width, height = _two("<HH", data[26:30])
        return max(width & 0x3FFF, height & 0x3FFF)
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + max(bits & 0x3FFF, (bits >> 14) & 0x3FFF)
    return 0


def _two(form: str, data: bytes) -> tuple[int, int]:
    first, second = struct.unpack(form, data)
    return int(first), int(second)
