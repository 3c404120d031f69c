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
from sluicegate.server.operations import Operation, Success
from sluicegate.server.responses import sentence_response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request

IN_PACKAGE: Final = Path(__file__).parent / "web"
"""Where the wheel has the built page."""

IN_CHECKOUT: Final = Path(__file__).parents[4] / "frontend" / "app" / "dist"
"""Where a checkout has it, once it was built."""

INDEX: Final = "index.html"
ASSETS: Final = "assets"
"""The folder of the files whose names change with their content."""

NOT_BUILT: Final = (
    "The chat page is not built yet: 'make demo' and 'make page' build it, and then it appears "
    "here by itself; a wheel has it inside."
)

_LOOK_AGAIN: Final = "2"
"""Seconds after which a browser looks for the page again."""

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


@dataclass(frozen=True)
class Build:
    """The page as one build of it; ``stamp`` tells it from another."""

    stamp: tuple[Path, int]
    index: str
    own: Mapping[str, PageFile]
    assets: Mapping[str, PageFile]


class Page:
    """The page as it was built last; without a build its address says how to make one.

    A build that comes while the server runs is served without a restart, and the files of the one
    before stay, for the pages that are open.
    """

    def __init__(
        self, find: Callable[[], Path | None], *, prefix: str, suggestions: Sequence[str]
    ) -> None:
        """Take what finds the folder of a build, and read it if there is one.

        The page learns the prefix of the API relative to its own address, since it may stand
        below any. ``suggestions`` are offered as first messages.
        """
        self._find = find
        self._api = prefix.removeprefix("/") or "."
        listed = json.dumps(list(suggestions)).encode()
        self._suggestions = PageFile("application/json", listed, _ALWAYS_ASK)
        self._build: Build | None = None
        self._look()

    async def index(self, _: Request) -> Response:
        """``GET /``: the page, whose policy lets in what its own server sends and nothing else."""
        self._look()
        if self._build is None:
            missing = sentence_response(503, "unavailable", NOT_BUILT)
            missing.headers["retry-after"] = missing.headers["refresh"] = _LOOK_AGAIN
            return missing
        nonce = secrets.token_urlsafe(16)
        return Response(
            self._build.index.replace(_NONCE_MARK, nonce),
            media_type="text/html",
            headers={
                **_SECURITY,
                **_ALWAYS_ASK,
                "content-security-policy": _POLICY.format(nonce=nonce),
            },
        )

    async def asset(self, request: Request) -> Response:
        """``GET /assets/{name}``: a file whose name changes with its content."""
        return await _answer(None if self._build is None else self._build.assets, request)

    async def own(self, request: Request) -> Response:
        """A file at the root of the page that its build brings."""
        return await _answer(None if self._build is None else self._build.own, request)

    async def suggestions(self, request: Request) -> Response:
        """``GET /suggestions.json``: first messages that the page offers."""
        return await self._suggestions.answer(request)

    def _look(self) -> None:
        """Read the build if it is another than the last one."""
        before = self._build
        try:
            folder = self._find()
            if folder is None:
                return
            stamp = (folder, (folder / INDEX).stat().st_mtime_ns)
            if before is not None and before.stamp == stamp:
                return
            self._build = Build(
                stamp,
                (folder / INDEX).read_text("utf-8").replace(_PREFIX_MARK, self._api),
                {path.name: _file(path, _ALWAYS_ASK) for path in _known(folder)},
                {
                    **(before.assets if before is not None else {}),
                    **{path.name: _file(path, _FOR_EVER) for path in _known(folder / ASSETS)},
                },
            )
        except OSError:
            # It is being replaced just now.
            return


def page_operations(page: Page) -> list[Operation]:
    """Return the operations of the chat page."""
    text = {"type": "string"}
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
        Operation(
            "GET",
            "/favicon.svg",
            "The sign of the chat page.",
            (Success(200, "The picture.", "image/svg+xml", text),),
            open_endpoint=page.own,
            refusals=(Unknown,),
            outside=True,
        ),
        Operation(
            "GET",
            "/suggestions.json",
            "First messages that the chat page offers.",
            (Success(200, "A list of texts.", "application/json", text),),
            open_endpoint=page.suggestions,
            outside=True,
        ),
    ]


def built_page() -> Path | None:
    """Find the built page, None where there is none."""
    return next((place for place in (IN_PACKAGE, IN_CHECKOUT) if (place / INDEX).is_file()), None)


async def _answer(files: Mapping[str, PageFile] | None, request: Request) -> Response:
    file = (files or {}).get(request.url.path.rpartition("/")[2])
    if file is None:
        raise Unknown
    return await file.answer(request)


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
