"""Responses in one form: JSON, or one plain sentence with an error code for every refusal."""

from __future__ import annotations

import contextlib
import json
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from sluicegate.engine.describe_exceptions import describe, internal_error_sentence
from sluicegate.errors import (
    ConfigurationError,
    Unauthenticated,
    Unavailable,
    UpgradeRequired,
    as_request_error,
    new_error_id,
)
from sluicegate.transports.socket_connection import INTERNAL_ERROR, POLICY_VIOLATION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from sluicegate.errors import RequestError

INTERNAL: Final = "internal"
"""The code of a response 500."""

METHOD_NOT_ALLOWED: Final = "method_not_allowed"
"""The code of a response 405."""

_log: Final = logging.getLogger("sluicegate")


def json_response(
    content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response that no cache stores."""
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
    """Return one plain sentence, which clients display as it is."""
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
    """Return the sentence, code and status of an error."""
    headers: dict[str, str] = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    if isinstance(error, Unauthenticated):
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, UpgradeRequired):
        headers |= {"connection": "upgrade", "upgrade": "websocket"}
    return sentence_response(error.status, error.code, error.message, headers=headers)


def not_found_response() -> Response:
    """Return 404 for an unknown path."""
    return sentence_response(404, "unknown", "There is nothing at this address; check it.")


async def respond_to_http_exception(_: Request, error: Exception) -> Response:
    """Answer in the same form when no route matches the path (404) or the method (405)."""
    missing: HTTPException = error  # type: ignore[assignment]  # registered for this class
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
    """Answer a request or refuse a socket before it is accepted.

    A server without the extension ``websocket.http.response`` sends the client of a socket a 403.
    """
    if scope["type"] == "websocket" and "websocket.http.response" not in (
        scope.get("extensions") or {}
    ):
        reason = response.headers["x-error-code"]
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason})
    else:
        await response(scope, receive, send)


class ErrorResponses:
    """Middleware that answers for exceptions and hides internal ones.

    Before the first byte every error is one plain sentence. After it the connection is broken:
    a clean end would look like a complete answer. An accepted socket is closed.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application; answer for its exceptions."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        started = False

        async def send_and_note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except ClientDisconnect:
            return
        except Exception as error:
            if not started:
                await respond_before_accept(response_to_error(error), scope, receive, send)
                return
            if scope["type"] == "websocket":
                _log.error("socket failed: %s", describe(error))
                # Either side may have closed it.
                with contextlib.suppress(OSError, RuntimeError):
                    await send({"type": "websocket.close", "code": INTERNAL_ERROR})
                return
            if isinstance(error, ConnectionAbortedError):
                raise
            _log.error("response failed after its first byte: %s", describe(error))
            # The text of the exception must not reach the log of the server around the application.
            raise ConnectionAbortedError("The stream was aborted after an error.") from None


def response_to_error(error: Exception) -> Response:
    """Return the response to an exception; an unexpected one is logged with an error id."""
    refused = as_request_error(error)
    if refused is not None:
        if refused is not error:
            _log.warning("request refused, a store is unavailable: %s", describe(error))
        return refusal_response(refused)
    if isinstance(error, ConfigurationError):
        _log.error("the engine cannot be opened: %s", str(error))
        return refusal_response(Unavailable("The server is not set up yet; ask its operator."))
    error_id = new_error_id()
    _log.error("request failed: error=%s %s", error_id, describe(error))
    return sentence_response(500, INTERNAL, internal_error_sentence(error_id))
