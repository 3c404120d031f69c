"""How a stored file is named: in a session by a small URI, to a browser by a URL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qs, urlencode

_SCHEME: Final = "sluicegate:"
_NAME: Final = re.compile(r"[0-9a-f]{32}\.[a-z0-9]{1,8}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
UNKNOWN_TYPE: Final = "application/octet-stream"

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
    media type, so equal bytes are stored once; ``digest`` is the whole of it. ``size`` counts
    bytes. ``title`` is what its author or the user calls the file, ``description`` what the author
    says of it.
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
        """Name some bytes."""
        digest = sha256(data).hexdigest()
        name = f"{digest[:32]}.{extension(media_type)}"
        return cls(name, media_type, len(data), digest, title, description)

    @property
    def uri(self) -> str:
        """What stands for the file in a session (``FileData.file_uri``)."""
        query: dict[str, str | int] = {"size": self.size, "sha256": self.digest}
        if self.title is not None:
            query["title"] = self.title
        if self.description is not None:
            query["description"] = self.description
        return f"{_SCHEME}{self.name}?{urlencode(query, errors='replace')}"


def read_uri(uri: str, media_type: str | None) -> StoredFile | None:
    """Read what `StoredFile.uri` wrote; None for every other address."""
    if not uri.startswith(_SCHEME):
        return None
    name, _, rest = uri.removeprefix(_SCHEME).partition("?")
    try:
        found = {key: values[0] for key, values in parse_qs(rest, max_num_fields=8).items()}
    except ValueError:
        return None
    size, digest = found.get("size", ""), found.get("sha256", "")
    if not (is_stored_name(name) and _DIGEST.fullmatch(digest) and digest.startswith(name[:32])):
        return None
    if not (size.isascii() and size.isdigit() and len(size) <= 15):
        return None
    return StoredFile(
        name,
        media_type or UNKNOWN_TYPE,
        int(size),
        digest,
        found.get("title"),
        found.get("description"),
    )


def is_stored_name(name: str) -> bool:
    """Whether a file of ours can be called so."""
    return _NAME.fullmatch(name) is not None


def extension(media_type: str) -> str:
    """The file extension of a media type, without a dot; ``bin`` if none is known."""
    plain = media_type.partition(";")[0].strip().lower()
    known = _EXTENSIONS.get(plain)
    if known is not None:
        return known
    kind, _, subtype = plain.partition("/")
    if kind in ("audio", "image", "text", "video"):
        return re.sub(r"[^a-z0-9]", "", subtype)[:8] or "bin"
    return "bin"
