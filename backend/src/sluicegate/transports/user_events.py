"""The SSE stream of what changes for a user, one per connection (``GET /events``)."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse

from sluicegate.errors import Malformed, RequestError, StoreError
from sluicegate.transports.call_at_session_end import end_with_session
from sluicegate.transports.open_streams import KEEP_ALIVE, OpenStreams, disconnected
from sluicegate.transports.slow_clients import WriteLimits, WriteMonitor, abort_connection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from sluicegate.engine.interface import Engine
    from sluicegate.stores.streams.user_events import StoredEvent, UserEventReader

MAX_HEARTBEAT: Final = 10.0
"""Seconds of silence, at most: clients take a connection for dead after 20."""

MAX_CURSOR: Final = 64
"""Characters of the id of an event."""

RETRY: Final = b"retry: 1000\n\n"
"""Milliseconds after which a client connects again."""

_HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
_LAST_WRITE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class EventStreamLimits:
    """Intervals in seconds of a stream of events.

    ``heartbeat``: after so much silence a comment is sent. ``recheck``: the user is authenticated
    again. ``patience``: a client that blocks a write for so long is dropped, whatever its backlog:
    the events are few, and a client that comes back resumes.
    """

    heartbeat: float
    recheck: float
    patience: float


class UserEventsTransport:
    """The endpoint of a user's events, and the open streams.

    Args:
        limits: The intervals of each stream.
        authenticate: Returns the user of a request; raises RequestError if there is none.
    """

    def __init__(
        self, *, limits: EventStreamLimits, authenticate: Callable[[Request], Awaitable[str]]
    ) -> None:
        self._limits = limits
        self._authenticate = authenticate
        self._open = OpenStreams()

    async def stream(self, request: Request, engine: Engine, user: str) -> Response:
        """``GET /events``: stream what changes for the user, after an event if one is named."""
        after = request.headers.get("last-event-id") or request.query_params.get("after")
        if after is not None and len(after) > MAX_CURSOR:
            raise Malformed(f"The id of an event has at most {MAX_CURSOR} characters.")

        reader = await engine.read_events(after or None, user=user)

        async def is_still_user() -> bool:
            try:
                is_same = await self._authenticate(request) == user
                await reader.check_roles()
            except (RequestError, StoreError):
                # The client comes back, and is refused if it cannot be served.
                return False
            return is_same

        return UserEventStream(reader, self._open, self._limits, is_still_user)

    @property
    def is_busy(self) -> bool:
        """Whether a response is being sent; false, since `go_away` ends all."""
        return False

    def go_away(self) -> None:
        """End every stream; clients resume at another replica or after the restart."""
        self._open.abort()

    def close_idle(self) -> None:
        """End the streams of requests that had begun before `go_away`."""
        self._open.abort()

    def abort(self) -> None:
        """End every stream."""
        self._open.abort()


class UserEventStream(StreamingResponse):
    """The response of one connection; it closes its reader however it ends.

    Args:
        reader: The reader of the user's events.
        open_streams: The set to which the stream belongs while it is open.
        limits: The intervals of the stream.
        is_still_user: Returns whether the credentials of the connection are still valid.
    """

    def __init__(
        self,
        reader: UserEventReader,
        open_streams: OpenStreams,
        limits: EventStreamLimits,
        is_still_user: Callable[[], Awaitable[bool]],
    ) -> None:
        super().__init__((), headers=_HEADERS)
        self._reader = reader
        self._open_streams = open_streams
        self._limits = limits
        self._is_still_user = is_still_user
        self._streaming: asyncio.Task[None] | None = None
        self._is_leaving = False

    def abort(self) -> None:
        """End the response, with the time after which the client connects again."""
        self._is_leaving = True
        if self._streaming is not None:
            self._streaming.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until the client disconnects or is no longer the user."""
        writes = WriteMonitor(
            WriteLimits(backlog=0, timeout=self._limits.patience),
            backlog=lambda: 1,
            abort=lambda: abort_connection(scope),
        )

        async def write(body: bytes) -> None:
            writes.started()
            await send({"type": "http.response.body", "body": body, "more_body": True})
            writes.finished()

        self._open_streams.add(self)
        end_with_session(scope, self.abort)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._run(receive, write)
            if self._is_leaving or self._has_ended:
                # The client may not read; nothing waits for it.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LAST_WRITE_SECONDS):
                        last = {"type": "http.response.body", "body": RETRY, "more_body": False}
                        await send(last)
        finally:
            self._open_streams.discard(self)
            writes.close()
            self._reader.close()

    async def _run(self, receive: Receive, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._streaming = asyncio.create_task(self._send_events(write))
        disconnecting = asyncio.create_task(disconnected(receive))
        if self._is_leaving:
            self._streaming.cancel()
        tasks = [self._streaming, disconnecting]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()

    @property
    def _has_ended(self) -> bool:
        """Whether the stream has ended by itself."""
        return self._streaming is not None and not self._streaming.cancelled()

    async def _send_events(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        """Send events and comments until the connection has no user any more."""
        loop = asyncio.get_running_loop()
        await write(RETRY)
        recheck_at = loop.time() + self._limits.recheck
        while True:
            heartbeat_at = loop.time() + self._limits.heartbeat
            events: Sequence[StoredEvent] = ()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(heartbeat_at, recheck_at)):
                    events = await self._reader.read()
            if loop.time() >= recheck_at:
                if not await self._is_still_user():
                    return
                recheck_at = loop.time() + self._limits.recheck
            await write(_framed(events) or KEEP_ALIVE)


def _framed(events: Sequence[StoredEvent]) -> bytes:
    return "".join(f"id: {event.cursor}\ndata: {event.data}\n\n" for event in events).encode()
