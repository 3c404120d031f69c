"""The requests of one socket, each a task that ends with ``end``, ``error`` or ``no-active``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from sluicegate.engine.describe_exceptions import describe, internal_error_sentence
from sluicegate.errors import (
    Malformed,
    RequestError,
    TooManyRequests,
    as_request_error,
    new_error_id,
)
from sluicegate.transports.client_headers import client_from_headers
from sluicegate.transports.socket_connection import UNAUTHENTICATED
from sluicegate.wire.frames import (
    AbortFrame,
    ChunkFrameEncoder,
    EndFrame,
    ErrorFrame,
    InvalidFrame,
    NoActiveFrame,
    ResumeFrame,
    StartFrame,
    encode_frame,
)
from sluicegate.wire.requests import parse_chat_request

if TYPE_CHECKING:
    from sluicegate.engine.client_request_options import RequestingClient
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.transports.large_request_queue import LargeRequests
    from sluicegate.transports.socket_connection import Caller, Socket
    from sluicegate.wire.frames import ClientFrame, SendFrame, ServerFrame
    from sluicegate.wire.limits import RequestLimits
    from sluicegate.wire.requests import ChatRequest

_log: Final = logging.getLogger("sluicegate")


class Turns(Protocol):
    """Starts and resumes the turns that answer the requests of a socket."""

    async def start(
        self, request: ChatRequest, *, user: str, client: RequestingClient
    ) -> TurnReader:
        """Start or continue an exchange; raises RequestError."""

    async def resume(
        self, frame: ResumeFrame, *, user: str, client: RequestingClient
    ) -> TurnReader | None:
        """Return a reader of the running turn from its beginning, None if no turn runs."""


@dataclass(frozen=True, eq=False)
class SocketContext:
    """An accepted socket with its user and its open requests by ``requestId``.

    ``large`` parses large requests. ``own_files`` is the prefix of the URLs of a chat's files,
    ``via`` the name of the transport in the audit trail.
    """

    socket: Socket
    turns: Turns
    caller: Caller
    limits: RequestLimits
    large: LargeRequests
    own_files: str
    via: str
    requests: dict[str, SocketRequest] = field(default_factory=dict)


class SocketRequest:
    """One request: starts or resumes a turn and sends its chunks."""

    def __init__(self, context: SocketContext, frame: SendFrame | ResumeFrame) -> None:
        self._context = context
        self._frame: SendFrame | ResumeFrame | None = frame
        self._id = frame.request_id
        self._resumes = isinstance(frame, ResumeFrame)
        self._is_authenticated = self._is_disconnected = self._is_aborted = False
        self._reading: asyncio.Task[None] | None = None

    def disconnect(self, *, aborted: bool = False) -> None:
        """Stop reading the turn, which continues; a turn that is being started is still started.

        ``aborted`` marks a request that the client has aborted, rather than a closed socket.
        """
        self._is_disconnected, self._is_aborted = True, aborted
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()

    async def run(self) -> None:
        """Answer the request; nothing is sent after `disconnect`."""
        try:
            last = await self._answer()
        except Exception as error:  # noqa: BLE001 - the other requests of the socket continue
            last = self._error_frame(error)
        socket = self._context.socket
        if not self._is_disconnected:
            del self._context.requests[self._id]
            if self._is_authenticated:
                socket.mark_active()
            await socket.send(encode_frame(last))
        if self._context.caller.is_revoked:
            socket.close(UNAUTHENTICATED, "unauthenticated")

    async def _answer(self) -> ServerFrame:
        reader = await self._open_reader()
        if reader is None:
            return NoActiveFrame(self._id)
        try:
            if not self._is_disconnected:
                self._reading = asyncio.current_task()
                await self._send_chunks(reader)
        finally:
            self._reading = None
            await reader.aclose(aborted=self._is_aborted)
        return EndFrame(self._id)

    async def _open_reader(self) -> TurnReader | None:
        # The frame may be large; it is released as soon as the engine has its content.
        frame, self._frame = self._frame, None
        if frame is None:
            raise RuntimeError("a request is run once")
        context = self._context
        user = await context.caller.authenticate(frame.headers)
        self._is_authenticated = True
        context.socket.mark_active()
        client = client_from_headers(frame.headers, via=context.via, default_major="7")
        if isinstance(frame, ResumeFrame):
            return await context.turns.resume(frame, user=user, client=client)
        # The parser gets the only reference, so that no body is held beside the files in it.
        unread, size = [frame.body], frame.size
        del frame
        request = await context.large.run(
            size,
            lambda: parse_chat_request(unread.pop(), context.limits, own_files=context.own_files),
        )
        return await context.turns.start(request, user=user, client=client)

    async def _send_chunks(self, reader: TurnReader) -> None:
        socket = self._context.socket
        if self._resumes:
            await socket.send(encode_frame(StartFrame(self._id)))
        frames = ChunkFrameEncoder(self._id)
        writes = socket.monitor_writes(lambda: reader.backlog)
        try:
            async for texts in reader.texts():
                writes.started()
                await socket.send_all(map(frames.encode, texts))
                writes.finished()
        finally:
            writes.close()

    def _error_frame(self, error: Exception) -> ErrorFrame:
        refused = as_request_error(error)
        if refused is not None:
            if refused is not error:
                _log.warning("request refused, a store is unavailable: %s", describe(error))
            _log_refusal(refused, self._context.via)
            return ErrorFrame(self._id, refused.message, refused.code)
        error_id = new_error_id()
        _log.error("request on a socket failed: error=%s %s", error_id, describe(error))
        return ErrorFrame(self._id, internal_error_sentence(error_id), "internal")


class SocketRequests:
    """Dispatches the frames of one socket, for any number of chats.

    Args:
        context: The socket.
        max_requests: How many requests may run at once.
        tasks: Receives the task of each request, which may outlive the socket.
    """

    def __init__(
        self, context: SocketContext, max_requests: int, tasks: set[asyncio.Task[None]]
    ) -> None:
        self._context = context
        self._max_requests = max_requests
        self._all_tasks = tasks
        self._tasks: set[asyncio.Task[None]] = set()

    async def dispatch(self, frame: ClientFrame) -> None:
        """Start or abort a request, or reject the frame."""
        if isinstance(frame, AbortFrame):
            self._disconnect(frame.request_id, aborted=True)
        elif isinstance(frame, InvalidFrame):
            await self._reject_invalid(frame)
        elif (error := self._conflict(frame.request_id)) is not None:
            await self.reject(frame.request_id, error)
        else:
            self._start(frame)

    async def reject(self, request_id: str, error: RequestError) -> None:
        """Answer a frame with an error, which ends the request of that id for the client."""
        self._disconnect(request_id, aborted=False)
        _log_refusal(error, self._context.via)
        await self._context.socket.send(
            encode_frame(ErrorFrame(request_id, error.message, error.code))
        )

    async def wait_until_idle(self, within: float | None = None) -> None:
        """Wait until no request is open, at most for this many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while self._context.requests:
                    await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)

    def disconnect(self) -> None:
        """Disconnect every request; their turns continue."""
        for request in self._context.requests.values():
            request.disconnect()

    def _conflict(self, request_id: str) -> RequestError | None:
        if request_id in self._context.requests:
            return Malformed("A request with this requestId is open; choose another one.")
        if sum(map(_is_busy, self._tasks)) >= self._max_requests:
            return TooManyRequests("Too many requests are open here; wait for one to end.")
        return None

    def _start(self, frame: SendFrame | ResumeFrame) -> None:
        request = SocketRequest(self._context, frame)
        self._context.requests[frame.request_id] = request
        task = asyncio.create_task(request.run())
        for tasks in (self._tasks, self._all_tasks):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    def _disconnect(self, request_id: str, *, aborted: bool) -> None:
        request = self._context.requests.pop(request_id, None)
        if request is not None:
            request.disconnect(aborted=aborted)

    async def _reject_invalid(self, frame: InvalidFrame) -> None:
        if frame.request_id is None:
            self._context.socket.close(frame.close_code, frame.error.code)
        else:
            await self.reject(frame.request_id, frame.error)


def _is_busy(task: asyncio.Task[None]) -> bool:
    """Whether a request runs, including one that was aborted while its turn was started."""
    return not task.done() and not task.cancelling()


def _log_refusal(error: RequestError, via: str) -> None:
    # The sockets bound how many frames a client may send, and so these lines.
    _log.warning("request refused code=%s via=%s %s", error.code, via, error.message)
