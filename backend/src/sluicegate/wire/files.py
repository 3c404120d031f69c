"""Files in messages: uploaded as data URLs, stored under a URI, shown to a browser by a URL."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote, urlencode

from sluicegate.errors import Malformed, TooLarge, UnsupportedMediaType

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN_TYPE: Final = "application/octet-stream"
ACTIVE_TYPES: Final = frozenset({"image/svg+xml", "text/html", "application/xhtml+xml"})
"""Types in which a browser runs scripts; they are refused regardless of the settings."""

_SCHEME: Final = "sluicegate:"
_NAME: Final = re.compile(r"[0-9a-f]{32}\.[a-z0-9]{1,8}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,127}")
_MAX_FILENAME: Final = 255
_SLICE: Final = 256 * 1024

_EXTENSIONS: Final = {
    "application/pdf": "pdf",
    "application/json": "json",
    "application/zip": "zip",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/pcm": "pcm",
    "image/jpeg": "jpg",
    "image/svg+xml": "svg",
    "text/plain": "txt",
    "text/markdown": "md",
    "text/javascript": "js",
    "video/quicktime": "mov",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the artifact store, without its bytes (S4-R12, S4-R49).

    ``name`` is the first 32 hexadecimal digits of the SHA-256 of the bytes and an extension by the
    media type, so equal bytes are stored once; ``digest`` is the complete SHA-256. ``size`` is in
    bytes. ``title`` is the file's name for people, ``description`` is given by its author.
    """

    name: str
    media_type: str
    size: int
    digest: str
    title: str | None = None
    description: str | None = None

    @classmethod
    def of(
        cls,
        data: bytes,
        media_type: str,
        *,
        title: str | None = None,
        description: str | None = None,
    ) -> StoredFile:
        """Return the stored file of some bytes."""
        digest = sha256(data).hexdigest()
        name = f"{digest[:32]}.{file_extension(media_type)}"
        return cls(name, media_type, len(data), digest, title, description)

    @property
    def uri(self) -> str:
        """The reference to the file in a session (``FileData.file_uri``)."""
        query: dict[str, str | int] = {"size": self.size, "sha256": self.digest}
        if self.title is not None:
            query["title"] = self.title
        if self.description is not None:
            query["description"] = self.description
        return f"{_SCHEME}{self.name}?{urlencode(query, errors='replace')}"


def parse_file_uri(uri: str, media_type: str | None) -> StoredFile | None:
    """Parse a `StoredFile.uri`; None for any other URI."""
    if not uri.startswith(_SCHEME):
        return None
    name, _, query = uri.removeprefix(_SCHEME).partition("?")
    try:
        fields = {key: values[0] for key, values in parse_qs(query, max_num_fields=8).items()}
    except ValueError:
        return None
    size, digest = fields.get("size", ""), fields.get("sha256", "")
    is_ours = is_stored_file_name(name) and _DIGEST.fullmatch(digest) is not None
    if not (is_ours and digest.startswith(name[:32])):
        return None
    if not (size.isascii() and size.isdigit() and len(size) <= 15):
        return None
    return StoredFile(
        name,
        media_type or UNKNOWN_TYPE,
        int(size),
        digest,
        fields.get("title"),
        fields.get("description"),
    )


def is_stored_file_name(name: str) -> bool:
    """Whether a `StoredFile` can have this name."""
    return _NAME.fullmatch(name) is not None


def file_extension(media_type: str) -> str:
    """Return the file extension of a media type, without a dot; ``bin`` if it is unknown."""
    plain = without_parameters(media_type)
    listed = _EXTENSIONS.get(plain)
    if listed is not None:
        return listed
    kind, _, subtype = plain.partition("/")
    if kind in ("audio", "image", "text", "video"):
        return re.sub(r"[^a-z0-9]", "", subtype)[:8] or "bin"
    return "bin"


def without_parameters(media_type: str) -> str:
    """Return a media type in lower case and without parameters."""
    return media_type.partition(";")[0].strip().lower()


def is_media_type(text: str) -> bool:
    """Whether a text is a media type in lower case and without parameters."""
    return _MEDIA_TYPE.fullmatch(text) is not None


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
