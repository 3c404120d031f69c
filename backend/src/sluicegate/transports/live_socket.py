"""A chat that is open live: the socket of the chat's frames, and audio as binary messages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sluicegate.errors import Malformed
from sluicegate.transports.audio_in import AudioLimits, AudioMeter
from sluicegate.transports.live_session import NAME, LiveSession, LiveSocketOptions
from sluicegate.transports.socket import SERVICE_RESTART, Socket
from sluicegate.transports.socket_requests import SocketContext, SocketRequests
from sluicegate.wire.live_frames import SUBPROTOCOL
from sluicegate.wire.requests import is_valid_id

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from sluicegate.engine.engine import Engine
    from sluicegate.transports.socket import Caller, SocketLimits
    from sluicegate.wire.requests import RequestLimits


class LiveTransport:
    """The endpoint, and the sockets that are open."""

    def __init__(
        self,
        *,
        socket: SocketLimits,
        audio: AudioLimits,
        limits: RequestLimits,
        own_files: str,
        max_requests: int,
    ) -> None:
        """Take the limits of a socket, of audio, and of what is read of a request.

        ``own_files`` is what the URLs of a chat's files begin with, ``{id}`` standing for the
        chat; ``max_requests`` may be open on one socket.
        """
        self._socket = socket
        self._audio = audio
        self._limits = limits
        self._own_files = own_files
        self._max_requests = max_requests
        self._open: dict[Socket, LiveSession] = {}
        # A turn that is being prepared is not given up with its socket.
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, websocket: WebSocket, engine: Engine, caller: Caller) -> None:
        """Accept a socket and have its chat open live until it ends.

        Raises:
            Malformed: the address does not say which chat; the socket is not accepted.
        """
        wish = _wish(websocket)
        socket = Socket(websocket, caller, self._socket)
        meter = AudioMeter(self._audio, now=asyncio.get_running_loop().time())
        session = LiveSession(engine, wish, meter)
        opened = SocketContext(socket, session, caller, self._limits, self._own_files, NAME)
        session.bind(opened, SocketRequests(opened, self._max_requests, self._tasks))
        self._open[socket] = session
        try:
            await socket.run(
                session.take,
                is_busy=lambda: bool(opened.requests),
                on_accept=session.begin,
                subprotocol=SUBPROTOCOL if wish.with_audio else None,
                on_binary=session.take_audio if wish.with_audio else None,
            )
        finally:
            del self._open[socket]
            await asyncio.shield(session.leave())
        await socket.send_close()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return bool(self._tasks)

    def go_away(self) -> None:
        """Tell every client to connect anew soon; what waits goes on waiting."""
        for session in self._open.values():
            session.go_away()

    def abort(self) -> None:
        """Close every socket; what waits in their chats goes on waiting."""
        for socket in self._open:
            socket.close(SERVICE_RESTART, "restart")


def _wish(websocket: WebSocket) -> LiveSocketOptions:
    chat, activity = (websocket.query_params.get(name) for name in ("chat", "activity"))
    if not is_valid_id(chat) or activity not in (None, "client"):
        raise Malformed("Open the socket as live?chat=ID, perhaps with &activity=client.")
    return LiveSocketOptions(
        chat, SUBPROTOCOL in websocket.scope["subprotocols"], activity == "client"
    )
