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

from sluicegate.engine.rate_limits import RateLimit
from sluicegate.engine.redact_log_text import without_secrets
from sluicegate.errors import TooManyRequests
from sluicegate.server.authentication import USER
from sluicegate.server.logging_config import FIELDS

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
    """Logs the start of each response: method, path, status, milliseconds and user.

    The end of a stream of events and of a socket has a line of its own: the seconds for which it
    was open, the bytes that were sent, and the reason, which is ``finished`` or ``closed`` by the
    server, ``disconnected`` by the client, or ``failed``. In JSON each is a field too, beside the
    address of the peer.
    """

    def __init__(self, app: ASGIApp, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application; log how its response begins, and how a stream ends."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        response = _LoggedResponse(scope, self._clock)

        async def receive_and_note() -> Message:
            message = await receive()
            response.received(message)
            return message

        async def send_and_log(message: Message) -> None:
            response.sent(message)
            await send(message)

        try:
            await self._app(scope, receive_and_note, send_and_log)
        except BaseException:
            response.end("failed")
            raise
        response.end("closed")


class _LoggedResponse:
    """The lines about one response."""

    def __init__(self, scope: Scope, clock: Callable[[], float]) -> None:
        self._scope = scope
        self._clock = clock
        self._began = clock()
        self._is_stream = False
        self._bytes = 0
        self._end: str | None = None

    def received(self, message: Message) -> None:
        """Note that the client has left."""
        if message["type"] in ("http.disconnect", "websocket.disconnect"):
            self._end = self._end or "disconnected"

    def sent(self, message: Message) -> None:
        """Log the start, count bytes, and note the end."""
        kind = message["type"]
        if kind in ("http.response.start", "websocket.accept"):
            self._start(message)
        elif kind == "http.response.body":
            self._bytes += len(message.get("body", b""))
            if not message.get("more_body", False):
                self._end = self._end or "finished"
        elif kind == "websocket.send":
            self._bytes += len(message.get("bytes") or (message.get("text") or "").encode())
        elif kind == "websocket.close":
            self._end = self._end or "closed"

    def end(self, reason: str) -> None:
        """Log the end of a stream, with the reason that was seen first."""
        if not self._is_stream:
            return
        reason = self._end or reason
        seconds = self._clock() - self._began
        fields = {"seconds": round(seconds, 3), "bytes": self._bytes, "end": reason}
        self._log(f"{seconds:.1f}s {self._bytes}B {reason}", "request ended", fields)

    def _start(self, message: Message) -> None:
        status = int(message.get("status", HTTPStatus.SWITCHING_PROTOCOLS))
        content_type = Headers(raw=message.get("headers", [])).get("content-type", "")
        is_socket = message["type"] == "websocket.accept"
        self._is_stream = is_socket or content_type.startswith("text/event-stream")
        passed = (self._clock() - self._began) * 1000
        fields = {"status": status, "milliseconds": round(passed, 1)}
        self._log(f"{status} {passed:.0f}ms", "request", fields)

    def _log(self, text: str, kind: str, fields: dict[str, Any]) -> None:
        method, path = self._scope.get("method", "WEBSOCKET"), _path(self._scope)
        user = self._scope.get(USER)
        who = "" if user is None else f" user={user}"
        peer = str((self._scope.get("client") or ("unknown",))[0])
        fields = {"method": method, "path": path, **fields, "peer": peer, "user": user}
        line = f"{kind} {method} {path} {text}{who}"
        _log.info("%s", line, extra={FIELDS: fields})


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
