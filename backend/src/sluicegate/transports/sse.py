"""The chat over server-sent events: the transport of ``DefaultChatTransport``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import anyio
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from sluicegate.transports.incoming import chat_id, client_of, read_json
from sluicegate.wire.requests import parse_chat_request
from sluicegate.wire.sse import DONE, HEADERS, frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.engine.turn_reader import TurnReader
    from sluicegate.transports.incoming import BodyLimits
    from sluicegate.wire.limits import RequestLimits

NAME: Final = "sse"
"""What the transport is called in the audit trail."""

_OPENED: Final = b": stream-open\n\n"


class ChatOverSse:
    """The endpoints that send, resume and stop a turn, and the streams that are open.

    Every endpoint takes the request, the engine and the user who was authenticated, and raises
    a RequestError before anything has changed.
    """

    def __init__(
        self, *, body: BodyLimits, limits: RequestLimits, own_files: str, keep_alive: float
    ) -> None:
        """Take the limits of a body and of what is read of it.

        ``own_files`` is what the URLs of a chat's files begin with, ``{id}`` standing for the
        chat; ``keep_alive`` the seconds between two comments.
        """
        self._body = body
        self._limits = limits
        self._own_files = own_files
        self._keep_alive = keep_alive
        self._open: set[_Stream] = set()

    async def send(self, request: Request, engine: ChatEngine, user: str) -> Response:
        """``POST /chat``: start or join a turn and stream it."""
        client = client_of(request.headers, via=NAME)
        body = await read_json(request, self._body)
        chat_request = parse_chat_request(body, self._limits, own_files=self._own_files)
        return self._stream(await engine.start(chat_request, user=user, client=client))

    async def resume(self, request: Request, engine: ChatEngine, user: str) -> Response:
        """``GET /chat/{id}/stream``: stream the running message from its beginning, or 204."""
        client = client_of(request.headers, via=NAME)
        reader = await engine.resume(chat_id(request), user=user, client=client)
        return Response(status_code=204) if reader is None else self._stream(reader)

    async def stop(self, request: Request, engine: ChatEngine, user: str) -> Response:
        """``POST /chat/{id}/stop``: stop the running turn for real."""
        await engine.stop(chat_id(request), user=user)
        return Response(status_code=204)

    def cut(self) -> None:
        """Break every open connection; their clients resume, the turns are not touched."""
        for stream in self._open:
            stream.cut()

    def _stream(self, reader: TurnReader) -> Response:
        return _Stream(reader, open_streams=self._open, keep_alive=self._keep_alive)


class _Stream(EventSourceResponse):
    """One response that leaves its reader, however it ends."""

    def __init__(
        self, reader: TurnReader, *, open_streams: set[_Stream], keep_alive: float
    ) -> None:
        self._reader = reader
        self._open_streams = open_streams
        self._cut = asyncio.Event()
        super().__init__(
            _frames(reader),
            headers=HEADERS,
            ping=keep_alive,
            ping_message_factory=lambda: ServerSentEvent(comment="keep-alive", sep="\n"),
            data_sender_callable=self._until_cut,
        )
        # Hop by hop, and the server's own business.
        del self.headers["connection"]

    def cut(self) -> None:
        self._cut.set()

    async def _until_cut(self) -> None:
        await self._cut.wait()
        # Clients take a clean end for a finished answer; only a broken one makes them resume.
        raise ConnectionAbortedError("The stream was cut because the server closes.")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._open_streams.add(self)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open_streams.discard(self)
            # A client that leaves cancels this task; the reader is told all the same.
            with anyio.CancelScope(shield=True):
                await self._reader.aclose()


async def _frames(reader: TurnReader) -> AsyncIterator[bytes]:
    yield _OPENED
    async for chunk in reader:
        yield frame(chunk)
    yield DONE
