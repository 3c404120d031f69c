"""One range of bytes of a file, as RFC 9110 section 14 asks for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.responses import Response

from sluicegate.errors import (
    Malformed,
    RequestTimeout,
    TooManyRequests,
    Unknown,
    UnsupportedMediaType,
)
from sluicegate.server.operations import Operation, Parameter, Success
from sluicegate.server.responses import json_response
from sluicegate.transports.http_requests import chat_id, read_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from sluicegate.engine.engine import Engine
    from sluicegate.transports.http_requests import BodyLimits

_RANGE: Final = re.compile(r"bytes\s*=\s*([0-9]{0,18})-([0-9]{0,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Range:
    """The bytes from ``start`` up to, not including, ``stop``, of ``size``."""

    start: int
    stop: int
    size: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the file lies in it: 416."""
        return self.start >= self.stop

    @property
    def content_range(self) -> str:
        """The header ``content-range`` of the answer."""
        place = "*" if self.is_empty else f"{self.start}-{self.stop - 1}"
        return f"bytes {place}/{self.size}"


def asked_range(headers: Mapping[str, str], size: int, tag: str) -> Range | None:
    """The range that a request asks for; None where the whole file is to be sent.

    Several ranges at once, other units and what cannot be read are answered with the whole, as
    the RFC allows; so is a range of another version (``if-range``).
    """
    found = _RANGE.fullmatch(headers.get("range", "").strip())
    if found is None or headers.get("if-range", tag) != tag:
        return None
    first, last = found.groups()
    if not first:
        return Range(max(0, size - int(last)), size, size) if last else None
    if last and int(last) < int(first):
        return None
    stop = min(int(last) + 1, size) if last else size
    return Range(int(first), stop, size)


MAX_TITLE: Final = 255
"""Characters of what a user calls a file."""

_UNKNOWN_TYPE: Final = "application/octet-stream"
_SHOWN: Final = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "text/plain"}
)
"""What a browser may show in place: it runs nothing in these. So are sound and film."""


class StoredFiles:
    """Stores and serves files; who asks sees no more than the files of their own chats."""

    def __init__(self, *, body: BodyLimits) -> None:
        """Take the limits of a file."""
        self._body = body

    async def save_file(self, request: Request, engine: Engine, user: str) -> Response:
        """``POST /chats/{id}/files?filename=``: the raw body is the file."""
        chat = chat_id(request)
        title = _title(request)
        if len(request.headers.getlist("content-type")) > 1:
            raise Malformed("The header content-type is there more than once; send one.")
        media_type = request.headers.get("content-type", "")
        data = await read_bytes(request, self._body)
        if not data:
            raise Malformed("The file is empty; attach another one.")
        stored = await engine.save_file(chat, data, media_type, title=title, user=user)
        return json_response(stored, status=201, headers={"location": quote(stored["url"], ":/%")})

    async def get_file(self, request: Request, engine: Engine, user: str) -> Response:
        """``GET /chats/{id}/files/{name}``: the whole file, or a range of it."""
        chat, name = chat_id(request), str(request.path_params["name"])
        if len(name) > MAX_TITLE or not name.isprintable() or name in (".", ".."):
            raise Unknown
        content, media_type = await engine.get_file(chat, name, user=user)
        # Names are digests of the content, so a name says which version it is.
        tag = f'"{quote(name)}"'
        headers = {
            # What is stored is data: a browser shows it in an image, never as a page.
            "content-type": media_type if media_type.isprintable() else _UNKNOWN_TYPE,
            "content-disposition": "inline" if _is_harmless(media_type) else "attachment",
            "content-security-policy": "default-src 'none'; sandbox",
            "x-content-type-options": "nosniff",
            "cache-control": "private, no-cache",
            "accept-ranges": "bytes",
            "etag": tag,
        }
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        part = asked_range(request.headers, len(content), tag)
        if part is None:
            return Response(content, headers=headers)
        headers["content-range"] = part.content_range
        if part.is_empty:
            return Response(status_code=416, headers=headers)
        return Response(content[part.start : part.stop], 206, headers=headers)


def _is_harmless(media_type: str) -> bool:
    return media_type in _SHOWN or media_type.startswith(("audio/", "video/"))


def _title(request: Request) -> str | None:
    text = request.query_params.get("filename")
    if text is not None and (len(text) > MAX_TITLE or not text.isprintable()):
        raise Malformed(f"The filename must be at most {MAX_TITLE} printable characters.")
    return text or None


_TEXT: Final[dict[str, Any]] = {"type": "string"}
_BINARY: Final[dict[str, Any]] = {"type": "string", "format": "binary"}
_STORED: Final[dict[str, Any]] = {
    "type": "object",
    "description": "What a file part of a message says of it, and its name in the path.",
    "properties": {"url": _TEXT, "mediaType": _TEXT, "name": _TEXT, "filename": _TEXT},
    "required": ["url", "mediaType", "name"],
}


def file_operations(files: StoredFiles) -> list[Operation]:
    """Return the operations on the files of a chat."""
    return [
        Operation(
            "POST",
            "/chats/{id}/files",
            "Store an attachment; the chat need not have a message yet.",
            (Success(201, "Stored.", "application/json", _STORED),),
            endpoint=files.save_file,
            body=_BINARY,
            body_type="*/*",
            parameters=(Parameter("filename", "query", _TEXT, "What the user calls the file."),),
            refusals=(RequestTimeout, UnsupportedMediaType, TooManyRequests),
        ),
        Operation(
            "GET",
            "/chats/{id}/files/{name}",
            "Fetch an attachment or a file that a tool returned.",
            (
                Success(200, "The file, with its own type.", "*/*", _BINARY),
                Success(206, "The range of it that was asked for.", "*/*", _BINARY),
                Success(304, "The client has it already."),
                Success(416, "Nothing of it lies in the range that was asked for."),
            ),
            endpoint=files.get_file,
            refusals=(Unknown,),
        ),
    ]
