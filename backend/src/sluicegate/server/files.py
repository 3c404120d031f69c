"""The operations on files of a chat, with ranges as in RFC 9110 section 14."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.responses import Response

from sluicegate.errors import (
    Malformed,
    RequestTimeout,
    TooManyRequests,
    Unknown,
    UnsupportedMediaType,
)
from sluicegate.server.operation_types import BINARY, Operation, Parameter, Success
from sluicegate.server.responses import json_response
from sluicegate.server.schemas import StoredFile, one_line
from sluicegate.transports.http_requests import chat_id, read_bytes
from sluicegate.wire.media_types import UNKNOWN_TYPE
from sluicegate.wire.one_line_pattern import is_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from sluicegate.engine.interface import Engine
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
        """Whether it contains no byte of the file: 416."""
        return self.start >= self.stop

    @property
    def content_range(self) -> str:
        """The header ``content-range`` of the response."""
        span = "*" if self.is_empty else f"{self.start}-{self.stop - 1}"
        return f"bytes {span}/{self.size}"


def requested_range(headers: Mapping[str, str], size: int, tag: str) -> Range | None:
    """Return the range that a request asks for; None for the whole file.

    Several ranges at once, other units and invalid ranges are answered with the whole file, as
    the RFC allows; so is a range of another version (``if-range``).
    """
    match = _RANGE.fullmatch(headers.get("range", "").strip())
    if match is None or headers.get("if-range", tag) != tag:
        return None
    first, last = match.groups()
    if not first:
        return Range(max(0, size - int(last)), size, size) if last else None
    if last and int(last) < int(first):
        return None
    stop = min(int(last) + 1, size) if last else size
    return Range(int(first), stop, size)


MAX_TITLE: Final = 255
"""Characters of the file name that a user gives."""

_INLINE: Final = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "text/plain"}
)
"""Media types that a browser may display inline, as audio and video: they run no code."""


class StoredFiles:
    """The endpoints of files; users reach the files of their own chats only."""

    def __init__(self, body: BodyLimits, resource_policy: str) -> None:
        self._body = body
        self._resource_policy = resource_policy

    async def save_file(self, request: Request, engine: Engine, user: str) -> Response:
        """``POST /chats/{id}/files?filename=``: the raw body is the file."""
        chat = chat_id(request)
        title = _title(request)
        if len(request.headers.getlist("content-type")) > 1:
            raise Malformed("The header content-type is there more than once; send one.")
        media_type = request.headers.get("content-type", "")
        data = await read_bytes(request, self._body, user=user)
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
        # Names are digests of the content, so a name identifies a version.
        tag = f'"{quote(name)}"'
        headers = {
            # A stored file is data: a browser displays it as an image, never as a page.
            "content-type": media_type if media_type.isprintable() else UNKNOWN_TYPE,
            "content-disposition": "inline" if _is_inline(media_type) else "attachment",
            "content-security-policy": "default-src 'none'; sandbox",
            "cross-origin-resource-policy": self._resource_policy,
            "x-content-type-options": "nosniff",
            "cache-control": "private, no-cache",
            "accept-ranges": "bytes",
            "etag": tag,
        }
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        part = requested_range(request.headers, len(content), tag)
        if part is None:
            return Response(content, headers=headers)
        headers["content-range"] = part.content_range
        if part.is_empty:
            return Response(status_code=416, headers=headers)
        return Response(content[part.start : part.stop], 206, headers=headers)


def _is_inline(media_type: str) -> bool:
    return media_type in _INLINE or media_type.startswith(("audio/", "video/"))


def _title(request: Request) -> str | None:
    text = request.query_params.get("filename")
    if text is not None and (len(text) > MAX_TITLE or not is_one_line(text)):
        raise Malformed(f"The filename must be at most {MAX_TITLE} characters in one line.")
    return text or None


def file_operations(body: BodyLimits, *, is_embedded: bool) -> list[Operation]:
    """Return the operations on the files of a chat.

    ``is_embedded``: pages of other origins may call, so they may show images, too.
    """
    files = StoredFiles(body, "cross-origin" if is_embedded else "same-origin")
    return [
        Operation(
            "POST",
            "/chats/{id}/files",
            "Store an attachment; the chat need not have a message yet.",
            (Success(201, "Stored.", "application/json", StoredFile),),
            endpoint=files.save_file,
            body={**BINARY, "description": "Not empty; its content is of its type."},
            body_type="*/*",
            parameters=(
                Parameter(
                    "filename", "query", one_line(MAX_TITLE), "What the user calls the file."
                ),
            ),
            refusals=(RequestTimeout, UnsupportedMediaType, TooManyRequests),
        ),
        Operation(
            "GET",
            "/chats/{id}/files/{name}",
            "Fetch an attachment or a file that a tool returned.",
            (
                Success(200, "The file, with its own type.", "*/*", BINARY),
                Success(206, "The range of it that was asked for.", "*/*", BINARY),
                Success(304, "The client has it already."),
                Success(416, "Nothing of it lies in the range that was asked for."),
            ),
            endpoint=files.get_file,
            refusals=(Unknown,),
        ),
    ]
