"""Detection of the content of a picture from its bytes."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Final

_COLOURS: Final = {
    bytes((37, 99, 235)): "blue",
    bytes((22, 163, 74)): "green",
    bytes((234, 120, 8)): "orange",
    bytes((147, 51, 234)): "purple",
    bytes((220, 38, 38)): "red",
}


class Refused(Exception):
    """An error that a provider answers with 400, or another status."""

    status = 400


class NotFound(Refused):
    """A model that does not exist, or not for this method."""

    status = 404


@dataclass(frozen=True)
class ReceivedFile:
    """A file as a provider got it."""

    media_type: str
    data: bytes

    @property
    def words(self) -> str:
        """A description of the file."""
        if self.media_type == "image/png":
            return f"a {colour_of(self.data)} chart"
        return self.media_type


def decoded(text: str, media_type: str) -> ReceivedFile:
    """Decode base64 as a provider does and compare the bytes with the declared type."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        # Google's client writes base64 for URLs.
        data = base64.b64decode(text, altchars=b"-_", validate=True)
    if not data:
        raise Refused("Unable to process input file: it is empty.")
    starts = {
        "image/png": b"\x89PNG",
        "image/jpeg": b"\xff\xd8\xff",
        "image/gif": b"GIF8",
        "image/webp": b"RIFF",
        "application/pdf": b"%PDF",
    }
    if not data.startswith(starts.get(media_type, b"")):
        raise Refused(f"Unable to process input file: it is no {media_type}.")
    return ReceivedFile(media_type, data)


@cache
def colour_of(png: bytes) -> str:
    """The colour of the bars of a chart, by decoding its pixels."""
    width = struct.unpack(">I", png[16:20])[0]
    packed, at = b"", 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        if kind == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += 12 + length
    rows = zlib.decompress(packed)
    stride = 1 + 3 * width
    pixels: Counter[bytes] = Counter()
    for start in range(0, len(rows), stride):
        row = rows[start + 1 : start + stride]
        pixels.update(row[i : i + 3] for i in range(0, len(row), 3))
    found = [name for pixel, _ in pixels.most_common() if (name := _COLOURS.get(pixel))]
    return found[0] if found else "white"
