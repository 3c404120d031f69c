"""Connections end with their session, whatever other sessions do."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, cast

from starlette.requests import HTTPConnection

from sluicegate.server.cookie_session_connections import SessionConnections
from sluicegate.stores.cookie_sessions import CookieSessions
from sluicegate.transports.call_at_session_end import SESSION, end_with_session
from tests.server.exchange import PATIENCE


class OtherSessionsEnd:
    """Sessions of which another one ends all the time, while that of the test has expired."""

    def ends(self) -> OtherSessionsEnd:
        return self

    async def next(self) -> set[str] | None:
        await asyncio.sleep(0)
        return {"other"}

    def close(self) -> None:
        """Do nothing."""

    async def open_among(self, _digests: Collection[str]) -> set[str]:
        return set()


async def test_ends_of_other_sessions_do_not_postpone_the_look_up_of_an_expired_one() -> None:
    connection = HTTPConnection({"type": "http"})
    connections, ended = SessionConnections(recheck=0.01), asyncio.Event()
    sessions: Any = OtherSessionsEnd()
    connections.hold(connection, "mine", cast("CookieSessions", sessions))
    end_with_session(connection.scope, ended.set)
    async with asyncio.timeout(PATIENCE):
        await ended.wait()
    connections.release(connection.scope[SESSION])
