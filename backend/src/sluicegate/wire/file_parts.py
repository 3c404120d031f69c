"""Files of a user's message: parsing of data URLs and base64, and of URLs of stored files."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from sluicegate.errors import Malformed, TooLarge, UnsupportedMediaType
from sluicegate.wire.media_types import (
    ACTIVE_TYPES,
    UNKNOWN_TYPE,
    is_media_type,
    without_parameters,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_FILENAME: Final = 255
_SLICE: Final = 256 * 1024


@dataclass(frozen=True)
class FilePart:
    """A file of a user's message.

    The file of a data URL has ``data`` and no ``url``; one that is stored already has only its
    ``url``. ``media_type`` is declared by the client, in lower case and without parameters; it is
    not yet compared with the bytes.
    """

    media_type: str
    data: bytes | None
    url: str | None
    filename: str | None


def parse_file_part(part: Mapping[str, Any], *, max_bytes: int, own_prefix: str | None) -> FilePart:
    """Parse a part of type ``file``.

    Args:
        part: The AI SDK's ``FileUIPart``; the browser may leave ``mediaType`` empty.
        max_bytes: The largest decoded size that is accepted.
        own_prefix: The prefix of the URLs of this chat's own files; None if there are none.

    Raises:
        Malformed: The part, its URL or its base64 is not valid, or the URL is not the chat's own.
        TooLarge: The file has more than ``max_bytes``.
        UnsupportedMediaType: A browser would run scripts in it.
    """
    url, declared, filename = part.get("url"), part.get("mediaType", ""), part.get("filename")
    if not isinstance(url, str) or not url:
        raise Malformed("An attached file has no URL; attach it again.")
    if not isinstance(declared, str):
        raise Malformed("The type of an attached file is not text; attach it again.")
    if filename is not None and not (isinstance(filename, str) and len(filename) <= _MAX_FILENAME):
        raise Malformed(
            f"The name of an attached file is not text of at most {_MAX_FILENAME} characters; "
            "rename it."
        )
    if url[:5].lower() != "data:":
        if own_prefix is None or not _is_own_url(url, own_prefix):
            raise Malformed("Files are not fetched from other addresses; attach the file itself.")
        return FilePart(_media_type(declared), data=None, url=url, filename=filename)
    head, comma, payload = url[5:].partition(",")
    if not comma:
        raise Malformed("An attached file is cut off before its content; attach it again.")
    media_type = _media_type(declared, head)
    return FilePart(
        media_type, data=_decode_payload(head, payload, max_bytes), url=None, filename=filename
    )


def _media_type(*candidates: str) -> str:
    """Return the first valid media type; refuse if any of them is active."""
    names = [without_parameters(candidate) for candidate in candidates]
    if not ACTIVE_TYPES.isdisjoint(names):
        raise UnsupportedMediaType("HTML and SVG files are not accepted; attach another format.")
    return next((name for name in names if is_media_type(name)), UNKNOWN_TYPE)


def _decode_payload(head: str, payload: str, max_bytes: int) -> bytes:
    if not head.lower().endswith(";base64"):
        raise Malformed("An attached file is not in base64; attach it again.")
    # The size follows from the length, so it is checked before decoding.
    if len(payload) // 4 * 3 - payload[-2:].count("=") > max_bytes:
        raise TooLarge(
            f"An attached file is larger than {_size_text(max_bytes)}; attach a smaller one."
        )
    try:
        data = decode_base64(payload)
    except ValueError:
        raise Malformed("An attached file is not valid base64; attach it again.") from None
    if not data:
        raise Malformed("An attached file is empty; remove it or attach another one.")
    return data


def decode_base64(text: str) -> bytes:
    """Decode base64 in slices, so that a thread that decodes much does not stop the others.

    Raises:
        ValueError: It is not valid base64.
    """
    if "=" in text[:-2]:
        raise ValueError("base64 is padded only at its end")
    slices = (text[start : start + _SLICE] for start in range(0, len(text), _SLICE))
    return b"".join(base64.b64decode(piece, validate=True) for piece in slices)


def _size_text(count: int) -> str:
    return f"{count // 2**20} MiB" if count % 2**20 == 0 else f"{count} bytes"


def _is_own_url(url: str, prefix: str) -> bool:
    """Whether the URL is the prefix and one path segment, in any percent-encoding."""
    if not url.startswith(prefix):
        return False
    encoded = url.removeprefix(prefix)
    name = unquote(encoded)
    return (
        name not in ("", ".", "..")
        and name.isprintable()
        and encoded.isascii()
        and not set(name) & set("/\\")
        and not set(encoded) & set("?# ")
    )
