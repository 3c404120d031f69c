"""Authentication by the session of a cookie, for requests that cannot send a header.

These are sockets and images. The cookie holds a random id. The server keeps the token, sealed with
the id, and authenticates it at each request as in a header: a token that is revoked or expired ends
the session, at any replica.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

from sluicegate.errors import Unauthenticated
from sluicegate.server.authentication import Authenticate, TrustedHeader, local_user
from sluicegate.server.demo_users import DemoUsers
from sluicegate.server.session_cookie import MAX_AGE, accepted_session_id
from sluicegate.stores.cookie_session_sealing import digest_of

if TYPE_CHECKING:
    from sluicegate.server.authentication import User
    from sluicegate.server.cookie_session_connections import SessionConnections
    from sluicegate.server.engine_holder import EngineHolder
    from sluicegate.stores.cookie_sessions import CookieSessions


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


def with_authorization(connection: HTTPConnection, authorization: str) -> HTTPConnection:
    """Return the connection with this Authorization header in place of any other."""
    headers = [pair for pair in connection.scope["headers"] if pair[0] != b"authorization"]
    headers.append((b"authorization", authorization.encode("ascii")))
    return HTTPConnection({**connection.scope, "headers": headers})


def uses_tokens(authenticate: Authenticate) -> bool:
    """Whether users have tokens, which a cookie or a frame can carry in place of a header."""
    has_none = authenticate is local_user or isinstance(authenticate, TrustedHeader | DemoUsers)
    return not has_none
