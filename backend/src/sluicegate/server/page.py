"""The chat page: static files that name no other host."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.requests import Request

FOLDER: Final = Path(__file__).parent.parent / "demo" / "page"

_SECURITY: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_PREFIX_MARK: Final = b"{{api}}"


@dataclass(frozen=True)
class PageFile:
    """A file of the page, plain and compressed."""

    path: str
    media_type: str
    plain: bytes
    packed: bytes
    etag: str

    async def answer(self, request: Request) -> Response:
        """Answer 200, or 304 where the browser has it already."""
        headers = _SECURITY | {
            "content-type": self.media_type,
            "etag": self.etag,
            "vary": "accept-encoding",
        }
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        if _takes_gzip(request.headers.get("accept-encoding", "")):
            return Response(self.packed, headers=headers | {"content-encoding": "gzip"})
        return Response(self.plain, headers=headers)


def page_files(prefix: str, suggestions: Sequence[str]) -> Iterator[PageFile]:
    """Read the page; it learns the prefix of the API, relative to its own address.

    ``suggestions`` are offered as first messages.
    """
    api = prefix.removeprefix("/") or "."
    yield _file("/suggestions.json", "application/json", json.dumps(list(suggestions)).encode())
    for file in sorted(FOLDER.iterdir()):
        if file.suffix not in _MEDIA_TYPES:
            continue
        plain = file.read_bytes().replace(_PREFIX_MARK, api.encode())
        path = "/" if file.name == "index.html" else f"/{file.name}"
        yield _file(path, _MEDIA_TYPES[file.suffix], plain)


def _file(path: str, media_type: str, plain: bytes) -> PageFile:
    etag = f'W/"{hashlib.sha256(plain).hexdigest()[:16]}"'
    return PageFile(path, media_type, plain, gzip.compress(plain, mtime=0), etag)


def _takes_gzip(accepted: str) -> bool:
    for item in accepted.lower().split(","):
        coding, _, quality = item.partition(";")
        if coding.strip() == "gzip":
            return not quality or quality.strip().removeprefix("q=").strip("0.") != ""
    return False
