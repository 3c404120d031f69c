"""The requests of one socket: which are open, which may be, how each is left."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from sluicegate.errors import Malformed, RequestError, TooManyRequests
from sluicegate.transports.open_request import Opened, OpenRequest
from sluicegate.wire.frames import AbortFrame, BadFrame, ErrorFrame, text_of

if TYPE_CHECKING:
    from sluicegate.wire.frames import FrameIn, ResumeFrame, SendFrame


class SocketRequests:
    """Takes the frames of one socket, any number of chats; each request is a task of its own."""

    def __init__(self, opened: Opened, max_requests: int, tasks: set[asyncio.Task[None]]) -> None:
        """Take a socket; ``tasks`` are kept until they are done, though the socket has ended."""
        self._opened = opened
        self._max_requests = max_requests
        self._all_tasks = tasks
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, frame: FrameIn) -> None:
        """Begin or leave a request, or say why not."""
        if isinstance(frame, AbortFrame):
            self._leave(frame.request_id, aborted=True)
        elif isinstance(frame, BadFrame):
            await self._reject(frame)
        elif (error := self._conflict(frame.request_id)) is not None:
            await self.refuse(frame.request_id, error)
        else:
            self._open(frame)

    async def refuse(self, request_id: str, error: RequestError) -> None:
        """Answer a frame with an error; for the client it ends the request of that id."""
        self._leave(request_id, aborted=False)
        await self._opened.socket.send(text_of(ErrorFrame(request_id, error.message, error.code)))

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

    async def _reject(self, frame: BadFrame) -> None:
        if frame.request_id is None:
            self._opened.socket.end(frame.close_code, frame.error.code)
        else:
            await self.refuse(frame.request_id, frame.error)


def _is_busy(task: asyncio.Task[None]) -> bool:
    """Whether a request is at work, also one that was left while it was prepared."""
    return not task.done() and not task.cancelling()
