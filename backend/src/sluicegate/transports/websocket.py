"""The chat over a socket, by the protocol of ``WebSocketChatTransport``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from sluicegate.transports.http_requests import PARSED_ASIDE
from sluicegate.transports.socket import RESTART, Socket
from sluicegate.transports.socket_requests import Opened, SocketRequests
from sluicegate.wire.frames import parse_frame

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from sluicegate.engine.engine import Engine
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.transports.socket import Caller, SocketLimits
    from sluicegate.wire.frames import ResumeFrame
    from sluicegate.wire.requests import RequestLimits

NAME: Final = "websocket"
"""What the transport is called in the audit trail."""


class ChatOverWebSocket:
    """The endpoint, and the sockets that are open."""

    def __init__(
        self, *, socket: SocketLimits, limits: RequestLimits, own_files: str, max_requests: int
    ) -> None:
        """Take the limits of a socket and of what is read of a request.

        ``own_files`` is what the URLs of a chat's files begin with, ``{id}`` standing for the
        chat; ``max_requests`` may be open on one socket.
        """
        self._socket = socket
        self._limits = limits
        self._own_files = own_files
        self._max_requests = max_requests
        self._open: set[Socket] = set()
        # A turn that is being prepared is not given up with its socket.
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, websocket: WebSocket, engine: Engine, caller: Caller) -> None:
        """Accept a socket and answer its frames until it ends; its turns go on."""
        socket = Socket(websocket, caller, self._socket)
        opened = Opened(socket, _AnyChat(engine), caller, self._limits, self._own_files, NAME)
        requests = SocketRequests(opened, self._max_requests, self._tasks)

        async def take(data: bytes) -> None:
            aside = len(data) >= PARSED_ASIDE
            frame = await asyncio.to_thread(parse_frame, data) if aside else parse_frame(data)
            await requests.take(frame)

        self._open.add(socket)
        try:
            await socket.run(take, is_busy=lambda: bool(opened.requests))
        finally:
            self._open.discard(socket)
            requests.leave()
        await socket.close()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return bool(self._tasks)

    def go_away(self) -> None:
        """Do nothing: clients of this protocol go by the close of the socket."""

    def cut(self) -> None:
        """Close every socket; their clients resume, the turns are not touched."""
        for socket in self._open:
            socket.end(RESTART, "restart")


class _AnyChat:
    """The engine, asked about any chat."""

    def __init__(self, engine: Engine) -> None:
        self.start = engine.start
        self._resume = engine.resume

    async def resume(self, frame: ResumeFrame, *, user: str, client: Client) -> TurnReader | None:
        return await self._resume(frame.chat_id, user=user, client=client)
