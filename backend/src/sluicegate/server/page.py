"""The chat page: the files of its build, and the headers under which nothing foreign gets in."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from sluicegate.errors import Unavailable, Unknown
from sluicegate.server.answers import sentence
from sluicegate.server.operations import Operation, Success

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request

IN_PACKAGE: Final = Path(__file__).parent / "web"
"""Where the wheel has the built page."""

IN_CHECKOUT: Final = Path(__file__).parents[4] / "frontend" / "app" / "dist"
"""Where a checkout has it, once it was built."""

INDEX: Final = "index.html"
ASSETS: Final = "assets"
"""The folder of the files whose names change with their content."""

NOT_BUILT: Final = (
    "The chat page is not built here; run 'make page', or install the wheel, which has it inside."
)

_PREFIX_MARK: Final = "{{api}}"
_NONCE_MARK: Final = "{{nonce}}"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_SECURITY: Final = {"referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
_ALWAYS_ASK: Final = {"cache-control": "no-cache"}
_FOR_EVER: Final = {"cache-control": "public, max-age=31536000, immutable"}
_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class PageFile:
    """A file of the page, the same for everybody."""

    media_type: str
    plain: bytes
    caching: Mapping[str, str]

    @cached_property
    def etag(self) -> str:
        """Changes with the content."""
        return f'W/"{hashlib.sha256(self.plain).hexdigest()[:16]}"'

    @cached_property
    def packed(self) -> bytes:
        """The content compressed; the same bytes every time."""
        return gzip.compress(self.plain, mtime=0)

    async def answer(self, request: Request) -> Response:
        """Answer 200, or 304 where the browser has it already."""
        headers = {
            **_SECURITY,
            **self.caching,
            "content-security-policy": "default-src 'none'; sandbox",
            "content-type": self.media_type,
            "etag": self.etag,
            "vary": "accept-encoding",
        }
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        if not takes_gzip(request.headers.get("accept-encoding", "")):
            return Response(self.plain, headers=headers)
        # The first time this takes a while, in which streams must go on.
        packed = await asyncio.to_thread(lambda: self.packed)
        return Response(packed, headers=headers | {"content-encoding": "gzip"})


class Page:
    """The page as one build of it; without a build its address says how to make one."""

    def __init__(self, folder: Path | None, *, prefix: str, suggestions: Sequence[str]) -> None:
        """Read the build.

        The page learns the prefix of the API relative to its own address, since it may stand
        below any. ``suggestions`` are offered as first messages.
        """
        listed = json.dumps(list(suggestions)).encode()
        self.files = {
            "/suggestions.json": PageFile("application/json", listed, _ALWAYS_ASK),
        }
        self._assets: dict[str, PageFile] = {}
        self._index: str | None = None
        if folder is None:
            return
        api = prefix.removeprefix("/") or "."
        self._index = (folder / INDEX).read_text("utf-8").replace(_PREFIX_MARK, api)
        self.files |= {
            f"/{path.name}": _file(path, _ALWAYS_ASK)
            for path in _known(folder)
            if path.name != INDEX
        }
        self._assets = {path.name: _file(path, _FOR_EVER) for path in _known(folder / ASSETS)}

    async def index(self, _: Request) -> Response:
        """``GET /``: the page, whose policy lets in what its own server sends and nothing else."""
        if self._index is None:
            return sentence(503, "unavailable", NOT_BUILT)
        nonce = secrets.token_urlsafe(16)
        return Response(
            self._index.replace(_NONCE_MARK, nonce),
            media_type="text/html",
            headers={
                **_SECURITY,
                **_ALWAYS_ASK,
                "content-security-policy": _POLICY.format(nonce=nonce),
            },
        )

    async def asset(self, request: Request) -> Response:
        """``GET /assets/{name}``: a file whose name changes with its content."""
        file = self._assets.get(str(request.path_params["name"]))
        if file is None:
            raise Unknown
        return await file.answer(request)


def page_operations(page: Page) -> list[Operation]:
    """Return the operations of the chat page."""
    text = {"type": "string"}
    own = [
        Operation(
            "GET",
            path,
            "A file of the chat page.",
            (Success(200, "The file.", file.media_type.partition(";")[0], text),),
            open_endpoint=file.answer,
            outside=True,
        )
        for path, file in page.files.items()
    ]
    return [
        Operation(
            "GET",
            "/",
            "The chat page.",
            (Success(200, "The page.", "text/html", text),),
            open_endpoint=page.index,
            refusals=(Unavailable,),
            outside=True,
        ),
        Operation(
            "GET",
            f"/{ASSETS}/{{name}}",
            "A script or a style of the chat page.",
            (Success(200, "The file, with its own type.", "*/*"),),
            open_endpoint=page.asset,
            refusals=(Unknown,),
            outside=True,
        ),
        *own,
    ]


def built_page() -> Path | None:
    """Find the built page, None where there is none."""
    return next((place for place in (IN_PACKAGE, IN_CHECKOUT) if (place / INDEX).is_file()), None)


def _known(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.suffix in _MEDIA_TYPES]


def _file(path: Path, caching: Mapping[str, str]) -> PageFile:
    return PageFile(_MEDIA_TYPES[path.suffix], path.read_bytes(), caching)


def takes_gzip(accepted: str) -> bool:
    """Whether an ``accept-encoding`` takes gzip."""
    for item in accepted.lower().split(","):
        coding, _, quality = item.partition(";")
        if coding.strip() == "gzip":
            return not quality or quality.strip().removeprefix("q=").strip("0.") != ""
    return False
