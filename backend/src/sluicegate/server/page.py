"""The chat page: the files of its build, with caching, compression and a security policy.

Starlette's `StaticFiles` reads a file for each request and compresses none; here the files of an
earlier build stay available to the pages that are open, and each file is compressed once: by the
build with Brotli, or here with gzip.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from starlette.responses import Response

from sluicegate.errors import Unavailable, Unknown
from sluicegate.server.operation_types import Operation, Success
from sluicegate.server.responses import sentence_response
from sluicegate.wire.ids import is_valid_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.requests import Request

    from sluicegate.server.page_theme import PageTheme

IN_PACKAGE: Final = Path(__file__).parent / "web"
"""The built page in a wheel."""

IN_CHECKOUT: Final = Path(__file__).parents[4] / "frontend" / "app" / "dist"
"""The built page in a checkout."""

INDEX: Final = "index.html"
ASSETS: Final = "assets"
"""The folder of files whose names contain a hash of their content."""

NOT_BUILT: Final = (
    "The chat page is not built yet: 'make demo' and 'make page' build it, and then it appears "
    "here by itself; a wheel has it inside."
)

_HERE: Final = "./"
"""The URLs of the build begin so."""

_RELOAD_SECONDS: Final = "2"
"""Seconds after which a browser reloads the page that is not built yet."""

_PLACEHOLDER: Final = re.compile(r"\{\{([a-z]+)\}\}")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_SECURITY: Final = {"referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
REVALIDATE: Final = {"cache-control": "no-cache"}
_IMMUTABLE: Final = {"cache-control": "public, max-age=31536000, immutable"}
_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class PageFile:
    """A file of the page, the same for every user."""

    media_type: str
    content: bytes
    caching: Mapping[str, str]
    brotli: bytes | None = None
    """The content in Brotli, if the build has it."""

    @cached_property
    def etag(self) -> str:
        """The entity tag, a hash of the content."""
        return f'W/"{hashlib.sha256(self.content).hexdigest()[:16]}"'

    @cached_property
    def compressed(self) -> bytes:
        """The content in gzip; the same bytes every time."""
        return gzip.compress(self.content, mtime=0)

    async def respond(self, request: Request) -> Response:
        """Return the file, or 304 if the browser has it."""
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
        accepted = request.headers.get("accept-encoding", "")
        if self.brotli is not None and _accepts("br", accepted):
            return Response(self.brotli, headers=headers | {"content-encoding": "br"})
        if not _accepts("gzip", accepted):
            return Response(self.content, headers=headers)
        # The first compression takes a while, in which streams must continue.
        compressed = await asyncio.to_thread(lambda: self.compressed)
        return Response(compressed, headers=headers | {"content-encoding": "gzip"})


@dataclass(frozen=True)
class Build:
    """One build of the page; ``stamp`` identifies it."""

    stamp: tuple[Path, int]
    index: str
    root: Mapping[str, PageFile]
    assets: Mapping[str, PageFile]


class Page:
    """The endpoints of the chat page; without a build, ``/`` says how to make one.

    A new build is served without a restart, and the assets of the one before stay available.

    Args:
        find: Returns the folder of the build, None if there is none.
        prefix: The prefix of the API; the page gets it relative to its own URL, since it may be
            mounted below any path.
        theme: Its title, texts, logo and stylesheet.
    """

    def __init__(self, find: Callable[[], Path | None], *, prefix: str, theme: PageTheme) -> None:
        self._find = find
        self._api = prefix.removeprefix("/") or "."
        self._theme = theme
        self._logo = theme.logo
        self._stylesheet = theme.stylesheet
        self._build: Build | None = None
        self._load_build()

    async def index(self, request: Request) -> Response:
        """``GET /``: the page, whose policy allows only content of its own server."""
        return self._respond(_HERE, self._preload(request.query_params.get("chat")))

    async def inbox(self, request: Request) -> Response:
        """``GET /inbox`` and ``GET /inbox/{approvalId}``: the same page, which shows approvals."""
        return self._respond("../" * _depth(request) or _HERE, {})

    def _respond(self, root: str, headers: Mapping[str, str]) -> Response:
        """Return the page; ``root`` is the URL of ``/`` relative to that of the request."""
        self._load_build()
        if self._build is None:
            missing = sentence_response(503, "unavailable", NOT_BUILT)
            missing.headers["retry-after"] = missing.headers["refresh"] = _RELOAD_SECONDS
            return missing
        return Response(
            self._fill(self._build.index, root),
            media_type="text/html",
            headers={
                **_SECURITY,
                **REVALIDATE,
                **headers,
                "content-security-policy": _POLICY,
            },
        )

    async def asset(self, request: Request) -> Response:
        """``GET /assets/{name}``: a file whose name contains a hash of its content."""
        return await _respond_named(None if self._build is None else self._build.assets, request)

    async def root_file(self, request: Request) -> Response:
        """``GET /{name}``: a file at the root of the build."""
        return await _respond_named(None if self._build is None else self._build.root, request)

    async def logo(self, request: Request) -> Response:
        """``GET /logo``: the file of the setting ``logo``."""
        return await _respond(self._logo, request)

    async def stylesheet(self, request: Request) -> Response:
        """``GET /theme.css``: the file of the setting ``page_stylesheet``."""
        return await _respond(self._stylesheet, request)

    def _preload(self, chat: str | None) -> dict[str, str]:
        """Return the header that has the browser load the chat while it loads the script."""
        if not is_valid_id(chat):
            return {}
        # The same URL and the same credentials as the request of the page, which then takes it.
        url = f"{self._api}/chats/{quote(chat, safe='')}"
        return {"link": f"<{url}>; rel=preload; as=fetch; crossorigin=anonymous"}

    def _load_build(self) -> None:
        """Load the build if it is not the current one."""
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
                (folder / INDEX).read_text("utf-8"),
                {path.name: _file(path, REVALIDATE) for path in _files_in(folder)},
                {
                    **(before.assets if before is not None else {}),
                    **{path.name: _file(path, _IMMUTABLE) for path in _files_in(folder / ASSETS)},
                },
            )
        except OSError:
            # The build is being replaced.
            return

    def _fill(self, template: str, root: str) -> str:
        """Return the page with its placeholders filled in one pass, so that no value has any."""
        values = self._theme.placeholders(root)
        values["api"] = self._api if root == _HERE else f"{root}{self._api}"
        template = template.replace(f'"{_HERE}', f'"{root}')
        filled = _PLACEHOLDER.sub(lambda match: values.get(match[1], ""), template)
        return filled.replace("</head>", f"{self._theme.links(root)}</head>", 1)


def page_operations(page: Page) -> list[Operation]:
    """Return the operations of the chat page."""
    return [
        Operation(
            "GET",
            "/",
            "The chat page.",
            (Success(200, "The page.", "text/html", str),),
            open_endpoint=page.index,
            refusals=(Unavailable,),
            outside=True,
        ),
        *(
            Operation(
                "GET",
                path,
                summary,
                (Success(200, "The page.", "text/html", str),),
                open_endpoint=page.inbox,
                refusals=(Unavailable,),
                outside=True,
            )
            for path, summary in (
                ("/inbox", "The page of the approvals of all chats."),
                ("/inbox/{approvalId:path}", "The page of one approval."),
            )
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
            (Success(200, "The picture.", "image/svg+xml", str),),
            open_endpoint=page.root_file,
            refusals=(Unknown,),
            outside=True,
        ),
        Operation(
            "GET",
            "/logo",
            "The logo of the setting `logo`.",
            (Success(200, "The picture.", "image/*"),),
            open_endpoint=page.logo,
            refusals=(Unknown,),
            outside=True,
        ),
        Operation(
            "GET",
            "/theme.css",
            "The stylesheet of the setting `page_stylesheet`.",
            (Success(200, "The stylesheet.", "text/css", str),),
            open_endpoint=page.stylesheet,
            refusals=(Unknown,),
            outside=True,
        ),
    ]


def built_page(folders: Sequence[Path] = (IN_PACKAGE, IN_CHECKOUT)) -> Path | None:
    """Return the folder of the built page, None if it is not built."""
    return next((folder for folder in folders if (folder / INDEX).is_file()), None)


async def _respond_named(files: Mapping[str, PageFile] | None, request: Request) -> Response:
    return await _respond((files or {}).get(request.url.path.rpartition("/")[2]), request)


async def _respond(file: PageFile | None, request: Request) -> Response:
    if file is None:
        raise Unknown
    return await file.respond(request)


def _files_in(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.suffix in _MEDIA_TYPES]


def _file(path: Path, caching: Mapping[str, str]) -> PageFile:
    packed = path.with_name(f"{path.name}.br")
    brotli = packed.read_bytes() if packed.is_file() else None
    return PageFile(_MEDIA_TYPES[path.suffix], path.read_bytes(), caching, brotli)


def _depth(request: Request) -> int:
    """Return the number of slashes after ``/inbox`` in the URL, as the browser counts them."""
    approval_id = request.path_params.get("approvalId")
    if approval_id is None:
        return 0
    raw: bytes = request.scope.get("raw_path") or b""
    segments = raw.decode("latin-1").split("/")
    # Slashes in the id may be escaped, and a mount may have the same name.
    for position, segment in enumerate(segments, 1):
        below = segments[position:]
        if segment == "inbox" and unquote("/".join(below)) == approval_id:
            return len(below)
    return str(approval_id).count("/") + 1


def _accepts(coding: str, accepted: str) -> bool:
    """Whether an ``accept-encoding`` accepts a content coding."""
    for item in accepted.lower().split(","):
        name, _, quality = item.partition(";")
        if name.strip() == coding:
            return not quality or quality.strip().removeprefix("q=").strip("0.") != ""
    return False
