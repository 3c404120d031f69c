"""Media types: which are valid, which are active in a browser, and their file extensions."""

from __future__ import annotations

import re
from typing import Final

UNKNOWN_TYPE: Final = "application/octet-stream"
ACTIVE_TYPES: Final = frozenset({"image/svg+xml", "text/html", "application/xhtml+xml"})
"""Types in which a browser runs scripts; they are refused regardless of the settings."""
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
