"""Previews of calls: what the author of a tool returns, and what the card shows of it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sluicegate.core.approval_previews import MAX_BYTES, MAX_COLUMNS, MAX_IMAGE_BYTES
from sluicegate.core.json_values import is_storable_text, json_safe
from sluicegate.errors import MediaError
from sluicegate.media.file_inspection import check_media_type

if TYPE_CHECKING:
    from sluicegate.tools.approval_terms import GatedCall

_IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/webp", "image/gif")
_MAX_VERSION: Final = 1_000


@dataclass(frozen=True, slots=True)
class Diff:
    """What a call would change: the text, or the JSON value, before and after it."""

    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Image:
    """A picture of what a call would do: PNG, JPEG, WebP or GIF, at most 2 MiB."""

    data: bytes
    media_type: str


PreviewContent: TypeAlias = "str | Diff | Image | Sequence[Mapping[str, Any]]"
"""A text, a difference, a picture, or the rows of a table."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A preview with the version of what it is about, such as the number of a revision or an ETag.

    The tool reads the version of the approved preview as ``approval_of(tool_context).preview``.
    """

    content: PreviewContent
    version: str | None = None


PreviewOf: TypeAlias = (
    "Callable[[GatedCall], PreviewContent | Preview | Awaitable[PreviewContent | Preview]]"
)
"""Returns what a call would do, without doing it; also async."""


class PreviewNotShowable(ValueError):
    """A preview cannot be shown as it is; the text is the reason, as a clause."""


def shown_preview(returned: object) -> tuple[dict[str, Any], Image | None]:
    """Return a preview as its card shows it, and its picture if it has one.

    Raises:
        PreviewNotShowable: It is none of `PreviewContent`, or too large.
    """
    version: object = None
    if isinstance(returned, Preview):
        version, returned = returned.version, returned.content
    shown, image = _content(returned), returned if isinstance(returned, Image) else None
    if version is not None:
        if not isinstance(version, str) or not 0 < len(version) <= _MAX_VERSION:
            raise PreviewNotShowable(f"its version is no text of 1 to {_MAX_VERSION} characters")
        shown["version"] = version
    text = json.dumps(shown, ensure_ascii=False)
    if not is_storable_text(text) or r"\u0000" in text:
        raise PreviewNotShowable("it has a character that cannot be stored")
    if len(text.encode()) > MAX_BYTES:
        raise PreviewNotShowable(f"it has more than {MAX_BYTES:,} bytes")
    return shown, image


def _content(content: object) -> dict[str, Any]:
    if isinstance(content, str):
        return {"kind": "text", "text": content}
    if isinstance(content, Diff):
        return {"kind": "diff", "before": _text(content.before), "after": _text(content.after)}
    if isinstance(content, Image):
        return {"kind": "image", "mediaType": _image_type(content)}
    if isinstance(content, Sequence) and all(isinstance(row, Mapping) for row in content):
        return _table(content)
    raise PreviewNotShowable("it is no text, no rows, no Diff and no Image")


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(json_safe(value), indent=2)


def _table(rows: Sequence[Mapping[Any, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    if len(columns) > MAX_COLUMNS:
        raise PreviewNotShowable(f"it has more than {MAX_COLUMNS} columns")
    named = [{str(name): value for name, value in row.items()} for row in rows]
    cells = [[_cell(row.get(column)) for column in columns] for row in named]
    return {"kind": "table", "columns": columns, "rows": cells}


def _cell(value: object) -> Any:
    plain = json_safe(value)
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, dict | list) else plain


def _image_type(image: Image) -> str:
    if len(image.data) > MAX_IMAGE_BYTES:
        raise PreviewNotShowable(f"its picture has more than {MAX_IMAGE_BYTES:,} bytes")
    try:
        media_type = check_media_type(image.data, image.media_type)
    except MediaError as error:
        raise PreviewNotShowable("its picture has another type than it says") from error
    if media_type not in _IMAGE_TYPES:
        raise PreviewNotShowable("its picture is no PNG, JPEG, WebP or GIF")
    return media_type
