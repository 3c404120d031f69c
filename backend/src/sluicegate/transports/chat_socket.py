"""The WebSocket transport: any chats on one socket, framed for ``WebSocketChatTransport``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluicegate.transports.socket_connection import SERVICE_RESTART, Socket
from sluicegate.transports.socket_request_tasks import SocketContext, SocketRequests
from sluicegate.wire.frames import parse_frame

if TYPE_CHECKING:
    import asyncio

    from starlette.websockets import WebSocket

    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.interface import Engine
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.transports.large_request_queue import LargeRequests
    from sluicegate.transports.socket_connection import Caller, SocketLimits
    from sluicegate.wire.frames import ResumeFrame
    from sluicegate.wire.limits import RequestLimits
    from sluicegate.wire.requests import ChatRequest

NAME: Final = "websocket"
"""The name of the transport in the audit trail."""


class WebSocketTransport:
    """The endpoint and its open sockets.

    Args:
        socket: The limits of one socket.
        limits: The limits of one request.
        large: Parses frames.
        own_files: The prefix of the URLs of a chat's files, with ``{id}`` for the chat.
        max_requests: How many requests may be open on one socket.
    """

    def __init__(
        self,
        *,
        socket: SocketLimits,
        limits: RequestLimits,
        large: LargeRequests,
        own_files: str,
        max_requests: int,
    ) -> None:
        self._socket = socket
        self._limits = limits
        self._large = large
        self._own_files = own_files
        self._max_requests = max_requests
        self._open: dict[Socket, SocketContext] = {}
        # A turn that is being started outlives its socket.
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, websocket: WebSocket, engine: Engine, caller: Caller) -> None:
        """Accept a socket and answer its frames until it is closed; its turns continue."""
        socket = Socket(websocket, caller, self._socket)
        context = SocketContext(
            socket, _EngineTurns(engine), caller, self._limits, self._large, self._own_files, NAME
        )
        requests = SocketRequests(context, self._max_requests, self._tasks)

        async def receive(unread: list[bytes]) -> None:
            frame = await self._large.run(
                len(unread[0]), lambda: parse_frame(unread.pop(), loads=self._large.loads)
            )
            await requests.dispatch(frame)

        self._open[socket] = context
        try:
            await socket.run(receive, is_busy=lambda: bool(context.requests))
        finally:
            del self._open[socket]
            requests.disconnect()
        await socket.send_close()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return bool(self._tasks)

    def go_away(self) -> None:
        """Do nothing: this protocol announces a restart by the close code alone."""

    def close_idle(self) -> None:
        """Close the sockets on which no request is open; their clients reconnect."""
        for socket, context in self._open.items():
            if not context.requests:
                socket.close(SERVICE_RESTART, "restart")

    def abort(self) -> None:
        """Close every socket; clients reconnect, turns continue."""
        for socket in self._open:
            socket.close(SERVICE_RESTART, "restart")


class _EngineTurns:
    """Turns of any chat of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def start(
        self, request: ChatRequest, *, user: str, client: RequestingClient
    ) -> TurnReader:
        return await self._engine.start(request, user=user, client=client)

    async def resume(
        self, frame: ResumeFrame, *, user: str, client: RequestingClient
    ) -> TurnReader | None:
        return await self._engine.resume(frame.chat_id, user=user, client=client)
