"""Graceful shutdown of an application: new requests are refused while running turns end."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, Protocol

from sluicegate.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from sluicegate.server.engine_holder import EngineHolder

RESTARTS: Final = "The server is restarting; send the request again in a moment."
ALIVE: Final = "/healthz"
"""The one path that is answered until the end: the process is alive."""

FLUSH_SECONDS: Final = 2.0
"""Seconds in which clients may read the ends of their turns."""

_POLL_SECONDS: Final = 0.02
_IDLE_SECONDS: Final = 0.5
"""The interval at which idle connections are closed while turns end."""


class Transport(Protocol):
    """An endpoint with open connections."""

    @property
    def is_busy(self) -> bool:
        """Whether a response is being sent."""

    def go_away(self) -> None:
        """Announce the shutdown to clients whose protocol has a message for it."""

    def close_idle(self) -> None:
        """Close the connections on which nothing is being answered, so that clients reconnect."""

    def abort(self) -> None:
        """Break the open connections, so that clients reconnect."""


class Shutdown:
    """The shutdown of one application: refuse new requests, drain the engine, abort the rest."""

    def __init__(self, engine: EngineHolder, transports: Sequence[Transport]) -> None:
        self._engine = engine
        self._transports = transports
        self._requests = 0
        self.has_begun = False

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Let `finish` wait for an HTTP request, which may begin a turn."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1

    def begin(self) -> None:
        """Refuse new requests from now on; safe to call from a signal handler."""
        self.has_begun = True

    async def finish(self, within: float, hurried: asyncio.Event) -> None:
        """Wait until every request is answered and every turn has ended and was sent.

        Another process gets new connections.

        Args:
            within: Seconds that the turns may take to end.
            hurried: Ends the wait once it is set.
        """
        for transport in self._transports:
            transport.go_away()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        engine = self._engine.opened
        while (remaining := deadline - loop.time()) > 0 and not hurried.is_set():
            for transport in self._transports:
                transport.close_idle()
            pause = min(remaining, _IDLE_SECONDS)
            if engine is not None and not await engine.finish_turns(within=pause, hurried=hurried):
                continue
            if not self._requests and not any(t.is_busy for t in self._transports):
                break
            await asyncio.sleep(_POLL_SECONDS)

    async def drain(self, within: float, hurried: asyncio.Event) -> None:
        """Wait for claimed calls, end every turn, then abort the open connections.

        Args:
            within: Seconds that claimed calls may take to end.
            hurried: Ends every wait once it is set.
        """
        self.begin()
        for transport in self._transports:
            transport.go_away()
        engine = self._engine.opened
        if engine is not None:
            await engine.drain(within=within, hurried=hurried)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FLUSH_SECONDS
        while any(t.is_busy for t in self._transports) and loop.time() < deadline:
            if hurried.is_set():
                break
            await asyncio.sleep(_POLL_SECONDS)
        self.abort()

    def abort(self) -> None:
        """Break the open connections; turns continue."""
        for transport in self._transports:
            transport.abort()


class RefuseDuringShutdown:
    """Middleware that refuses new requests once the shutdown has begun."""

    def __init__(self, app: ASGIApp, *, shutdown: Shutdown) -> None:
        self._app = app
        self._shutdown = shutdown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application.

        Raises:
            Unavailable: The shutdown has begun; another replica will answer, or the next process.
        """
        if self._shutdown.has_begun and scope["type"] in ("http", "websocket"):
            path: str = scope["path"]
            if path.removeprefix(scope.get("root_path", "")) != ALIVE:
                raise Unavailable(RESTARTS)
        is_request = scope["type"] == "http"
        with self._shutdown.answering() if is_request else contextlib.nullcontext():
            await self._app(scope, receive, send)
