"""File parts of a user's message: data URLs are decoded, everything else is refused or ours."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from sluicegate.errors import Malformed, TooLarge, UnsupportedMediaType
from sluicegate.wire.stored_files import UNKNOWN_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,127}")
ACTIVE_TYPES: Final = frozenset({"image/svg+xml", "text/html", "application/xhtml+xml"})
"""A browser runs scripts in these; they are never taken, whatever else is."""
_MAX_FILENAME: Final = 255


@dataclass(frozen=True)
class FilePart:
    """A file of a user's message.

    ``data`` holds the bytes of a data URL and ``url`` is then None; a file of ours has only its
    ``url``. ``media_type`` is what the client says, in lower case and without parameters; it is
    not yet compared with the bytes.
    """

    media_type: str
    data: bytes | None
    url: str | None
    filename: str | None


def parse_file_part(part: Mapping[str, Any], *, max_bytes: int, own_prefix: str | None) -> FilePart:
    """Read a part of type ``file``.

    Args:
        part: The AI SDK's ``FileUIPart``; the browser may leave ``mediaType`` empty.
        max_bytes: The decoded size up to which a file is accepted.
        own_prefix: What the URLs of this chat's own files begin with; None where there are none.

    Raises:
        Malformed: the part, its URL or its base64 cannot be read, or the URL is somebody else's.
        TooLarge: the file has more than ``max_bytes``.
        UnsupportedMediaType: a browser would run scripts in it.
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
        if own_prefix is None or not _is_own(url, own_prefix):
            raise Malformed("Files are not fetched from other addresses; attach the file itself.")
        return FilePart(_media_type(declared), data=None, url=url, filename=filename)
    head, comma, payload = url[5:].partition(",")
    if not comma:
        raise Malformed("An attached file is cut off before its content; attach it again.")
    media_type = _media_type(declared, head)
    return FilePart(media_type, data=_decode(head, payload, max_bytes), url=None, filename=filename)


def _media_type(*candidates: str) -> str:
    """Return the first whole media type; refuse if any of them is an active one."""
    names = [candidate.partition(";")[0].strip().lower() for candidate in candidates]
    if not ACTIVE_TYPES.isdisjoint(names):
        raise UnsupportedMediaType("HTML and SVG files are not accepted; attach another format.")
    return next((name for name in names if _MEDIA_TYPE.fullmatch(name)), UNKNOWN_TYPE)


def _decode(head: str, payload: str, max_bytes: int) -> bytes:
    if not head.lower().endswith(";base64"):
        raise Malformed("An attached file is not in base64; attach it again.")
    # Judged before decoding: the size follows from the length.
    if len(payload) // 4 * 3 - payload[-2:].count("=") > max_bytes:
        raise TooLarge(f"An attached file is larger than {_size(max_bytes)}; attach a smaller one.")
    try:
        data = base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise Malformed("An attached file is not valid base64; attach it again.") from None
    if not data:
        raise Malformed("An attached file is empty; remove it or attach another one.")
    return data


def _size(count: int) -> str:
    return f"{count // 2**20} MiB" if count % 2**20 == 0 else f"{count} bytes"


def _is_own(url: str, prefix: str) -> bool:
    """Whether the URL is the prefix and one plain name, however it is escaped."""
    if not url.startswith(prefix):
        return False
    escaped = url.removeprefix(prefix)
    name = unquote(escaped)
    return (
        name not in ("", ".", "..")
        and name.isprintable()
        and escaped.isascii()
        and not set(name) & set("/\\")
        and not set(escaped) & set("?# ")
    )
