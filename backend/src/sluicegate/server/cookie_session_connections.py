"""The connections that sessions in a cookie have opened, which end when their session ends."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from sluicegate.errors import StoreError
from sluicegate.transports.call_at_session_end import SESSION, ConnectionSession

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import ASGIApp, Receive, Scope, Send

    from sluicegate.stores.cookie_sessions import CookieSessions, SessionEnds


class SessionConnections:
    """The open connections by session.

    While there are any, one task reads which sessions end, in any process.

    Args:
        recheck: Seconds after which the sessions are looked up, whatever was read: they expire,
            and without a stream server other processes do not publish their ends.
    """

    def __init__(self, recheck: float) -> None:
        self._recheck = recheck
        self._open: dict[str, set[ConnectionSession]] = {}
        self._watching: asyncio.Task[None] | None = None

    def hold(self, connection: HTTPConnection, digest: str, sessions: CookieSessions) -> None:
        """Note the session of a connection, before it is looked up, until the connection ends."""
        if SESSION in connection.scope:
            return
        session = connection.scope[SESSION] = ConnectionSession(digest)
        self._open.setdefault(digest, set()).add(session)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(sessions, sessions.ends()))

    def release(self, session: ConnectionSession) -> None:
        """Forget a connection that has ended."""
        held = self._open[session.digest]
        held.discard(session)
        if not held:
            del self._open[session.digest]
        if not self._open and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _watch(self, sessions: CookieSessions, ends: SessionEnds) -> None:
        clock = asyncio.get_running_loop().time
        due = clock() + self._recheck
        try:
            while True:
                ended: set[str] | None = None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(due):
                        ended = await ends.next()
                if ended is None:
                    due = clock() + self._recheck
                with contextlib.suppress(StoreError):
                    self._end(await self._find_ended(sessions) if ended is None else ended)
        finally:
            ends.close()

    async def _find_ended(self, sessions: CookieSessions) -> set[str]:
        return set(self._open) - await sessions.open_among(list(self._open))

    def _end(self, digests: set[str]) -> None:
        for digest in digests:
            for session in list(self._open.get(digest, ())):
                session.end()


class ReleaseSessions:
    """Middleware that releases what `SessionConnections.hold` has recorded."""

    def __init__(self, app: ASGIApp, *, sessions: SessionConnections) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application; then the connection is no longer open."""
        try:
            await self._app(scope, receive, send)
        finally:
            session = scope.get(SESSION)
            if session is not None:
                self._sessions.release(session)
