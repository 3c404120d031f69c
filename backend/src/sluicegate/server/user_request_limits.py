"""What one user may have open, and may ask for in a minute, over all transports of a process."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from sluicegate.engine.rate_limits import RateLimit
from sluicegate.engine.telemetry import refused_by
from sluicegate.errors import TooManyRequests
from sluicegate.server.limit_refusal_log import RefusalLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import HTTPConnection
    from starlette.types import ASGIApp, Receive, Scope, Send

TOO_MANY_REQUESTS: Final = (
    "You have sent too many requests in a minute; wait a moment and try again."
)
TOO_MANY_CONNECTIONS: Final = (
    "You have too many connections open; close some pages or programs and try again."
)

_USERS: Final = "sluicegate.users"
"""The key in a scope of the users for whom its connection is counted."""

_log: Final = logging.getLogger("sluicegate")


class UserLimits:
    """The rate and the connections of each user.

    Args:
        per_minute: Requests of a user in any minute, whatever they are for.
        connections: Requests, streams and sockets that a user may have open.
        clock: Returns seconds.
    """

    def __init__(
        self, *, per_minute: int, connections: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate = RateLimit(
            per_minute, TOO_MANY_REQUESTS, name="max_requests_per_minute", clock=clock
        )
        self._connections = connections
        self._open: Counter[str] = Counter()
        self._refusals = RefusalLog(clock=clock)

    def count_request(self, user: str) -> None:
        """Count a request.

        Raises:
            TooManyRequests: It would be one too many.
        """
        try:
            self.rate.take(user)
        except TooManyRequests:
            self._refusals.note("max_requests_per_minute", user)
            raise

    def hold_connection(self, connection: HTTPConnection, user: str) -> None:
        """Count a connection for a user until it ends; once for each connection.

        Raises:
            TooManyRequests: It would be one too many.
        """
        users: set[str] = connection.scope.setdefault(_USERS, set())
        if user in users:
            return
        if self._open[user] >= self._connections:
            self._refusals.note("max_connections_per_user", user)
            refused_by("max_connections_per_user")
            raise TooManyRequests(TOO_MANY_CONNECTIONS)
        users.add(user)
        self._open[user] += 1

    def release(self, users: set[str]) -> None:
        """Stop counting a connection for its users."""
        for user in users:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]


class CountConnections:
    """Middleware that stops counting a connection when the application returns."""

    def __init__(self, app: ASGIApp, *, limits: UserLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application; then the connection is no longer open."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        users = scope[_USERS] = set[str]()
        try:
            await self._app(scope, receive, send)
        finally:
            self._limits.release(users)
