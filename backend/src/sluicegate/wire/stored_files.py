"""Stored files: their names, and their URIs in a session."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qs, urlencode

from sluicegate.wire.media_types import UNKNOWN_TYPE, file_extension

_SCHEME: Final = "sluicegate:"
_NAME: Final = re.compile(r"[0-9a-f]{32}\.[a-z0-9]{1,8}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


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
