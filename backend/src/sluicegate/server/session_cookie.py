"""A bearer token in a cookie, for requests that cannot send a header: sockets and images.

The cookie holds the token itself, which is authenticated as in a header: a token that is revoked
or expired is not accepted in the cookie either, by any replica.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

from sluicegate.errors import TooLarge, Unauthenticated
from sluicegate.server.access import is_loopback_name
from sluicegate.server.authentication import TrustedHeader, bearer_token, local_user
from sluicegate.server.operations import Operation, Success

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.engine.interface import Engine
    from sluicegate.server.authentication import Authenticate

COOKIE: Final = "sluicegate-session"
"""The name of the cookie on a loopback address."""

SECURE_COOKIE: Final = f"__Host-{COOKIE}"
"""Its name on any other: browsers accept this prefix only over HTTPS and from the host itself."""

MAX_AGE: Final = 12 * 60 * 60
"""Seconds after which a browser deletes the cookie."""

MAX_TOKEN: Final = 3800
"""Characters of a token; browsers drop a cookie of more than 4,096 bytes."""

_HOST: Final = re.compile(r"(?:https?://)?(\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::[0-9]+)?")


class CookieAuthentication:
    """Authenticates a request as it is, and if that fails, with the token of the cookie.

    Host and Origin have been checked before: an Origin that is present is an allowed one.
    """

    def __init__(self, authenticate: Authenticate) -> None:
        self._authenticate = authenticate

    async def __call__(self, connection: HTTPConnection) -> str | None:
        """Return the user; a user of the request without the cookie comes first."""
        with_cookie = with_cookie_token(connection)
        try:
            user = await self._authenticate(connection)
        except Unauthenticated:
            if with_cookie is None:
                raise
            return await self._authenticate(with_cookie)
        if user is None and with_cookie is not None:
            return await self._authenticate(with_cookie)
        return user


def accept_cookies(authenticate: Authenticate) -> Authenticate:
    """Accept tokens in the cookie too, unless the authentication uses no tokens."""
    if authenticate is local_user or isinstance(authenticate, TrustedHeader):
        return authenticate
    return CookieAuthentication(authenticate)


def with_cookie_token(connection: HTTPConnection) -> HTTPConnection | None:
    """Return the connection with the cookie's token as its header, None if it is not accepted.

    It is accepted only from a page that may call. The sockets of such a page and its requests
    that change something have an Origin; its images have ``sec-fetch-site`` instead.
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
    """Return the connection with this Authorization header in place of any other."""
    headers = [pair for pair in connection.scope["headers"] if pair[0] != b"authorization"]
    headers.append((b"authorization", authorization.encode("ascii")))
    return HTTPConnection({**connection.scope, "headers": headers})


async def sign_out(request: Request) -> Response:
    """``DELETE /session``: delete the cookie; its token may have expired, so nothing is checked."""
    response = Response(status_code=204, headers={"cache-control": "no-store"})
    response.headers.append("set-cookie", _set_cookie(request, "", max_age=0))
    return response


def session_operations(authenticate: Authenticate) -> list[Operation]:
    """Return the operations that set and delete the cookie."""
    accepts_cookies = isinstance(authenticate, CookieAuthentication)

    async def sign_in(request: Request, _engine: Engine, _user: str) -> Response:
        response = Response(status_code=204, headers={"cache-control": "no-store"})
        token = bearer_token(request.headers.getlist("authorization"))
        if token is None or not accepts_cookies:
            # A user who is authenticated without a token needs no cookie.
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
    """Whether the page is on a loopback address, by the Origin before the Host (of a proxy)."""
    headers = connection.headers
    match = _HOST.fullmatch(headers.get("origin", headers.get("host", "")).lower())
    return match is not None and is_loopback_name(match[1].strip("[]"))
