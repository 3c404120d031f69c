"""A bearer token kept in a cookie, for what cannot send a header: sockets and images.

The cookie holds the token itself and is asked about like one: a token that is taken back or has
run out lets nobody in by its cookie either, and every replica knows it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

from sluicegate.errors import TooLarge, Unauthenticated
from sluicegate.server.access import is_loopback_name
from sluicegate.server.authentication import TrustedHeader, anyone_on_this_machine, bearer_token
from sluicegate.server.operations import Operation, Success

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.engine.engine import Engine
    from sluicegate.server.authentication import Authenticate

COOKIE: Final = "sluicegate-session"
"""The cookie's name where the page stands on a loopback address."""

SECURE_COOKIE: Final = f"__Host-{COOKIE}"
"""Its name elsewhere: browsers let no neighbouring host and no plain HTTP set such a name."""

MAX_AGE: Final = 12 * 60 * 60
"""Seconds after which a browser forgets the cookie."""

MAX_TOKEN: Final = 3800
"""Characters of a token; browsers drop a cookie of more than 4,096 bytes."""

_HOST: Final = re.compile(r"(?:https?://)?(\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::[0-9]+)?")


class OrByCookie:
    """Asks a port about the call as it is, and where that says nobody, about the cookie's token.

    Host and Origin have been looked at by now: an Origin that is there is an accepted one.
    """

    def __init__(self, authenticate: Authenticate) -> None:
        """Take the port that knows the tokens."""
        self._authenticate = authenticate

    async def __call__(self, connection: HTTPConnection) -> str | None:
        """Return the user; what the port says of the call without the cookie goes first."""
        carried = with_cookie_token(connection)
        try:
            user = await self._authenticate(connection)
        except Unauthenticated:
            if carried is None:
                raise
            return await self._authenticate(carried)
        if user is None and carried is not None:
            return await self._authenticate(carried)
        return user


def or_by_cookie(authenticate: Authenticate) -> Authenticate:
    """Let a port that takes tokens take them from the cookie too; others have no use for it."""
    if authenticate is anyone_on_this_machine or isinstance(authenticate, TrustedHeader):
        return authenticate
    return OrByCookie(authenticate)


def with_cookie_token(connection: HTTPConnection) -> HTTPConnection | None:
    """Return the connection with the cookie's token in its header, None where that cannot count.

    It counts only for a page that may call. Such a page's socket and its requests that change
    something have an Origin; its images have none, there the browser says whose page asks.
    """
    headers = connection.headers
    if "authorization" in headers:
        return None
    if "origin" not in headers and headers.get("sec-fetch-site") != "same-origin":
        return None
    name = COOKIE if _is_loopback(connection) else SECURE_COOKIE
    token = bearer_token([f"Bearer {connection.cookies.get(name, '')}"])
    return None if token is None else with_authorization(connection, f"Bearer {token}")


def with_authorization(connection: HTTPConnection, authorization: str) -> HTTPConnection:
    """Return the connection as if it had come with this one Authorization header."""
    headers = [pair for pair in connection.scope["headers"] if pair[0] != b"authorization"]
    headers.append((b"authorization", authorization.encode("ascii")))
    return HTTPConnection({**connection.scope, "headers": headers})


async def sign_out(request: Request) -> Response:
    """``DELETE /session``: forget the token, whoever asks: a token may have run out meanwhile."""
    response = Response(status_code=204, headers={"cache-control": "no-store"})
    response.headers.append("set-cookie", _set_cookie(request, "", max_age=0))
    return response


def session_operations(authenticate: Authenticate) -> list[Operation]:
    """Return the operations that keep a token in a cookie and forget it."""
    takes_cookies = isinstance(authenticate, OrByCookie)

    async def sign_in(request: Request, _engine: Engine, _user: str) -> Response:
        response = Response(status_code=204, headers={"cache-control": "no-store"})
        token = bearer_token(request.headers.getlist("authorization"))
        if token is None or not takes_cookies:
            # Who is known without a token needs none for a socket or an image either.
            return response
        if len(token) > MAX_TOKEN:
            raise TooLarge(f"A token of over {MAX_TOKEN:,} characters does not fit into a cookie.")
        response.headers.append("set-cookie", _set_cookie(request, token, max_age=MAX_AGE))
        return response

    return [
        Operation(
            "POST",
            "/session",
            "Keep the bearer token in a cookie, for sockets and images.",
            (Success(204, "Kept; without a token there is nothing to keep."),),
            endpoint=sign_in,
        ),
        Operation(
            "DELETE",
            "/session",
            "Forget the cookie.",
            (Success(204, "Forgotten."),),
            open_endpoint=sign_out,
        ),
    ]


def _set_cookie(request: Request, token: str, *, max_age: int) -> str:
    is_local = _is_loopback(request)
    name = COOKIE if is_local else SECURE_COOKIE
    cookie = f"{name}={token}; Max-Age={max_age}; Path=/; HttpOnly; SameSite=Strict"
    return cookie if is_local else f"{cookie}; Secure"


def _is_loopback(connection: HTTPConnection) -> bool:
    """Whether the page stands on this machine; behind a proxy its Origin says more than Host."""
    headers = connection.headers
    match = _HOST.fullmatch(headers.get("origin", headers.get("host", "")).lower())
    return match is not None and is_loopback_name(match[1].strip("[]"))
