"""The open SSE responses of one transport, and when they end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from sse_starlette import EventSourceResponse

if TYPE_CHECKING:
    from starlette.types import Receive

KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment that keeps proxies from closing a silent stream."""


class AbortableResponse(Protocol):
    """A response that may be aborted."""

    def abort(self) -> None:
        """End the response."""


class OpenStreams:
    """The open streams of one transport, which are aborted when their server shuts down.

    Any server that runs the application waits for its open responses. sse-starlette notices that
    uvicorn shuts down; one task waits for it on behalf of all streams.
    """

    def __init__(self) -> None:
        self._streams: set[AbortableResponse] = set()
        self._watching: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._streams)

    def add(self, stream: AbortableResponse) -> None:
        """Add a stream that opens."""
        self._streams.add(stream)
        if self._watching is None:
            self._watching = asyncio.create_task(self._abort_at_shutdown())

    def discard(self, stream: AbortableResponse) -> None:
        """Remove a stream that has ended."""
        self._streams.discard(stream)
        if not self._streams and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    def abort(self) -> None:
        """Abort every stream; clients resume, turns continue."""
        for stream in self._streams:
            stream.abort()

    async def _abort_at_shutdown(self) -> None:
        await EventSourceResponse._listen_for_exit_signal()
        self.abort()


async def disconnected(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
