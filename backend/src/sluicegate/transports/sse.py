"""The SSE transport: one response per turn, as a UI message stream of the AI SDK."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import anyio
from sse_starlette import EventSourceResponse
from starlette.responses import Response

from sluicegate.transports.call_at_session_end import end_with_session
from sluicegate.transports.client_headers import client_from_headers
from sluicegate.transports.http_requests import chat_id, read_chat_request
from sluicegate.transports.open_streams import KEEP_ALIVE, OpenStreams, disconnected
from sluicegate.transports.slow_clients import WriteMonitor, abort_connection
from sluicegate.wire.encoding import DONE, HEADERS, encode_events

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from sluicegate.engine.interface import Engine
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.transports.http_requests import BodyLimits
    from sluicegate.transports.slow_clients import WriteLimits
    from sluicegate.wire.limits import RequestLimits

NAME: Final = "sse"
"""The name of the transport in the audit trail."""


_OPENED: Final = b": stream-open\n\n"


class EventStream(EventSourceResponse):
    """The response of one turn; it closes its reader however it ends.

    The task group of sse-starlette is not used: with a task for each of four ways to end, and a
    cancel scope for each write, a delta costs three times as much and an idle stream holds twice
    the memory, and its pings are sent also between chunks. Texts that are ready together leave in
    one write.

    Args:
        reader: The reader of the turn.
        open_streams: The set to which the stream belongs while it is open.
        keep_alive: Seconds of silence after which a comment is sent.
        limits: When a client that does not read is dropped.
    """

    def __init__(
        self,
        reader: TurnReader,
        *,
        open_streams: OpenStreams,
        keep_alive: float,
        limits: WriteLimits,
    ) -> None:
        self._reader = reader
        self._open_streams = open_streams
        self._streaming: asyncio.Task[None] | None = None
        self._commenting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_aborted = False
        self._has_ended = False
        self._keep_alive = keep_alive
        self._scope: Scope | None = None
        self._writes = WriteMonitor(limits, backlog=lambda: reader.backlog, abort=self._drop_client)
        self._texts = reader.texts()
        super().__init__(self._texts, headers=HEADERS)
        # A hop-by-hop header, which the server sets.
        del self.headers["connection"]

    def abort(self) -> None:
        """Break the connection."""
        self._is_aborted = True
        if self._streaming is not None:
            self._streaming.cancel()

    def _drop_client(self) -> None:
        """Reset the connection of a client that does not read, and drop unsent output."""
        self.abort()
        if self._scope is not None:
            abort_connection(self._scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response and close the reader.

        Raises:
            ConnectionAbortedError: The stream was aborted.
        """
        self._open_streams.add(self)
        self._scope = scope
        end_with_session(scope, self.abort)
        try:
            await self._respond(receive, send)
        finally:
            self._open_streams.discard(self)
            self._writes.close()
            # A client that disconnects cancels this task; the reader is closed nevertheless.
            with anyio.CancelScope(shield=True):
                await self._reader.aclose()

    async def _respond(self, receive: Receive, send: Send) -> None:
        """Send until the turn ends, the stream is aborted, or the client disconnects."""
        self._streaming = asyncio.create_task(self._send_turn(send))
        disconnecting = asyncio.create_task(disconnected(receive))
        if self._is_aborted:
            self._streaming.cancel()
        self._schedule_comment(send)
        try:
            await asyncio.wait(
                [self._streaming, disconnecting], return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            self._has_ended = True
            if self._timer is not None:
                self._timer.cancel()
            tasks = [self._streaming, disconnecting]
            if self._commenting is not None:
                tasks.append(self._commenting)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if self._is_aborted and self._streaming.cancelled():
            # Clients take a clean end for a complete answer; only a broken one makes them resume.
            raise ConnectionAbortedError("The stream was aborted before its end.")
        for task in tasks:
            if not task.cancelled():
                task.result()

    async def _send_turn(self, send: Send) -> None:
        status = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(status)
        await send({"type": "http.response.body", "body": _OPENED, "more_body": True})
        writes = self._writes
        async for texts in self._texts:
            if texts:
                body = encode_events(texts)
                writes.started()
                await send({"type": "http.response.body", "body": body, "more_body": True})
                writes.finished()
        self._has_ended = True
        if self._commenting is not None:
            # Nothing may follow the end of the response.
            await asyncio.wait([self._commenting])
        await send({"type": "http.response.body", "body": DONE, "more_body": False})

    def _schedule_comment(self, send: Send) -> None:
        """Send a comment once the stream has been silent for long enough."""
        if self._has_ended:
            return
        left = self._silence_left
        if left > 0:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(left, self._schedule_comment, send)
        else:
            self._commenting = asyncio.create_task(self._send_comment(send))

    async def _send_comment(self, send: Send) -> None:
        # A chunk may have been sent since the timer.
        if not self._has_ended and self._silence_left <= 0:
            self._writes.last_write_at = asyncio.get_running_loop().time()
            await send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})
        self._schedule_comment(send)

    @property
    def _silence_left(self) -> float:
        """Seconds until a comment is due."""
        return self._writes.last_write_at + self._keep_alive - asyncio.get_running_loop().time()


class SseTransport:
    """The endpoints that start, resume and stop a turn, and the open streams.

    Every endpoint gets the request, the engine and the authenticated user, and raises a
    RequestError before anything has changed.

    Args:
        body: The limits of a body.
        limits: The limits of one request.
        own_files: The prefix of the URLs of a chat's files, with ``{id}`` for the chat.
        keep_alive: Seconds of silence after which a comment is sent.
        writes: When a client that does not read is dropped.
    """

    def __init__(
        self,
        *,
        body: BodyLimits,
        limits: RequestLimits,
        own_files: str,
        keep_alive: float,
        writes: WriteLimits,
    ) -> None:
        self._body = body
        self._limits = limits
        self._own_files = own_files
        self._keep_alive = keep_alive
        self._writes = writes
        self._open = OpenStreams()

    async def send(self, request: Request, engine: Engine, user: str) -> Response:
        """``POST /chat``: start or join a turn and stream it."""
        client = client_from_headers(request.headers, via=NAME)
        chat_request = await read_chat_request(
            request, self._body, self._limits, own_files=self._own_files, user=user
        )
        return self._stream(await engine.start(chat_request, user=user, client=client))

    async def resume(self, request: Request, engine: Engine, user: str) -> Response:
        """``GET /chat/{id}/stream``: stream the running message from its beginning, or 204."""
        client = client_from_headers(request.headers, via=NAME)
        reader = await engine.resume(chat_id(request), user=user, client=client)
        return Response(status_code=204) if reader is None else self._stream(reader)

    async def stop(self, request: Request, engine: Engine, user: str) -> Response:
        """``POST /chat/{id}/stop``: stop the running turn."""
        await engine.stop(chat_id(request), user=user)
        return Response(status_code=204)

    @property
    def is_busy(self) -> bool:
        """Whether a stream is open."""
        return bool(self._open)

    def go_away(self) -> None:
        """Do nothing: a stream announces a restart by its end alone."""

    def close_idle(self) -> None:
        """Do nothing: every stream is that of a turn."""

    def abort(self) -> None:
        """Abort every stream; clients resume, turns continue."""
        self._open.abort()

    def _stream(self, reader: TurnReader) -> Response:
        return EventStream(
            reader, open_streams=self._open, keep_alive=self._keep_alive, limits=self._writes
        )
