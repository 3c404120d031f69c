"""The routes of the sockets, and the authentication of their users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import WebSocketRoute

from sluicegate.errors import Unauthenticated, UpgradeRequired
from sluicegate.server.authentication import USER, identify
from sluicegate.server.operation_types import Operation, Parameter, Success
from sluicegate.server.session_cookie import with_authorization
from sluicegate.transports.audio_limits import AudioLimits
from sluicegate.transports.chat_socket import WebSocketTransport
from sluicegate.transports.live_socket import LiveTransport
from sluicegate.transports.slow_clients import WriteLimits
from sluicegate.transports.socket_connection import AUTHENTICATED, SocketLimits
from sluicegate.wire.live_frames import SUBPROTOCOL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import HTTPConnection, Request
    from starlette.responses import Response
    from starlette.websockets import WebSocket

    from sluicegate.server.authentication import Authenticate
    from sluicegate.server.engine_holder import EngineHolder
    from sluicegate.server.settings import Settings
    from sluicegate.server.user_limits import UserLimits
    from sluicegate.transports.large_request_queue import LargeRequests


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


def chat_transport(settings: Settings, large: LargeRequests) -> WebSocketTransport:
    """Return the transport for any chats, with the limits of the settings."""
    return WebSocketTransport(
        socket=_limits(settings),
        limits=settings.request_limits,
        large=large,
        own_files=settings.files_url,
        max_requests=settings.max_requests_per_socket,
    )


def live_transport(settings: Settings, large: LargeRequests) -> LiveTransport:
    """Return the transport for one live chat per socket, with the limits of the settings."""
    return LiveTransport(
        socket=_limits(settings),
        audio=AudioLimits(
            settings.max_audio_frame,
            settings.max_audio_ahead,
            settings.max_audio_frames_per_second,
        ),
        limits=settings.request_limits,
        large=large,
        own_files=settings.files_url,
        max_requests=settings.max_requests_per_socket,
    )


def _limits(settings: Settings) -> SocketLimits:
    return SocketLimits(
        frame_bytes=settings.max_body_bytes,
        unauthenticated_frame_bytes=settings.max_unauthenticated_frame_bytes,
        frames_per_second=settings.max_frames_per_second,
        burst=settings.max_frames_burst,
        first_frame=settings.first_frame_timeout,
        idle=settings.idle_timeout,
        heartbeat=settings.keep_alive,
        recheck=settings.recheck_interval,
        writes=WriteLimits(settings.reader_backlog, settings.reader_patience),
    )


def socket_route(
    path: str,
    transport: WebSocketTransport | LiveTransport,
    *,
    authenticate: Authenticate,
    engine: EngineHolder,
    limits: UserLimits,
    frame_tokens: bool,
) -> WebSocketRoute:
    """Return the route; a socket without a user is refused before it is accepted."""

    async def serve(websocket: WebSocket) -> None:
        caller = SocketCaller(authenticate, websocket, limits, frame_tokens=frame_tokens)
        await caller.authenticate_handshake()
        await transport.serve(websocket, await engine.get(), caller)

    return WebSocketRoute(path, serve)


def socket_operations() -> list[Operation]:
    """Return the handshakes of the sockets, which a request without an upgrade does not begin."""
    upgraded = (Success(101, "The connection is a WebSocket from here on."),)
    chat = Parameter("chat", "query", str, "The chat that is open.", required=True)
    activity = Parameter(
        "activity",
        "query",
        {"type": "string", "enum": ["client"]},
        "The client marks where speech begins and ends, in place of the model.",
    )
    audio = Parameter(
        "sec-websocket-protocol",
        "header",
        {"type": "string", "enum": [SUBPROTOCOL]},
        "The client sends and plays audio in binary messages.",
    )
    return [
        Operation(
            "GET",
            "/chat/ws",
            "Any chats over a WebSocket, by the protocol of WebSocketChatTransport.",
            upgraded,
            open_endpoint=_require_upgrade,
            refusals=(UpgradeRequired,),
            is_upgrade=True,
        ),
        Operation(
            "GET",
            "/live",
            "One chat with a live model behind it, over a WebSocket.",
            upgraded,
            open_endpoint=_require_upgrade,
            parameters=(chat, activity, audio),
            refusals=(UpgradeRequired,),
            is_upgrade=True,
        ),
    ]


async def _require_upgrade(_request: Request) -> Response:
    raise UpgradeRequired
