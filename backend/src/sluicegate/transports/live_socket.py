"""The transport of live chats: a WebSocket with the frames of a chat, and audio in binary."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sluicegate.errors import Malformed
from sluicegate.transports.audio_limits import AudioLimits, AudioMeter
from sluicegate.transports.live_session import NAME, LiveSession, LiveSocketOptions, LiveTurns
from sluicegate.transports.socket_connection import SERVICE_RESTART, Socket
from sluicegate.transports.socket_request_tasks import SocketContext, SocketRequests
from sluicegate.wire.ids import is_valid_id
from sluicegate.wire.live_frames import SUBPROTOCOL

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from sluicegate.engine.interface import Engine
    from sluicegate.transports.large_request_queue import LargeRequests
    from sluicegate.transports.socket_connection import Caller, SocketLimits
    from sluicegate.wire.limits import RequestLimits


class LiveTransport:
    """The endpoint and its open sockets.

    Args:
        socket: The limits of one socket.
        audio: The limits of the client's audio.
        limits: The limits of one request.
        large: Parses frames.
        own_files: The prefix of the URLs of a chat's files, with ``{id}`` for the chat.
        max_requests: How many requests may be open on one socket.
    """

    def __init__(
        self,
        *,
        socket: SocketLimits,
        audio: AudioLimits,
        limits: RequestLimits,
        large: LargeRequests,
        own_files: str,
        max_requests: int,
    ) -> None:
        self._socket = socket
        self._audio = audio
        self._limits = limits
        self._large = large
        self._own_files = own_files
        self._max_requests = max_requests
        self._open: dict[Socket, LiveSession] = {}
        # A turn that is being started outlives its socket.
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, websocket: WebSocket, engine: Engine, caller: Caller) -> None:
        """Accept a socket and keep its chat open until the socket is closed.

        Raises:
            Malformed: the query does not name a chat; the socket is not accepted.
        """
        options = _options(websocket)
        turns = LiveTurns()
        socket = Socket(websocket, caller, self._socket)
        context = SocketContext(
            socket, turns, caller, self._limits, self._large, self._own_files, NAME
        )
        session = LiveSession(
            engine,
            options,
            meter=AudioMeter(self._audio, now=asyncio.get_running_loop().time()),
            context=context,
            requests=SocketRequests(context, self._max_requests, self._tasks),
            turns=turns,
        )
        self._open[socket] = session
        try:
            await socket.run(
                session.receive,
                is_busy=lambda: bool(context.requests) or session.is_opening,
                on_accept=session.begin,
                subprotocol=SUBPROTOCOL if options.with_audio else None,
                on_binary=session.receive_audio if options.with_audio else None,
            )
        finally:
            del self._open[socket]
            await asyncio.shield(session.disconnect())
        await socket.send_close()

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return bool(self._tasks)

    def go_away(self) -> None:
        """Announce the end of every socket; calls that wait keep waiting."""
        for session in self._open.values():
            session.go_away()

    def close_idle(self) -> None:
        """Do nothing: after `go_away` clients reconnect when their user pauses."""

    def abort(self) -> None:
        """Close every socket; calls that wait in their chats keep waiting."""
        for socket in self._open:
            socket.close(SERVICE_RESTART, "restart")


def _options(websocket: WebSocket) -> LiveSocketOptions:
    chat, activity = (websocket.query_params.get(name) for name in ("chat", "activity"))
    if not is_valid_id(chat) or activity not in (None, "client"):
        raise Malformed("Open the socket as live?chat=ID, perhaps with &activity=client.")
    return LiveSocketOptions(
        chat, SUBPROTOCOL in websocket.scope["subprotocols"], activity == "client"
    )
