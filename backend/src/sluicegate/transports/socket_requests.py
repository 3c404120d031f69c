"""One request of a socket, from its frame to its ``end``, ``error`` or ``no-active``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from sluicegate.engine.failures import describe, internal_error_sentence
from sluicegate.errors import Malformed, RequestError, TooManyRequests, new_error_id, refusal_of
from sluicegate.transports.http_requests import client_of
from sluicegate.transports.socket import SIGNED_OUT
from sluicegate.wire.frames import (
    AbortFrame,
    ChunkFrames,
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
    from sluicegate.engine.turn.reader import Client, TurnReader
    from sluicegate.transports.socket import Caller, Socket
    from sluicegate.wire.frames import ClientFrame, SendFrame, ServerFrame
    from sluicegate.wire.requests import ChatRequest, RequestLimits

_log: Final = logging.getLogger("sluicegate")


class Chats(Protocol):
    """Who answers the requests of a socket."""

    async def start(self, request: ChatRequest, *, user: str, client: Client) -> TurnReader:
        """Begin or continue an exchange; raises RequestError."""

    async def resume(self, frame: ResumeFrame, *, user: str, client: Client) -> TurnReader | None:
        """What the frame asks for from its beginning, or None when there is nothing."""


@dataclass(frozen=True, eq=False)
class Opened:
    """An open socket, who is behind it, and the requests that are open on it by their ids.

    ``via`` is what the transport is called in the audit trail.
    """

    socket: Socket
    chats: Chats
    caller: Caller
    limits: RequestLimits
    own_files: str
    via: str
    requests: dict[str, OpenRequest] = field(default_factory=dict)


class OpenRequest:
    """Asks the engine once and passes the chunks on."""

    def __init__(self, opened: Opened, frame: SendFrame | ResumeFrame) -> None:
        """Take a frame whose ``requestId`` is not open."""
        self.task: asyncio.Task[None] | None = None
        """What runs it."""
        self._opened = opened
        self._frame: SendFrame | ResumeFrame | None = frame
        self._id = frame.request_id
        self._resumes = isinstance(frame, ResumeFrame)
        self._is_known = self._left = self._aborted = self._is_reading = False

    def leave(self, *, aborted: bool = False) -> None:
        """Stop reading; what was asked of the engine happens all the same.

        ``aborted`` says that the client wants no more of it, rather than that it is gone.
        """
        self._left, self._aborted = True, aborted
        if self._is_reading and self.task is not None:
            self._is_reading = False
            self.task.cancel()

    async def run(self) -> None:
        """Answer the request; nothing is sent after it was left."""
        try:
            last = await self._answer()
        except Exception as error:  # noqa: BLE001 - the other requests of the socket go on
            last = self._failure(error)
        socket = self._opened.socket
        if not self._left:
            del self._opened.requests[self._id]
            if self._is_known:
                socket.was_used()
            await socket.send(encode_frame(last))
        if self._opened.caller.is_gone:
            socket.end(SIGNED_OUT, "unauthenticated")

    async def _answer(self) -> ServerFrame:
        reader = await self._reader()
        if reader is None:
            return NoActiveFrame(self._id)
        try:
            if not self._left:
                self._is_reading = True
                await self._pass_on(reader)
        finally:
            self._is_reading = False
            await reader.aclose(aborted=self._aborted)
        return EndFrame(self._id)

    async def _reader(self) -> TurnReader | None:
        # The frame may be large; once the engine has it, nobody needs it.
        frame, self._frame = self._frame, None
        if frame is None:
            raise RuntimeError("a request is run once")
        opened = self._opened
        user = await opened.caller.user(frame.headers)
        self._is_known = True
        opened.socket.was_used()
        client = client_of(frame.headers, via=opened.via, unsaid="7")
        if isinstance(frame, ResumeFrame):
            return await opened.chats.resume(frame, user=user, client=client)
        request = parse_chat_request(frame.body, opened.limits, own_files=opened.own_files)
        return await opened.chats.start(request, user=user, client=client)

    async def _pass_on(self, reader: TurnReader) -> None:
        socket = self._opened.socket
        if self._resumes:
            await socket.send(encode_frame(StartFrame(self._id)))
        frames = ChunkFrames(self._id)
        backlog = socket.watched(lambda: reader.behind)
        try:
            async for texts in reader.texts():
                backlog.begin()
                await socket.send_all(map(frames.encode, texts))
                backlog.end()
        finally:
            backlog.close()

    def _failure(self, error: Exception) -> ErrorFrame:
        refused = refusal_of(error)
        if refused is not None:
            if refused is not error:
                _log.warning("a request was refused, a store is away: %s", describe(error))
            return ErrorFrame(self._id, refused.message, refused.code)
        error_id = new_error_id()
        _log.error("a request of a socket failed: error=%s %s", error_id, describe(error))
        return ErrorFrame(self._id, internal_error_sentence(error_id), "internal")


class SocketRequests:
    """Takes the frames of one socket, any number of chats; each request is a task of its own."""

    def __init__(self, opened: Opened, max_requests: int, tasks: set[asyncio.Task[None]]) -> None:
        """Take a socket; ``tasks`` are kept until they are done, though the socket has ended."""
        self._opened = opened
        self._max_requests = max_requests
        self._all_tasks = tasks
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, frame: ClientFrame) -> None:
        """Begin or leave a request, or say why not."""
        if isinstance(frame, AbortFrame):
            self._leave(frame.request_id, aborted=True)
        elif isinstance(frame, InvalidFrame):
            await self._reject(frame)
        elif (error := self._conflict(frame.request_id)) is not None:
            await self.refuse(frame.request_id, error)
        else:
            self._open(frame)

    async def refuse(self, request_id: str, error: RequestError) -> None:
        """Answer a frame with an error; for the client it ends the request of that id."""
        self._leave(request_id, aborted=False)
        await self._opened.socket.send(
            encode_frame(ErrorFrame(request_id, error.message, error.code))
        )

    async def idle(self, within: float | None = None) -> None:
        """Wait until no request is open, or for so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while tasks := [each.task for each in self._opened.requests.values() if each.task]:
                    await asyncio.wait(tasks)

    def leave(self) -> None:
        """Leave every request; what was asked of the engine happens all the same."""
        for request in self._opened.requests.values():
            request.leave()

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

    async def _reject(self, frame: InvalidFrame) -> None:
        if frame.request_id is None:
            self._opened.socket.end(frame.close_code, frame.error.code)
        else:
            await self.refuse(frame.request_id, frame.error)


def _is_busy(task: asyncio.Task[None]) -> bool:
    """Whether a request is at work, also one that was left while it was prepared."""
    return not task.done() and not task.cancelling()
