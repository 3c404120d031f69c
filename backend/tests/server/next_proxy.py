"""How a rewrite of Next.js changes requests and responses, as measured with Next.js 16.4."""

from __future__ import annotations

import gzip
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

_NOT_PASSED_ON = frozenset({b"host", b"content-length", b"transfer-encoding", b"connection"})


@dataclass(frozen=True)
class NextConfig:
    """The relevant values of ``next.config.ts``."""

    compress: bool
    rewrites: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, file: Path) -> NextConfig:
        text = file.read_text("utf-8")
        rewrites = re.findall(r'source: "([^"]+)", destination: `\$\{agent\}([^`]+)`', text)
        return cls("compress: false" not in text, tuple(rewrites))

    def destination(self, path: str) -> str | None:
        for source, destination in self.rewrites:
            root = source.removesuffix("/:path*")
            if path == root or path.startswith(f"{root}/"):
                return destination.removesuffix("/:path*") + path.removeprefix(root)
        return None


class NextProxy:
    """An ASGI application that proxies some paths to another server; other paths return 404."""

    def __init__(self, config: NextConfig, http: httpx.AsyncClient) -> None:
        """Proxy to the server behind ``client``."""
        self._config = config
        self._http = http

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path = self._config.destination(scope["raw_path"].decode())
        if path is None:
            await Response("Next.js has this page", 404)(scope, receive, send)
            return
        # Host is that of the destination, Origin is kept, the first Host is forwarded.
        headers = [pair for pair in scope["headers"] if pair[0] not in _NOT_PASSED_ON]
        headers.append((b"x-forwarded-host", request.headers["host"].encode()))
        address = f"{path}?{scope['query_string'].decode()}".removesuffix("?")
        body = await request.body()
        async with self._http.stream(
            request.method, address, headers=headers, content=body
        ) as answer:
            packed = "gzip" in request.headers["accept-encoding"] and answer.status_code == 200
            response = self._passed_on(answer, compress=self._config.compress and packed)
            # Disconnects with the browser, and aborts with the other server.
            await response(scope, receive, send)

    def _passed_on(self, answer: httpx.Response, *, compress: bool) -> StreamingResponse:
        response = StreamingResponse(answer.aiter_raw(), answer.status_code)
        headers = [pair for pair in answer.headers.raw if pair[0].lower() not in _NOT_PASSED_ON]
        if compress:
            response = StreamingResponse(_packed(answer), answer.status_code)
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        response.raw_headers = headers
        return response


async def _packed(answer: httpx.Response) -> AsyncIterator[bytes]:
    yield gzip.compress(b"".join([piece async for piece in answer.aiter_raw()]))
