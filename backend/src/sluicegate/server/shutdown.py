"""How a server ends: what is new is refused while what runs comes to its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from sluicegate.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from sluicegate.server.app import EngineHolder

RESTARTS: Final = "The server is restarting; send the request again in a moment."
ALIVE: Final = "/healthz"
"""The one address that is answered to the end: the process is well."""

FLUSH_SECONDS: Final = 2.0
"""How long clients may take to read the ends of their turns."""

_PAUSE: Final = 0.02


class Transport(Protocol):
    """What has open connections."""

    @property
    def is_busy(self) -> bool:
        """Whether a response is on its way."""

    def go_away(self) -> None:
        """Tell clients that understand it that the end is near."""

    def abort(self) -> None:
        """Break what is open, so that clients come back."""


class Shutdown:
    """The end of one application; it begins at once, wherever it is asked for."""

    def __init__(self, engine: EngineHolder, transports: Sequence[Transport]) -> None:
        """Take what runs turns, and what has connections."""
        self._engine = engine
        self._transports = transports
        self.has_begun = False

    def begin(self) -> None:
        """Refuse what is new from now on; a signal may ask for this."""
        self.has_begun = True

    async def end(self, within: float, hurried: asyncio.Event) -> None:
        """Let claimed calls end for so many seconds, end every turn, then break what is open.

        Whoever reads a turn here gets its end. Once ``hurried`` is set nothing is waited for.
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
            await asyncio.sleep(_PAUSE)
        self.abort()

    def abort(self) -> None:
        """Break what is open; the turns are not touched."""
        for transport in self._transports:
            transport.abort()


class RefuseDuringShutdown:
    """Middleware that lets nothing new in once the end has begun."""

    def __init__(self, app: ASGIApp, *, ending: Shutdown) -> None:
        """Wrap the router."""
        self._app = app
        self._ending = ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application, or raise.

        Raises:
            Unavailable: The server ends; another one, or the next, will answer.
        """
        if self._ending.has_begun and scope["type"] in ("http", "websocket"):
            path: str = scope["path"]
            if path.removeprefix(scope.get("root_path", "")) != ALIVE:
                raise Unavailable(RESTARTS)
        await self._app(scope, receive, send)
