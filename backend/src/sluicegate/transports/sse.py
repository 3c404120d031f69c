"""One response of server-sent events, from its first comment to its terminator or its break."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import anyio
from sse_starlette import EventSourceResponse
from starlette.responses import Response

from sluicegate.transports.backpressure import Backlog, reset
from sluicegate.transports.http_requests import chat_id, client_of, read_json
from sluicegate.wire.requests import parse_chat_request
from sluicegate.wire.sse import DONE, HEADERS, frames

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from sluicegate.engine.engine import Engine
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.transports.backpressure import Patience
    from sluicegate.transports.http_requests import BodyLimits
    from sluicegate.wire.requests import RequestLimits

_OPENED: Final = b": stream-open\n\n"
SILENT: Final = b": keep-alive\n\n"
"""What is said so that no proxy takes a stream for dead."""


class OpenStreams:
    """The streams that are open; they are cut when the server that they are in is told to end.

    Servers that know nothing of this application wait for its streams; sse-starlette notices the
    signal, and one task waits for that on behalf of all.
    """

    def __init__(self) -> None:
        """None is open."""
        self._streams: set[EventStream] = set()
        self._watching: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._streams)

    def add(self, stream: EventStream) -> None:
        """Take a stream that opens."""
        self._streams.add(stream)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())

    def discard(self, stream: EventStream) -> None:
        """Forget a stream that has ended."""
        self._streams.discard(stream)
        if not self._streams and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    def cut(self) -> None:
        """Break every connection; their clients resume, the turns are not touched."""
        for stream in self._streams:
            stream.cut()

    async def _watch(self) -> None:
        await EventSourceResponse._listen_for_exit_signal()
        self.cut()


class EventStream(EventSourceResponse):
    """One response that leaves its reader, however it ends.

    What is ready together leaves in one write.
    """

    def __init__(
        self,
        reader: TurnReader,
        *,
        open_streams: OpenStreams,
        keep_alive: float,
        patience: Patience,
    ) -> None:
        """Take the reader, and where to stand while the response is open.

        ``keep_alive`` are the seconds of silence that a comment ends.
        """
        self._reader = reader
        self._open_streams = open_streams
        self._streaming: asyncio.Task[None] | None = None
        self._silence: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_cut = False
        self._scope: Scope | None = None
        self._backlog = Backlog(patience, behind=lambda: reader.behind, give_up=self._give_up)
        super().__init__(reader.texts(), headers=HEADERS, ping=keep_alive)
        # Hop by hop, and the server's own business.
        del self.headers["connection"]

    def cut(self) -> None:
        """Break the connection."""
        self._is_cut = True
        if self._streaming is not None:
            self._streaming.cancel()

    def _give_up(self) -> None:
        """Drop a client that takes nothing; what waits to be written goes with it."""
        self.cut()
        if self._scope is not None:
            reset(self._scope)

    async def _respond(self, receive: Receive, send: Send) -> None:
        """Stream until the end, the cut, or until the client leaves.

        sse-starlette has a task for each of five things that may end a response; an idle stream
        would hold twice the memory.
        """
        self._streaming = asyncio.create_task(self._stream_response(send))
        leaving = asyncio.create_task(self._listen_for_disconnect(receive))
        if self._is_cut:
            self._streaming.cancel()
        self._watch_silence(send)
        try:
            await asyncio.wait([self._streaming, leaving], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.active = False
            tasks = [task for task in (self._streaming, leaving, self._silence) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            if self._timer is not None:
                self._timer.cancel()
        if self._is_cut and self._streaming.cancelled():
            # Clients take a clean end for a finished answer; only a broken one makes them resume.
            raise ConnectionAbortedError("The stream was cut before its end.")
        for task in tasks:
            if not task.cancelled():
                task.result()

    async def _stream_response(self, send: Send) -> None:
        """Send the response; sse-starlette's own loop arms a timer for each write."""
        status = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(status)
        await send({"type": "http.response.body", "body": _OPENED, "more_body": True})
        backlog = self._backlog
        async for texts in self._reader.texts():
            if texts:
                body = frames(texts)
                backlog.begin()
                await send({"type": "http.response.body", "body": body, "more_body": True})
                backlog.end()
        async with self._send_lock:
            self.active = False
            await send({"type": "http.response.body", "body": DONE, "more_body": False})

    def _watch_silence(self, send: Send) -> None:
        """End each silence with a comment; sse-starlette's own come whatever else is said."""
        if not self.active:
            return
        left = self._silent_for
        if left > 0:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(left, self._watch_silence, send)
        else:
            self._silence = asyncio.create_task(self._end_silence(send))

    async def _end_silence(self, send: Send) -> None:
        async with self._send_lock:
            # Something may have been said since the timer.
            if self.active and self._silent_for <= 0:
                self._backlog.wrote_at = asyncio.get_running_loop().time()
                await send({"type": "http.response.body", "body": SILENT, "more_body": True})
        self._watch_silence(send)

    @property
    def _silent_for(self) -> float:
        """Seconds for which nothing needs to be said yet."""
        return self._backlog.wrote_at + self.ping_interval - asyncio.get_running_loop().time()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and leave the reader."""
        self._open_streams.add(self)
        self._scope = scope
        try:
            await self._respond(receive, send)
        finally:
            self._open_streams.discard(self)
            self._backlog.close()
            # A client that leaves cancels this task; the reader is told all the same.
            with anyio.CancelScope(shield=True):
                await self._reader.aclose()


NAME: Final = "sse"
"""What the transport is called in the audit trail."""


class ChatOverSse:
    """The endpoints that send, resume and stop a turn, and the streams that are open.

    Every endpoint takes the request, the engine and the user who was authenticated, and raises
    a RequestError before anything has changed.
    """

    def __init__(
        self,
        *,
        body: BodyLimits,
        limits: RequestLimits,
        own_files: str,
        keep_alive: float,
        patience: Patience,
    ) -> None:
        """Take the limits of a body, of what is read of it, and of a client that does not read.

        ``own_files`` is what the URLs of a chat's files begin with, ``{id}`` standing for the
        chat; ``keep_alive`` the seconds between two comments.
        """
        self._body = body
        self._limits = limits
        self._own_files = own_files
        self._keep_alive = keep_alive
        self._patience = patience
        self._open = OpenStreams()

    async def send(self, request: Request, engine: Engine, user: str) -> Response:
        """``POST /chat``: start or join a turn and stream it."""
        client = client_of(request.headers, via=NAME)
        body = await read_json(request, self._body)
        chat_request = parse_chat_request(body, self._limits, own_files=self._own_files)
        return self._stream(await engine.start(chat_request, user=user, client=client))

    async def resume(self, request: Request, engine: Engine, user: str) -> Response:
        """``GET /chat/{id}/stream``: stream the running message from its beginning, or 204."""
        client = client_of(request.headers, via=NAME)
        reader = await engine.resume(chat_id(request), user=user, client=client)
        return Response(status_code=204) if reader is None else self._stream(reader)

    async def stop(self, request: Request, engine: Engine, user: str) -> Response:
        """``POST /chat/{id}/stop``: stop the running turn for real."""
        await engine.stop(chat_id(request), user=user)
        return Response(status_code=204)

    @property
    def is_busy(self) -> bool:
        """Whether a stream is open."""
        return bool(self._open)

    def go_away(self) -> None:
        """Do nothing: a stream has no words for it but its end."""

    def cut(self) -> None:
        """Break every open connection; their clients resume, the turns are not touched."""
        self._open.cut()

    def _stream(self, reader: TurnReader) -> Response:
        return EventStream(
            reader,
            open_streams=self._open,
            keep_alive=self._keep_alive,
            patience=self._patience,
        )
