"""Base64 in texts: recognition of the file in it (S0-R15)."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from sluicegate.media.attachments_and_links import Attachment
from sluicegate.media.file_inspection import detect_media_type
from sluicegate.wire.media_types import is_media_type

_MIN_FILE: Final = 256
"""Characters from which a text may be a file in base64."""

_MIN_SUSPECT: Final = 1024
"""Characters from which base64 is refused in a `ToolResult`, whatever its bytes are."""

_HEAD: Final = 1400
"""Characters that are decoded to recognise a file."""

_URL: Final = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)(;[\w.+=-]+)*;base64,", re.I)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\s-]+={0,2}\s*")
_FOR_URLS: Final = str.maketrans("-_", "+/")
_WEAK_SIGNATURES: Final = ("audio/mpeg", "application/gzip")
"""Types with signatures of two bytes, which random data has as well."""


def file_in_base64(text: str) -> Attachment | None:
    """Return the file that a text is in base64, or in a data URL; None for any other text.

    Base64 without a media type is a file only if its first bytes are those of a known type, so that
    keys, hashes and encrypted texts stay as they are.
    """
    if len(text) < _MIN_FILE:
        return None
    url = _URL.match(text[:_MIN_FILE])
    body = text[url.end() :] if url is not None else text
    declared = url["type"].lower() if url is not None else None
    detected = _detect(body)
    if detected is None and (declared is None or not is_media_type(declared)):
        return None
    data = _decode(body)
    return Attachment(data=data, media_type=declared or detected) if data else None


def looks_encoded(text: str) -> bool:
    """Whether a long text is base64: a file, or capital and small letters with digits."""
    if len(text) < _MIN_SUSPECT:
        return False
    url = _URL.match(text[:_MIN_FILE])
    body = text[url.end() :] if url is not None else text
    sample = body[:_MIN_SUSPECT]
    is_mixed = all(any(map(kind, sample)) for kind in (str.isupper, str.islower, str.isdigit))
    return (is_mixed or _detect(body) is not None) and _BASE64.fullmatch(body) is not None


def _detect(body: str) -> str | None:
    head = body[:_HEAD]
    if _BASE64.fullmatch(head) is None:
        return None
    plain = "".join(head.split())
    data = _decode(plain[: len(plain) // 4 * 4])
    detected = detect_media_type(data) if data else None
    is_weak = detected in _WEAK_SIGNATURES and not data.startswith(b"ID3")
    return None if is_weak else detected


def _decode(body: str) -> bytes:
    """Decode base64 of either alphabet; empty bytes if it is not valid."""
    plain = "".join(body.split()).rstrip("=").translate(_FOR_URLS)
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
