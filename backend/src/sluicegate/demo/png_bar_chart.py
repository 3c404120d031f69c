"""A bar chart as a PNG, drawn with the standard library alone."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final, Literal

Colour = Literal["blue", "green", "orange", "purple", "red"]

WIDTH: Final = 320
HEIGHT: Final = 180
_MARGIN: Final = 12
_PAPER: Final = bytes((255, 255, 255))
_AXIS: Final = bytes((90, 90, 90))
_INK: Final[dict[Colour, bytes]] = {
    "blue": bytes((37, 99, 235)),
    "green": bytes((22, 163, 74)),
    "orange": bytes((234, 120, 8)),
    "purple": bytes((147, 51, 234)),
    "red": bytes((220, 38, 38)),
}


def bar_chart(values: Sequence[float], colour: Colour) -> bytes:
    """Return a PNG of ``WIDTH`` by ``HEIGHT`` pixels with one bar per value, none below the axis.

    The same arguments give the same bytes with the same version of zlib.
    """
    heights = _bar_heights(values)
    axis = HEIGHT - _MARGIN
    rows = bytearray()
    for y in range(HEIGHT):
        rows.append(0)  # the filter type of the row: none
        if y == axis:
            rows += _PAPER * _MARGIN + _AXIS * (WIDTH - 2 * _MARGIN) + _PAPER * _MARGIN
        else:
            level = axis - y
            columns = _columns([0 < level <= height for height in heights])
            rows += b"".join(_INK[colour] if inked else _PAPER for inked in columns)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(bytes(rows), 9)),
            _chunk(b"IEND", b""),
        )
    )


def _bar_heights(values: Sequence[float]) -> list[int]:
    highest = max(values, default=0)
    available = HEIGHT - 2 * _MARGIN
    return [round(available * max(value, 0) / highest) if highest > 0 else 0 for value in values]


def _columns(inked: Sequence[bool]) -> list[bool]:
    """Spread one flag per bar over the pixels of a row; a fifth of each slot stays empty."""
    row = [False] * WIDTH
    slot = (WIDTH - 2 * _MARGIN) / max(len(inked), 1)
    for number, is_inked in enumerate(inked):
        if is_inked:
            start = _MARGIN + int(number * slot + slot / 10)
            end = max(start + 1, _MARGIN + int((number + 1) * slot - slot / 10))
            row[start:end] = [True] * (end - start)
    return row


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + checksum
