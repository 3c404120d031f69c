"""A session in a cookie, for requests that cannot send a header: sockets and images.

The cookie holds a random id. The server keeps the token, sealed with the id, and authenticates it
at each request as in a header: a token that is revoked or expired ends the session, at any replica.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.requests import HTTPConnection
from starlette.responses import Response

from sluicegate.errors import Unauthenticated
from sluicegate.server.authentication import Authenticate, TrustedHeader, bearer_token, local_user
from sluicegate.server.demo_users import DemoUsers
from sluicegate.server.operation_types import Operation, Success
from sluicegate.server.peer_addresses import is_loopback_name
from sluicegate.server.responses import json_response
from sluicegate.server.schemas import Session
from sluicegate.stores.cookie_sessions import digest_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from sluicegate.engine.interface import Engine
    from sluicegate.server.authentication import User
    from sluicegate.server.cookie_session_connections import SessionConnections
    from sluicegate.server.engine_holder import EngineHolder
    from sluicegate.stores.cookie_sessions import CookieSessions

COOKIE: Final = "sluicegate-session"
"""The name of the cookie on a loopback address without TLS."""

SECURE_COOKIE: Final = f"__Host-{COOKIE}"
"""Its name on any other: browsers accept this prefix only over HTTPS and from the host itself."""

MAX_AGE: Final = 12 * 60 * 60
"""Seconds after which a session ends and a browser deletes the cookie."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_HOST: Final = re.compile(r"(?:https?://)?(\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::[0-9]+)?")


class CookieAuthentication:
    """Authenticates a request as it is, and if that fails, by the session of the cookie.

    Host and Origin have been checked before: an Origin that is present is an allowed one.
    What a connection streams ends with the session that authenticated it.
    """

    def __init__(
        self, authenticate: Authenticate, engine: EngineHolder, connections: SessionConnections
    ) -> None:
        self._authenticate = authenticate
        self._engine = engine
        self._connections = connections

    async def __call__(self, connection: HTTPConnection) -> str | User | None:
        """Return the user; a user of the request without the cookie comes first."""
        session_id = accepted_session_id(connection)
        try:
            user = await self._authenticate(connection)
        except Unauthenticated:
            if session_id is None:
                raise
            return await self._user_of(connection, session_id)
        if user is None and session_id is not None:
            return await self._user_of(connection, session_id)
        return user

    async def begin(self, user: str, token: str) -> str:
        """Begin a session; returns its id."""
        return await (await self._sessions()).begin(user, token, seconds=MAX_AGE)

    async def end(self, session_id: str) -> None:
        """End a session."""
        await (await self._sessions()).end(session_id)

    async def _user_of(self, connection: HTTPConnection, session_id: str) -> str | User | None:
        """Authenticate the token of a session; a token that is not accepted ends it."""
        sessions = await self._sessions()
        self._connections.hold(connection, digest_of(session_id), sessions)
        token = await sessions.token(session_id)
        if token is None:
            return None
        try:
            user = await self._authenticate(with_authorization(connection, f"Bearer {token}"))
        except Unauthenticated:
            await self.end(session_id)
            raise
        if user is None:
            await self.end(session_id)
        return user

    async def _sessions(self) -> CookieSessions:
        return (await self._engine.get()).cookie_sessions


def accept_cookies(
    authenticate: Authenticate, engine: EngineHolder, connections: SessionConnections
) -> Authenticate:
    """Accept sessions in the cookie too, unless the authentication uses no tokens."""
    if not uses_tokens(authenticate):
        return authenticate
    return CookieAuthentication(authenticate, engine, connections)


def accepted_session_id(connection: HTTPConnection) -> str | None:
    """Return the session of the cookie, None if the cookie is not accepted.

    It is accepted only from a page that may call. The sockets of such a page and its requests
    that change something have an Origin; its images have ``sec-fetch-site`` instead.
    """
    headers = connection.headers
    if "authorization" in headers:
        return None
    if "origin" not in headers and headers.get("sec-fetch-site") != "same-origin":
        return None
    return session_id_of(connection)


def session_id_of(connection: HTTPConnection) -> str | None:
    """Return the session of the cookie.

    Off loopback a cookie without the prefix may be one that a neighbouring host has set.
    """
    session_id = connection.cookies.get(SECURE_COOKIE, "")
    if not session_id and not _is_secure(connection):
        session_id = connection.cookies.get(COOKIE, "")
    return session_id if _ID.fullmatch(session_id) else None


def with_authorization(connection: HTTPConnection, authorization: str) -> HTTPConnection:
    """Return the connection with this Authorization header in place of any other."""
    headers = [pair for pair in connection.scope["headers"] if pair[0] != b"authorization"]
    headers.append((b"authorization", authorization.encode("ascii")))
    return HTTPConnection({**connection.scope, "headers": headers})


def session_operations(authenticate: Authenticate) -> list[Operation]:
    """Return the operations that begin, describe and end a session."""
    cookies = authenticate if isinstance(authenticate, CookieAuthentication) else None
    others: dict[str, list[str]] = {}
    if isinstance(authenticate, DemoUsers):
        others = {"demoUsers": [user.id for user in authenticate.users]}

    async def sign_in(request: Request, _engine: Engine, user: str) -> Response:
        response = Response(status_code=204, headers={"cache-control": "no-store"})
        token = bearer_token(request.headers.getlist("authorization"))
        if token is None or cookies is None:
            # A user who is authenticated without a token needs no cookie.
            return response
        before = session_id_of(request)
        if before is not None:
            # Each sign-in has an id of its own, so one that was planted or copied before ends.
            await cookies.end(before)
        session_id = await cookies.begin(user, token)
        response.headers.append("set-cookie", _set_cookie(request, session_id, max_age=MAX_AGE))
        return response

    async def sign_out(request: Request) -> Response:
        # The token may have expired, so nothing but the cookie is checked.
        session_id = session_id_of(request)
        if session_id is not None and cookies is not None:
            await cookies.end(session_id)
        response = Response(status_code=204, headers={"cache-control": "no-store"})
        response.headers.append("set-cookie", _set_cookie(request, "", max_age=0))
        return response

    async def describe(request: Request, _engine: Engine, user: str) -> Response:
        response = json_response(
            {
                "user": None if authenticate is local_user else user,
                "canSignOut": cookies is not None and accepted_session_id(request) is not None,
                **others,
            }
        )
        response.headers["cache-control"] = "no-store"
        return response

    return [
        Operation(
            "GET",
            "/session",
            "Describe the user of the request.",
            (Success(200, "The user.", "application/json", Session),),
            endpoint=describe,
        ),
        Operation(
            "POST",
            "/session",
            "Begin a session with the bearer token, for sockets and images.",
            (Success(204, "Begun, with a new id in a cookie; without a token there is none."),),
            endpoint=sign_in,
        ),
        Operation(
            "DELETE",
            "/session",
            "End the session of the cookie.",
            (Success(204, "Ended."),),
            open_endpoint=sign_out,
        ),
    ]


def _set_cookie(request: Request, value: str, *, max_age: int) -> str:
    is_secure = _is_secure(request)
    name = SECURE_COOKIE if is_secure else COOKIE
    cookie = f"{name}={value}; Max-Age={max_age}; Path=/; HttpOnly; SameSite=Strict"
    return f"{cookie}; Secure" if is_secure else cookie


def _is_secure(connection: HTTPConnection) -> bool:
    """Whether the page has TLS or needs it: only on loopback browsers may go without.

    The Origin of the page comes before the Host, which a proxy may have changed.
    """
    page = connection.headers.get("origin", connection.headers.get("host", "")).lower()
    if page.startswith("https:") or connection.url.scheme in ("https", "wss"):
        return True
    match = _HOST.fullmatch(page)
    return match is None or not is_loopback_name(match[1].strip("[]"))


def uses_tokens(authenticate: Authenticate) -> bool:
    """Whether users have tokens, which a cookie or a frame can carry in place of a header."""
    has_none = authenticate is local_user or isinstance(authenticate, TrustedHeader | DemoUsers)
    return not has_none
