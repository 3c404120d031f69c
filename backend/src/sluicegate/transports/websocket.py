"""The chat over a socket, by the protocol of ``WebSocketChatTransport``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sluicegate.errors import Malformed, RequestError, TooManyRequests
from sluicegate.transports.incoming import PARSED_ASIDE
from sluicegate.transports.open_request import Opened, OpenRequest
from sluicegate.transports.socket import RESTART, Socket
from sluicegate.wire.frames import (
    AbortFrame,
    BadFrame,
    ErrorFrame,
    ResumeFrame,
    SendFrame,
    parse_frame,
    text_of,
)

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.transports.socket import Caller, SocketLimits
    from sluicegate.wire.limits import RequestLimits


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

    async def serve(self, websocket: WebSocket, engine: ChatEngine, caller: Caller) -> None:
        """Accept a socket and answer its frames until it ends; its turns go on."""
        socket = Socket(websocket, caller, self._socket)
        opened = Opened(socket, engine, caller, self._limits, self._own_files)
        chats = _Chats(opened, self._max_requests, self._tasks)
        self._open.add(socket)
        try:
            await socket.run(chats.take, is_busy=lambda: bool(opened.requests))
        finally:
            self._open.discard(socket)
            for request in opened.requests.values():
                request.leave()
        await socket.close()

    def cut(self) -> None:
        """Close every socket; their clients resume, the turns are not touched."""
        for socket in self._open:
            socket.end(RESTART, "restart")


class _Chats:
    """Takes the frames of one socket, any number of chats; each request is a task of its own."""

    def __init__(self, opened: Opened, max_requests: int, tasks: set[asyncio.Task[None]]) -> None:
        self._opened = opened
        self._max_requests = max_requests
        self._all_tasks = tasks
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, data: bytes) -> None:
        aside = len(data) >= PARSED_ASIDE
        frame = await asyncio.to_thread(parse_frame, data) if aside else parse_frame(data)
        if isinstance(frame, AbortFrame):
            self._leave(frame.request_id, aborted=True)
        elif isinstance(frame, BadFrame):
            await self._reject(frame)
        elif (error := self._conflict(frame.request_id)) is not None:
            await self._refuse(frame.request_id, error)
        else:
            self._open(frame)

    def _conflict(self, request_id: str) -> RequestError | None:
        if request_id in self._opened.requests:
            return Malformed("A request with this requestId is open; choose another one.")
        if sum(map(_is_busy, self._tasks)) >= self._max_requests:
            return TooManyRequests("Too many requests are open here; wait for one to end.")
        return None

    def _open(self, frame: SendFrame | ResumeFrame) -> None:
        request = OpenRequest(self._opened, frame)
        self._opened.requests[frame.request_id] = request
        request.task = task = asyncio.create_task(request.run())
        for tasks in (self._tasks, self._all_tasks):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    def _leave(self, request_id: str, *, aborted: bool) -> None:
        request = self._opened.requests.pop(request_id, None)
        if request is not None:
            request.leave(aborted=aborted)

    async def _reject(self, frame: BadFrame) -> None:
        if frame.request_id is None:
            self._opened.socket.end(frame.close_code, frame.error.code)
        else:
            await self._refuse(frame.request_id, frame.error)

    async def _refuse(self, request_id: str, error: RequestError) -> None:
        # For the client an error ends the request of that id, so one that is open ends here too.
        self._leave(request_id, aborted=False)
        await self._opened.socket.send(text_of(ErrorFrame(request_id, error.message, error.code)))


def _is_busy(task: asyncio.Task[None]) -> bool:
    """Whether a request is at work, also one that was left while it was prepared."""
    return not task.done() and not task.cancelling()
