"""The routes of the sockets, and their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import WebSocketRoute

from sluicegate.errors import UpgradeRequired
from sluicegate.server.operation_types import Operation, Parameter, Success
from sluicegate.server.socket_authentication import SocketCaller
from sluicegate.transports.audio_limits import AudioLimits
from sluicegate.transports.chat_socket import WebSocketTransport
from sluicegate.transports.live_socket import LiveTransport
from sluicegate.transports.slow_clients import WriteLimits
from sluicegate.transports.socket_connection import SocketLimits
from sluicegate.wire.live_frames import SUBPROTOCOL

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.websockets import WebSocket

    from sluicegate.server.authentication import Authenticate
    from sluicegate.server.engine_holder import EngineHolder
    from sluicegate.server.settings import Settings
    from sluicegate.server.user_request_limits import UserLimits
    from sluicegate.transports.large_request_queue import LargeRequests


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
