"""Which files of a chat a model receives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from sluicegate.media.file_inspection import is_text, matches_media_type, plain_media_type
from sluicegate.media.file_labels import PREFIXES
from sluicegate.media.heic_conversion import CONVERSION_TYPE, CONVERTED_TYPES, can_convert
from sluicegate.wire.stored_files import StoredFile, parse_file_uri

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from google.genai import types

    from sluicegate.media.model_capability_table import ModelCapabilities
    from sluicegate.media.model_client_libraries import Route

MAX_TEXT_BYTES: Final = 100 * 1024
"""Bytes of a text file that a model receives as text."""

Role: TypeAlias = Literal["tool", "user", "model"]
FilePosition: TypeAlias = tuple[int, int, int]
"""Content, part, and file of a function response; the last is -1 for a part itself."""


class LeftOut(NamedTuple):
    """A file is not sent, and why, as the end of a sentence; the user is notified if it is new."""

    reason: str
    is_new: bool = True


Choice: TypeAlias = Literal["media", "text", "link", "upload"] | LeftOut
"""``media``: the bytes are sent; ``text``: the characters; ``link``: the URL; ``upload``: the
reference to a copy at the provider."""

_SENT_EARLIER: Final = LeftOut("it was sent earlier in this chat", is_new=False)

_TOO_LARGE_WITH_NEWER: Final = LeftOut("there are newer files, and the request would be too large")

_MADE_BY_ANOTHER_MODEL: Final = LeftOut(
    "this model is not shown what another one made", is_new=False
)


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """The model of a request: its capabilities and the way to it.

    ``hooked``: the messages for LiteLLM can still be changed after ADK. ``turns`` is the number of
    user messages for which a file stays visible. ``untrusted`` names tools that run in the browser.
    ``uploads``: the provider's Files API can be reached.
    """

    row: ModelCapabilities
    route: Route
    hooked: bool = False
    turns: int = 10
    untrusted: frozenset[str] = frozenset()
    uploads: bool = False

    @property
    def results(self) -> Literal["nested", "siblings", "message", "native"]:
        """Where the files of a tool's result are placed."""
        if self.route == "litellm":
            return self.row.litellm if self.hooked else "message"
        if self.row.results == "nested" and self.route not in self.row.nested_by:
            return "message"
        return self.row.results

    @property
    def links(self) -> tuple[str, ...]:
        """Prefixes of URLs that the provider fetches itself (S3-R14)."""
        return self.row.vertex_links if self.route == "vertex" else self.row.links


@dataclass(frozen=True, slots=True)
class FileItem:
    """A file at its position in the conversation.

    ``blob`` holds the bytes of a file that is not stored, ``link`` the URL of an external one.
    """

    position: FilePosition
    role: Role
    media_type: str
    size: int
    file: StoredFile | None = None
    blob: bytes | None = None
    link: str | None = None
    title: str | None = None
    is_converted: bool = False
    """Whether the file is sent as ``media_type`` and stored as another type."""

    @property
    def file_id(self) -> str:
        """The id of the file in labels."""
        return self.file.name[:8] if self.file is not None else "none"

    @property
    def description(self) -> str | None:
        """The description by its author."""
        return self.file.description if self.file is not None else None


def choose_files(
    contents: Sequence[types.Content], profile: ModelProfile
) -> dict[FilePosition, tuple[FileItem, Choice]]:
    """Choose what is sent of each file, as far as it does not depend on the bytes."""
    ages, row = _ages(contents), profile.row
    total = count = uploaded = 0
    choices: dict[FilePosition, tuple[FileItem, Choice]] = {}
    for stored in reversed(files_in(contents)):
        item = _as_sent(stored, profile)
        choice = _choice(item, ages[item.position[0]], profile)
        if choice in ("media", "upload"):
            if choice == "media" and total + item.size > row.max_total_bytes:
                choice = _beyond_total(item, profile)
            is_sent = choice in ("media", "upload")
            if is_sent and total + uploaded + item.size > row.max_upload_total_bytes:
                choice = _TOO_LARGE_WITH_NEWER
            if choice in ("media", "upload") and count >= row.max_files:
                choice = LeftOut(
                    f"a request may have {row.max_files} files, and there are newer ones"
                )
            count += choice in ("media", "upload")
            total += item.size if choice == "media" else 0
            uploaded += item.size if choice == "upload" else 0
        choices[item.position] = (item, choice)
    return choices


def files_in(contents: Sequence[types.Content]) -> list[FileItem]:
    """Return every file of a conversation, in order."""
    return [item for index, content in enumerate(contents) for item in _files_of(content, index)]


def _files_of(content: types.Content, index: int) -> Iterator[FileItem]:
    role: Role = "model" if content.role == "model" else "user"
    for number, part in enumerate(content.parts or []):
        response = part.function_response
        if response is None:
            item = _file_item(part, (index, number, -1), role)
            if item is not None:
                yield item
            continue
        for offset, inner in enumerate(response.parts or []):
            item = _file_item(inner, (index, number, offset), "tool")
            if item is not None:
                yield item


