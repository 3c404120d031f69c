"""Who is behind a socket, and the route on which it is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import WebSocketRoute

from sluicegate.errors import Unauthenticated
from sluicegate.server.authentication import TrustedHeader, anyone_on_this_machine, identify
from sluicegate.server.operations import Operation, Parameter, Success
from sluicegate.server.session_cookie import with_authorization
from sluicegate.transports.audio_in import AudioLimits
from sluicegate.transports.backpressure import WriteLimits
from sluicegate.transports.live_socket import LiveTransport
from sluicegate.transports.socket import SocketLimits
from sluicegate.transports.websocket import WebSocketTransport
from sluicegate.wire.live_frames import SUBPROTOCOL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import HTTPConnection
    from starlette.websockets import WebSocket

    from sluicegate.server.app import EngineHolder
    from sluicegate.server.authentication import Authenticate
    from sluicegate.server.settings import Settings


class SocketCaller:
    """Whoever opened a socket; where that says nobody, whoever a frame's bearer token names.

    Browsers cannot set headers when they open a socket, so a frame may carry ``authorization``.
    Nothing else of a frame is believed, and nothing of the address.
    """

    def __init__(self, authenticate: Authenticate, connection: HTTPConnection) -> None:
        """Take the port and the connection as it was opened."""
        self._authenticate = authenticate
        self._connection = connection
        self._opener: str | None = None
        self._by_token: dict[str, HTTPConnection] = {}
        self.is_revoked = False

    async def open(self) -> None:
        """Learn who opens the socket.

        Raises:
            Unauthenticated: Nobody, and no token in a frame could change that.
        """
        try:
            self._opener = await identify(self._authenticate, self._connection)
        except Unauthenticated:
            if self._authenticate is anyone_on_this_machine:
                raise
            if isinstance(self._authenticate, TrustedHeader):
                raise

    async def authenticate(self, headers: Mapping[str, str]) -> str:
        """Return the user of a frame with these headers.

        Raises:
            Unauthenticated: Nobody, or not who opened the socket.
        """
        if self._opener is not None:
            await self._check_opener(self._opener)
            return self._opener
        connection = _with_frame_token(self._connection, headers.get("authorization", ""))
        user = await identify(self._authenticate, connection)
        self._by_token[user] = connection
        return user

    async def recheck(self) -> None:
        """Ask again about whoever opened the socket, or about the last token of each user.

        Raises:
            RequestError: Somebody is not accepted any more.
        """
        if self._opener is not None:
            await self._check_opener(self._opener)
        for user, connection in list(self._by_token.items()):
            if await identify(self._authenticate, connection) != user:
                raise Unauthenticated

    async def _check_opener(self, opener: str) -> None:
        try:
            if await identify(self._authenticate, self._connection) == opener:
                return
        except Unauthenticated:
            self.is_revoked = True
            raise
        self.is_revoked = True
        raise Unauthenticated


def _with_frame_token(connection: HTTPConnection, authorization: str) -> HTTPConnection:
    """Return the connection as if it had been opened with a frame's token.

    Raises:
        Unauthenticated: The frame has no bearer token.
    """
    if not authorization.isascii() or authorization[:7].lower() != "bearer ":
        raise Unauthenticated
    return with_authorization(connection, authorization)


def chat_sockets(settings: Settings) -> WebSocketTransport:
    """Return the endpoint for any chat, with the limits that are set."""
    return WebSocketTransport(
        socket=_limits(settings),
        limits=settings.request_limits,
        own_files=settings.files_url,
        max_requests=settings.max_requests_per_socket,
    )


def live_sockets(settings: Settings) -> LiveTransport:
    """Return the endpoint for live chats, with the limits that are set."""
    return LiveTransport(
        socket=_limits(settings),
        audio=AudioLimits(
            settings.max_audio_frame,
            settings.max_audio_ahead,
            settings.max_audio_frames_per_second,
        ),
        limits=settings.request_limits,
        own_files=settings.files_url,
        max_requests=settings.max_requests_per_socket,
    )


def _limits(settings: Settings) -> SocketLimits:
    return SocketLimits(
        frame_bytes=settings.max_body_bytes,
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
    sockets: WebSocketTransport | LiveTransport,
    *,
    authenticate: Authenticate,
    engine: EngineHolder,
) -> WebSocketRoute:
    """Return the route; a caller nobody knows is refused before the socket is accepted."""

    async def for_a_user(websocket: WebSocket) -> None:
        caller = SocketCaller(authenticate, websocket)
        await caller.open()
        await sockets.serve(websocket, await engine.get(), caller)

    return WebSocketRoute(path, for_a_user)


def socket_operations() -> list[Operation]:
    """Describe the sockets, each as the request that is upgraded to one."""
    upgraded = (Success(101, "The connection is a WebSocket from here on."),)
    chat = Parameter("chat", "query", {"type": "string"}, "The chat that is open.", required=True)
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
            is_upgrade=True,
        ),
        Operation(
            "GET",
            "/live",
            "One chat with a live model behind it, over a WebSocket.",
            upgraded,
            parameters=(chat, activity, audio),
            is_upgrade=True,
        ),
    ]
