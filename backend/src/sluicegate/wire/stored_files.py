"""Stored files: their URIs in a session, their names, media types and extensions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qs, urlencode

UNKNOWN_TYPE: Final = "application/octet-stream"
ACTIVE_TYPES: Final = frozenset({"image/svg+xml", "text/html", "application/xhtml+xml"})
"""Types in which a browser runs scripts; they are refused regardless of the settings."""

_SCHEME: Final = "sluicegate:"
_NAME: Final = re.compile(r"[0-9a-f]{32}\.[a-z0-9]{1,8}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,127}")

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
