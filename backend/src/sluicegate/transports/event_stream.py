"""One response of server-sent events, from its first comment to its terminator or its break."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import anyio
from sse_starlette import EventSourceResponse

from sluicegate.transports.backlog import Backlog, reset
from sluicegate.wire.sse import DONE, HEADERS, frames

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from sluicegate.engine.running.turn_reader import TurnReader
    from sluicegate.transports.backlog import Patience

_OPENED: Final = b": stream-open\n\n"
SILENT: Final = b": keep-alive\n\n"
"""What is said so that no proxy takes a stream for dead."""


class EventStream(EventSourceResponse):
    """One response that leaves its reader, however it ends.

    What is ready together leaves in one write.
    """

    def __init__(
        self,
        reader: TurnReader,
        *,
        open_streams: set[EventStream],
        keep_alive: float,
        patience: Patience,
    ) -> None:
        """Take the reader, and where to stand while the response is open.

        ``keep_alive`` are the seconds of silence that a comment ends.
        """
        self._reader = reader
        self._open_streams = open_streams
        self._cut = asyncio.Event()
        self._scope: Scope | None = None
        self._backlog = Backlog(patience, behind=lambda: reader.behind, give_up=self._give_up)
        super().__init__(
            reader.texts(),
            headers=HEADERS,
            ping=keep_alive,
            data_sender_callable=self._until_cut,
        )
        # Hop by hop, and the server's own business.
        del self.headers["connection"]

    def cut(self) -> None:
        """Break the connection."""
        self._cut.set()

    def _give_up(self) -> None:
        """Drop a client that takes nothing; what waits to be written goes with it."""
        self.cut()
        if self._scope is not None:
            reset(self._scope)

    async def _until_cut(self) -> None:
        await self._cut.wait()
        # Clients take a clean end for a finished answer; only a broken one makes them resume.
        raise ConnectionAbortedError("The stream was cut before its end.")

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

    async def _ping(self, send: Send) -> None:
        """End each silence with a comment; sse-starlette's own come whatever else is said."""
        time = asyncio.get_running_loop().time
        while self.active:
            left = self._backlog.wrote_at + self.ping_interval - time()
            if left > 0:
                await anyio.sleep(left)
                continue
            async with self._send_lock:
                if self.active:
                    self._backlog.wrote_at = time()
                    await send({"type": "http.response.body", "body": SILENT, "more_body": True})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and leave the reader."""
        self._open_streams.add(self)
        self._scope = scope
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open_streams.discard(self)
            self._backlog.close()
            # A client that leaves cancels this task; the reader is told all the same.
            with anyio.CancelScope(shield=True):
                await self._reader.aclose()
