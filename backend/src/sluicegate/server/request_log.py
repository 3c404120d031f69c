"""Middleware that logs requests: each that is refused, with the reason, and all on demand.

A client that is refused again and again gets a bounded number of lines.
"""

from __future__ import annotations

import contextlib
import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from starlette.datastructures import Headers

from sluicegate.engine.describe_exceptions import without_secrets
from sluicegate.engine.rate_limits import RateLimit
from sluicegate.errors import TooManyRequests
from sluicegate.server.logs import FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LINES_PER_MINUTE: Final = 60
"""Lines about one peer; what it is refused beyond that is not logged."""

_log: Final = logging.getLogger("sluicegate")


class LogRefusals:
    """Logs the responses with an error code, except internal errors, which have their own line."""

    def __init__(self, app: ASGIApp, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._lines = RateLimit(LINES_PER_MINUTE, "", clock=clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application; log its response if it is a refusal."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        refused: tuple[int, str] | None = None
        is_accepted = False

        async def send_and_log(message: Message) -> None:
            nonlocal refused, is_accepted
            kind = message["type"]
            if kind.endswith("response.start"):
                refused = _refusal(message)
            elif kind.endswith("response.body") and refused is not None:
                sentence = bytes(message.get("body", b"")).decode("utf-8", "replace")
                self._note(scope, *refused, sentence)
                refused = None
            elif kind == "websocket.accept":
                is_accepted = True
            elif kind == "websocket.close" and not is_accepted and refused is None:
                self._note(scope, HTTPStatus.FORBIDDEN, message.get("reason") or "", "")
            await send(message)

        await self._app(scope, receive, send_and_log)

    def _note(self, scope: Scope, status: int, code: str, sentence: str) -> None:
        peer = str((scope.get("client") or ("unknown",))[0])
        with contextlib.suppress(TooManyRequests):
            self._lines.take(peer)
            _log.warning(
                "request refused status=%d code=%s method=%s path=%s by=%s %s",
                status,
                code,
                scope.get("method", "WEBSOCKET"),
                _path(scope),
                peer,
                without_secrets(sentence),
            )


class AccessLog:
    """Logs the start of each response: method, path, status and milliseconds.

    In JSON each is a field too, beside the address of the peer.
    """

    def __init__(self, app: ASGIApp, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application; log how its response begins."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        started = self._clock()
        method = scope.get("method", "WEBSOCKET")

        async def send_and_log(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.accept"):
                status = message.get("status", HTTPStatus.SWITCHING_PROTOCOLS)
                passed = (self._clock() - started) * 1000
                path = _path(scope)
                fields = {
                    "method": method,
                    "path": path,
                    "status": int(status),
                    "milliseconds": round(passed, 1),
                    "peer": str((scope.get("client") or ("unknown",))[0]),
                }
                message_of = "request %s %s %d %.0fms"
                _log.info(message_of, method, path, status, passed, extra={FIELDS: fields})
            await send(message)

        await self._app(scope, receive, send_and_log)


def _refusal(message: Message) -> tuple[int, str] | None:
    """Return status and code of a refusal; None for any other response."""
    status: int = message["status"]
    code = Headers(raw=message.get("headers", [])).get("x-error-code")
    is_internal = status == HTTPStatus.INTERNAL_SERVER_ERROR
    return None if code is None or is_internal else (status, code)


def _path(scope: Scope) -> str:
    """Return the path as it was sent, on one line, without the query and without credentials."""
    raw: Any = scope.get("raw_path") or scope["path"].encode("utf-8", "replace")
    path = bytes(raw).partition(b"?")[0].decode("ascii", "backslashreplace")
    return without_secrets(path if path.isprintable() else ascii(path))
