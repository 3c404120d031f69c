"""Files as providers receive them."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from sluicegate.testing.providers.refusal_exceptions import Refused


@dataclass(frozen=True)
class ReceivedFile:
    """A file as a provider got it."""

    media_type: str
    data: bytes


def decoded(text: str, media_type: str) -> ReceivedFile:
    """Decode base64 as a provider does and compare the bytes with the declared type.

    Raises:
        Refused: They are empty, or of another type.
    """
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
