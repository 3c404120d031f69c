"""Responses in one form: JSON, one plain sentence, and the sentence for what endpoints raise."""

from __future__ import annotations

import contextlib
import json
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from sluicegate.engine.failures import describe, internal_error_sentence
from sluicegate.errors import (
    ConfigurationError,
    Unauthenticated,
    Unavailable,
    new_error_id,
    refusal_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from sluicegate.errors import RequestError

INTERNAL: Final = "internal"
"""The code of an answer 500."""

METHOD_NOT_ALLOWED: Final = "method_not_allowed"
"""The code of an answer 405."""

_REFUSED: Final = 1008
_UNEXPECTED: Final = 1011
_log: Final = logging.getLogger("sluicegate")


def json_response(
    content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with JSON that no cache keeps."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(
        body.encode("utf-8", "replace"),
        status,
        media_type="application/json",
        headers={"cache-control": "no-store", "x-content-type-options": "nosniff"}
        | dict(headers or {}),
    )


def sentence_response(
    status: int, code: str, text: str, *, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with one plain sentence; clients show it as it is."""
    return Response(
        text.encode("utf-8", "replace"),
        status,
        media_type="text/plain",
        headers={
            "x-error-code": code,
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
        }
        | dict(headers or {}),
    )


def refusal_response(error: RequestError) -> Response:
    """Answer with the error's own sentence, code and status."""
    headers: dict[str, str] = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    if isinstance(error, Unauthenticated):
        headers["www-authenticate"] = "Bearer"
    return sentence_response(error.status, error.code, error.message, headers=headers)


def not_found_response() -> Response:
    """Answer 404 to an address that there is not."""
    return sentence_response(404, "unknown", "There is nothing at this address; check it.")


async def routing_refusal(_: Request, error: Exception) -> Response:
    """Answer in the same form where no route matches (404) or not with this method (405)."""
    missing: HTTPException = error  # type: ignore[assignment]  # registered for it alone
    if missing.status_code == HTTPStatus.NOT_FOUND:
        return not_found_response()
    if missing.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        text = "This address does not take that method; the header allow lists what it takes."
        return sentence_response(405, METHOD_NOT_ALLOWED, text, headers=missing.headers)
    return sentence_response(
        missing.status_code, "malformed", "The request could not be read; check it."
    )


async def respond_before_accept(
    response: Response, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer instead of doing what was asked; a socket is not accepted.

    Not every server can send a socket's client more than a 403.
    """
    if scope["type"] == "websocket" and "websocket.http.response" not in (
        scope.get("extensions") or {}
    ):
        reason = response.headers["x-error-code"]
        await send({"type": "websocket.close", "code": _REFUSED, "reason": reason})
    else:
        await response(scope, receive, send)


class Failures:
    """Middleware that turns what endpoints raise into answers, and hides what is ours alone.

    Before the first byte every error is one plain sentence. After it the connection is broken:
    a clean end would look like a finished answer. A socket that was accepted is closed.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Wrap the router."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application, answer for its errors."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        started = False

        async def noticing(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noticing)
        except ClientDisconnect:
            return
        except Exception as error:
            if not started:
                await respond_before_accept(response_to_error(error), scope, receive, send)
                return
            if scope["type"] == "websocket":
                _log.error("a socket failed: %s", describe(error))
                # It may be closed already, by either side.
                with contextlib.suppress(OSError, RuntimeError):
                    await send({"type": "websocket.close", "code": _UNEXPECTED})
                return
            if isinstance(error, ConnectionAbortedError):
                raise
            _log.error("a response failed after it had begun: %s", describe(error))
            # The error's own text must not reach the log of whatever server this runs in.
            raise ConnectionAbortedError("The stream was cut after an error.") from None


def response_to_error(error: Exception) -> Response:
    """Return the answer to an error; an unexpected one is logged and gets an id."""
    refused = refusal_of(error)
    if refused is not None:
        if refused is not error:
            _log.warning("request refused, a store is unavailable: %s", describe(error))
        return refusal_response(refused)
    if isinstance(error, ConfigurationError):
        _log.error("the application cannot start: %s", str(error))
        return refusal_response(Unavailable("The server is not set up yet; ask whoever runs it."))
    error_id = new_error_id()
    _log.error("a request failed: error=%s %s", error_id, describe(error))
    return sentence_response(500, INTERNAL, internal_error_sentence(error_id))