def _file_item(
    part: types.Part | types.FunctionResponsePart, position: FilePosition, role: Role
) -> FileItem | None:
    blob, data = part.inline_data, part.file_data
    if blob is not None and blob.data is not None:
        kind = plain_media_type(blob.mime_type)
        size = len(blob.data)
        return FileItem(position, role, kind, size, blob=blob.data, title=blob.display_name)
    if data is None or not data.file_uri:
        return None
    file = parse_file_uri(data.file_uri, data.mime_type)
    if file is not None:
        kind = plain_media_type(file.media_type)
        return FileItem(position, role, kind, file.size, file, title=file.title)
    kind = plain_media_type(data.mime_type)
    return FileItem(position, role, kind, 0, link=data.file_uri, title=data.display_name)


def _ages(contents: Sequence[types.Content]) -> list[int]:
    """Return the number of user messages after each content."""
    ages, age = [], 0
    for content in reversed(contents):
        ages.append(age)
        age += _is_user_message(content)
    return ages[::-1]


def _is_user_message(content: types.Content) -> bool:
    parts = content.parts or []
    if content.role == "model" or any(part.function_response for part in parts):
        return False
    return any(part.text and not part.text.startswith(PREFIXES) for part in parts)


def _choice(item: FileItem, age: int, profile: ModelProfile) -> Choice:
    row = profile.row
    if age >= profile.turns:
        return _SENT_EARLIER
    if item.link is not None:
        # An empty tuple of prefixes matches nothing.
        is_fetched = item.link.startswith(profile.links)
        return "link" if is_fetched else LeftOut("this model does not read files at its address")
    if item.size == 0:
        return LeftOut("it is empty")
    if item.role == "model" and not row.model_media:
        return _MADE_BY_ANOTHER_MODEL
    is_inside = item.role == "tool" and profile.results in ("nested", "native")
    is_nested = is_inside and matches_media_type(item.media_type, row.nested)
    if not is_nested and is_text(item.media_type):
        return (
            "text" if item.size <= MAX_TEXT_BYTES else LeftOut("it is too long to be read at once")
        )
    if not matches_media_type(item.media_type, row.accepts) or not _is_carried(item, profile):
        return LeftOut(f"this model does not read files of the type {item.media_type}")
    if item.size <= row.max_file_bytes:
        return "media"
    return "upload" if _is_uploaded(item, profile) else _too_large(item, profile)


def _as_sent(item: FileItem, profile: ModelProfile) -> FileItem:
    """Return a file in the type that the model is sent."""
    accepts = profile.row.accepts
    if (
        item.file is None
        or item.media_type not in CONVERTED_TYPES
        or matches_media_type(item.media_type, accepts)
        or not matches_media_type(CONVERSION_TYPE, accepts)
        or not can_convert()
    ):
        return item
    return replace(item, media_type=CONVERSION_TYPE, is_converted=True)


def _too_large(item: FileItem, profile: ModelProfile) -> Choice:
    row = profile.row
    is_uploadable = matches_media_type(item.media_type, row.uploaded) and profile.uploads
    if is_uploadable and profile.route in row.uploads:
        return LeftOut(
            f"it is larger than the {row.max_upload_bytes:,} bytes that this model reads"
        )
    return LeftOut(f"it is larger than the {row.max_file_bytes:,} bytes that this model reads")


def _beyond_total(item: FileItem, profile: ModelProfile) -> Choice:
    """Choose what becomes of a file that no longer fits into the request."""
    if _is_uploaded(item, profile):
        return "upload"
    most = profile.row.max_total_bytes
    if item.size > most:
        return LeftOut(f"it is larger than the {most:,} bytes that a request to this model carries")
    return _TOO_LARGE_WITH_NEWER


def _is_uploaded(item: FileItem, profile: ModelProfile) -> bool:
    """Whether a file can be uploaded to the provider and referred to."""
    row = profile.row
    return (
        item.file is not None
        and not item.is_converted
        and profile.uploads
        and profile.route in row.uploads
        and matches_media_type(item.media_type, row.uploaded)
        and item.size <= row.max_upload_bytes
    )


def _is_carried(item: FileItem, profile: ModelProfile) -> bool:
    # ADK: it uploads documents for OpenAI before it calls LiteLLM.
    return profile.route != "litellm" or profile.hooked or item.media_type.startswith("image/")


def is_status_shape(response: dict[str, Any], statuses: Sequence[str]) -> bool:
    """Whether a function response has the form of a ``ToolResult``."""
    return (
        response.get("status") in statuses
        and set(response) <= {"status", "text_result", "structured_result", "note"}
        and isinstance(response.get("text_result", ""), str)
    )
