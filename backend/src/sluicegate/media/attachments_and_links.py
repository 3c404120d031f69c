"""Files in results of tools: bytes, a path, a link, or a stored file."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from google.genai import types

from sluicegate.errors import DetailError, DetailTypeError
from sluicegate.media.file_inspection import plain_media_type
from sluicegate.wire.media_types import is_media_type, without_parameters
from sluicegate.wire.stored_files import StoredFile

if TYPE_CHECKING:
    from os import PathLike

MAX_DESCRIPTION: Final = 500
"""Characters of the description of a file."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file with its title and its description (S4-R05).

    Exactly one of ``data`` and ``path`` is given. Without ``media_type`` the type is detected from
    the bytes. ``title`` is the file's name for people.

    Raises:
        DetailError: Both sources or none are given, the data is empty, the description is too long,
            or the media type is not valid.
        DetailTypeError: A field has another type.
    """

    data: bytes | None = None
    path: PathLike[str] | None = None
    media_type: str | None = None
    title: str | None = None
    description: str | None = None

    def __post_init__(self) -> None:
        """Validate the fields."""
        _check_type(self.data, bytes, "data")
        for name in ("media_type", "title", "description"):
            _check_type(getattr(self, name), str, name)
        if (self.data is None) == (self.path is None):
            raise DetailError("an attachment has either data or path")
        if self.data is not None and not self.data:
            raise DetailError("data is empty")
        if self.path is not None and not hasattr(self.path, "__fspath__"):
            raise DetailTypeError(f"path is a {type(self.path).__name__}")
        if self.media_type is not None and not is_media_type(without_parameters(self.media_type)):
            raise DetailError("media_type is not a media type, such as image/png")
        if self.description is not None and len(self.description) > MAX_DESCRIPTION:
            raise DetailError(f"description is longer than {MAX_DESCRIPTION} characters")

    def base64(self) -> str | None:
        """Return the bytes in base64; None for a file with a path (S4-R06)."""
        return base64.b64encode(self.data).decode("ascii") if self.data else None


@dataclass(frozen=True, slots=True)
class Link:
    """An external file, by its URI; the server never fetches it (S4-R43)."""

    uri: str
    media_type: str
    title: str | None = None


FileSource: TypeAlias = Attachment | Link | StoredFile
"""A file in a tool's result."""


def as_file_source(value: object) -> FileSource | None:
    """Return a value as a file; None if it is not a file.

    Raises:
        DetailError: It is a file without bytes, URI or media type (S0-R10, S0-R11).
    """
    match value:
        case Attachment() | Link() | StoredFile():
            return value
        case Path():
            return Attachment(path=value, title=value.name)
        case types.Blob() | types.FunctionResponseBlob():
            return _inline(value.data, value.mime_type, value.display_name)
        case types.FileData() | types.FunctionResponseFileData():
            return _linked(value.file_uri, value.mime_type, value.display_name)
        case types.Image():
            if value.image_bytes:
                return _inline(value.image_bytes, value.mime_type, None)
            return _linked(value.gcs_uri, value.mime_type or "image/png", None)
        case types.Part() | types.FunctionResponsePart():
            inner = value.inline_data or value.file_data
            return None if inner is None else as_file_source(inner)
    return None


def _inline(data: bytes | None, media_type: str | None, title: str | None) -> Attachment:
    if not data:
        raise DetailError("a blob has no data")
    if not media_type:
        raise DetailError("a blob has no mime_type")
    return Attachment(data=data, media_type=media_type, title=title)


def _linked(uri: str | None, media_type: str | None, title: str | None) -> Link | StoredFile:
    if not uri:
        raise DetailError("a file has no file_uri")
    if not media_type or not is_media_type(without_parameters(media_type)):
        raise DetailError("a file has no mime_type")
    return Link(uri, plain_media_type(media_type), title)


def _check_type(value: object, kind: type, name: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise DetailTypeError(f"{name} is a {type(value).__name__}")
