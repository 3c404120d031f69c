"""The sessions of browsers that signed in with a token, shared by all servers of a database.

A session is found by the digest of its id, and its token is sealed with a key that only the id
gives: the content of the database is worth nothing without the cookie.

The end of a session is published like the events of users, under a name that no user can have.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final, Protocol

from sqlalchemy import bindparam, delete, insert, select

from sluicegate.stores.cookie_session_sealing import digest_of, new_id, seal, unseal
from sluicegate.stores.sql.database_clock import NOW
from sluicegate.stores.sql.schema import COOKIE_SESSIONS
from sluicegate.stores.streams.user_events import MemoryUserEvents
from sluicegate.wire.user_events import RESET, session_ended

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from sqlalchemy import Connection

    from sluicegate.stores.sql.database import Database
    from sluicegate.stores.streams.user_events import UserEvents

MAX_SESSIONS: Final = 20
"""Sessions of a user; a further sign-in ends the oldest."""

ALL_SESSIONS: Final = "/sessions"
"""The user to whom the ends of sessions are published; no id of a user has a slash."""

_C = COOKIE_SESSIONS.c
_FIND: Final = select(_C.token).where(_C.digest == bindparam("its_digest"), _C.until > NOW)


class CookieSessions(Protocol):
    """The port of the sessions; the methods raise StoreError when the store fails."""

    async def begin(self, user: str, token: str, *, seconds: float) -> str:
        """Store a token for so many seconds; returns the new id of the session."""

    async def token(self, session_id: str) -> str | None:
        """Return the token of a session; None if it has ended or never was."""

    async def end(self, session_id: str) -> None:
        """End a session. Idempotent."""

    async def open_among(self, digests: Collection[str]) -> set[str]:
        """Return the digests, of these, whose sessions have not ended."""

    def ends(self) -> SessionEnds:
        """Return the sessions that end from now on, in any process."""


class SessionEnds:
    """The sessions that end from a position on."""

    def __init__(self, events: UserEvents) -> None:
        self._reader = events.read(ALL_SESSIONS, None)

    async def next(self) -> set[str] | None:
        """Wait for sessions to end; returns their digests, None if others may have ended too."""
        events = [json.loads(event.data) for event in await self._reader.read()]
        if RESET in events:
            return None
        return {event["session"] for event in events if "session" in event}

    def close(self) -> None:
        """Stop waiting. Idempotent."""
        self._reader.close()


class DatabaseCookieSessions:
    """Sessions in the database of the chats (implements `CookieSessions`).

    Args:
        database: The database.
        events: Where the ends of sessions are published, for every process; by default for this.
    """

    def __init__(self, database: Database, events: UserEvents | None = None) -> None:
        self._database = database
        self._events = MemoryUserEvents() if events is None else events
        self._find = database.prepare(_FIND)

    async def begin(self, user: str, token: str, *, seconds: float) -> str:
        """Store a token for so many seconds; returns the new id of the session."""
        session_id = new_id()
        now = self._database.now()
        new = {
            "digest": digest_of(session_id),
            "user": user,
            "token": seal(session_id, token),
            "created_at": now,
            "until": now + seconds,
        }
        newest = (
            select(_C.digest)
            .where(_C.user == user)
            .order_by(_C.created_at.desc(), _C.digest)
            .limit(MAX_SESSIONS)
        )

        def store(connection: Connection) -> list[str]:
            connection.execute(delete(COOKIE_SESSIONS).where(_C.until <= now))
            connection.execute(insert(COOKIE_SESSIONS).values(new))
            rest = delete(COOKIE_SESSIONS).where(_C.user == user, _C.digest.not_in(newest))
            return list(connection.scalars(rest.returning(_C.digest)))

        _publish(self._events, await self._database.write(store))
        return session_id

    async def token(self, session_id: str) -> str | None:
        """Return the token of a session; None if it has ended or never was."""
        rows = await self._database.fetch(self._find, {"its_digest": digest_of(session_id)})
        return unseal(session_id, rows[0]["token"]) if rows else None

    async def end(self, session_id: str) -> None:
        """End a session. Idempotent."""
        digest = digest_of(session_id)
        ended = delete(COOKIE_SESSIONS).where(_C.digest == digest)
        if await self._database.write(lambda connection: connection.execute(ended).rowcount):
            _publish(self._events, [digest])

    async def open_among(self, digests: Collection[str]) -> set[str]:
        """Return the digests, of these, whose sessions have not ended."""
        is_open = select(_C.digest).where(_C.digest.in_(digests), _C.until > self._database.now())
        return await self._database.read(lambda connection: set(connection.scalars(is_open)))

    def ends(self) -> SessionEnds:
        """Return the sessions that end from now on, in any process."""
        return SessionEnds(self._events)


class MemoryCookieSessions:
    """Sessions of one process without a database (implements `CookieSessions`)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: dict[str, tuple[str, str, float]] = {}
        self._events = MemoryUserEvents()

    async def begin(self, user: str, token: str, *, seconds: float) -> str:
        """Store a token for so many seconds; returns the new id of the session."""
        now = self._clock()
        self._sessions = {key: it for key, it in self._sessions.items() if it[2] > now}
        session_id = new_id()
        self._sessions[session_id] = (user, token, now + seconds)
        own = [key for key, it in self._sessions.items() if it[0] == user]
        for oldest in own[:-MAX_SESSIONS]:
            await self.end(oldest)
        return session_id

    async def token(self, session_id: str) -> str | None:
        """Return the token of a session; None if it has ended or never was."""
        _, token, until = self._sessions.get(session_id, ("", "", 0.0))
        return token if until > self._clock() else None

    async def end(self, session_id: str) -> None:
        """End a session. Idempotent."""
        if self._sessions.pop(session_id, None) is not None:
            _publish(self._events, [digest_of(session_id)])

    async def open_among(self, digests: Collection[str]) -> set[str]:
        """Return the digests, of these, whose sessions have not ended."""
        now = self._clock()
        is_open = {digest_of(key) for key, it in self._sessions.items() if it[2] > now}
        return is_open.intersection(digests)

    def ends(self) -> SessionEnds:
        """Return the sessions that end from now on."""
        return SessionEnds(self._events)


def _publish(events: UserEvents, ended: Iterable[str]) -> None:
    for digest in ended:
        events.publish(ALL_SESSIONS, session_ended(digest))
