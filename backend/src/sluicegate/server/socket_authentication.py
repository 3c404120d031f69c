"""The authentication of a socket: at its handshake, or by a token in its first frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.errors import Unauthenticated
from sluicegate.server.authentication import USER, identify
from sluicegate.server.cookie_authentication import with_authorization
from sluicegate.transports.socket_connection import AUTHENTICATED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import HTTPConnection

    from sluicegate.server.authentication import Authenticate
    from sluicegate.server.user_request_limits import UserLimits


class SocketCaller:
    """The user of the handshake; without one, the user of the bearer token in a frame.

    Browsers cannot set headers when they open a socket, so a frame may have ``authorization``.
    Other headers of a frame and tokens in the URL are ignored. Without ``frame_tokens`` the
    handshake must have a user.
    """

    def __init__(
        self,
        authenticate: Authenticate,
        connection: HTTPConnection,
        limits: UserLimits,
        *,
        frame_tokens: bool,
    ) -> None:
        self._authenticate = authenticate
        self._limits = limits
        self._frame_tokens = frame_tokens
        self._connection = connection
        self._handshake_user: str | None = None
        self._token_connections: dict[str, HTTPConnection] = {}
        self.is_authenticated = False
        self.is_revoked = False

    async def authenticate_handshake(self) -> None:
        """Authenticate the handshake.

        Raises:
            Unauthenticated: There is no user, and a token in a frame is not accepted.
            TooManyRequests: The user has too many connections, or the peer failed too often.
        """
        try:
            self._handshake_user = await identify(self._authenticate, self._connection)
            self._accept(self._handshake_user)
        except Unauthenticated:
            if not self._frame_tokens:
                raise

    async def authenticate(self, headers: Mapping[str, str]) -> str:
        """Return the user of a frame with these headers.

        Raises:
            Unauthenticated: There is no user, or another one than that of the handshake.
            TooManyRequests: The user has sent too many or has too many connections, or the peer
                has failed too often.
        """
        if self._handshake_user is not None:
            await self._recheck_handshake(self._handshake_user)
            user = self._handshake_user
        else:
            connection = _with_frame_token(self._connection, headers.get("authorization", ""))
            user = await identify(self._authenticate, connection)
            self._accept(user)
            self._token_connections[user] = connection
        self._limits.count_request(user)
        return user

    async def recheck(self) -> None:
        """Authenticate the handshake again, or the last token of each user.

        Raises:
            RequestError: A user is not valid any more.
        """
        if self._handshake_user is not None:
            await self._recheck_handshake(self._handshake_user)
        for user, connection in list(self._token_connections.items()):
            if await identify(self._authenticate, connection) != user:
                raise Unauthenticated

    def _accept(self, user: str) -> None:
        """Record that the socket has a user; the server then reads larger messages."""
        self._limits.hold_connection(self._connection, user)
        self._connection.scope[USER] = user
        self.is_authenticated = True
        offered = (self._connection.scope.get("extensions") or {}).get(AUTHENTICATED)
        if offered is not None:
            offered["call"](user)

    async def _recheck_handshake(self, user: str) -> None:
        try:
            if await identify(self._authenticate, self._connection) == user:
                return
        except Unauthenticated:
            self.is_revoked = True
            raise
        self.is_revoked = True
        raise Unauthenticated


def _with_frame_token(connection: HTTPConnection, authorization: str) -> HTTPConnection:
    """Return the connection with the token of a frame as its header.

    Raises:
        Unauthenticated: The frame has no bearer token.
    """
    if not authorization.isascii() or authorization[:7].lower() != "bearer ":
        raise Unauthenticated
    return with_authorization(connection, authorization)
