"""The limit of failed authentications of each peer, which slows the guessing of tokens.

A delay would not: after the check a client avoids it by closing the connection, and before the
check it holds up all users behind the same proxy. Instead, credentials that this process has
accepted within the last hour are always checked, and others are refused without a check while
their peer has failed too often.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluicegate.engine.rate_limits import TokenBucket
from sluicegate.engine.telemetry import refused_by
from sluicegate.errors import StoreError, TooManyRequests, Unavailable
from sluicegate.server.authentication import BearerFile, TrustedHeader, local_user
from sluicegate.server.network_addresses import peer_of
from sluicegate.server.session_cookie import accepted_session_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import HTTPConnection

    from sluicegate.server.authentication import Authenticate, User
    from sluicegate.server.settings import Settings

TOO_MANY_FAILURES: Final = (
    "Too many sign-ins from your network address have failed; wait a moment and try again."
)

_HOUR: Final = 3600.0
_MINUTE: Final = 60.0
_MAX_DIGESTS: Final = 20_000
_log: Final = logging.getLogger("sluicegate")


class FailureLimits:
    """The failures that each peer has left, and the credentials of the last hour.

    The numbers of peers and credentials that it holds are bounded; the least recently used is
    removed first.

    Args:
        burst: Failures of a peer at once.
        per_minute: Failures of a peer in the long run.
        clock: Returns seconds.
        max_peers: Peers whose failures are held.
    """

    def __init__(
        self,
        *,
        burst: int,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
        max_peers: int = 10_000,
    ) -> None:
        self._burst = burst
        self._per_second = per_minute / _MINUTE
        self._clock = clock
        self._max_peers = max_peers
        self._peers: dict[str, TokenBucket] = {}
        self._accepted = RecentDigests(_MAX_DIGESTS)
        self._refused = RecentDigests(_MAX_DIGESTS)
        self._failures = FailureLog(max_peers)
        self._key = secrets.token_bytes(32)

    async def check(
        self, authenticate: Authenticate, connection: HTTPConnection, credentials: list[str]
    ) -> str | User | None:
        """Authenticate a connection that has these credentials.

        A failure is counted before the check, so that checks at the same time cannot exceed the
        limit, and taken back if there was none.

        Raises:
            TooManyRequests: The peer has no failures left; nothing was checked.
        """
        now = self._clock()
        self._failures.write_due(now)
        digest = hashlib.blake2b(repr(credentials).encode(), key=self._key).digest()
        is_known = self._accepted.contains(digest, now)
        counted = None if is_known else self._count(peer_of(connection), now)
        try:
            user = await authenticate(connection)
        except (Unavailable, StoreError):
            # The credentials could not be checked.
            if counted is not None:
                counted.put_back()
            raise
        except Exception:
            self._fail(peer_of(connection), digest, counted)
            raise
        if user is None:
            self._fail(peer_of(connection), digest, counted)
            return None
        self._refused.discard(digest)
        self._accepted.add(digest, self._clock())
        if counted is not None:
            counted.put_back()
        return user

    def _count(self, peer: str, now: float) -> TokenBucket:
        """Count a failure of a peer; return where it is counted."""
        counted = self._bucket_of(peer, now)
        if not counted.take(now):
            self._failures.note(peer, now, checked=False)
            refused_by("max_failed_authentications")
            raise TooManyRequests(TOO_MANY_FAILURES, retry_after=counted.seconds_until(now))
        return counted

    def _fail(self, peer: str, digest: bytes, counted: TokenBucket | None) -> None:
        now = self._clock()
        self._failures.note(peer, now, checked=True)
        if counted is not None and self._refused.contains(digest, now):
            # The same again is no guess. A page that repeats an expired token must not use up the
            # failures of its whole network.
            counted.put_back()
        self._accepted.discard(digest)
        self._refused.add(digest, now)

    def _bucket_of(self, peer: str, now: float) -> TokenBucket:
        bucket = self._peers.pop(peer, None) or TokenBucket(self._burst, self._per_second, now=now)
        self._peers[peer] = bucket
        if len(self._peers) > self._max_peers:
            del self._peers[next(iter(self._peers))]
        return bucket


class RecentDigests:
    """At most so many digests of the last hour; the least recently added is removed first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._added_at: dict[bytes, float] = {}

    def add(self, digest: bytes, now: float) -> None:
        """Add a digest, or restart its hour."""
        self.discard(digest)
        self._added_at[digest] = now
        if len(self._added_at) > self._size:
            del self._added_at[next(iter(self._added_at))]

    def contains(self, digest: bytes, now: float) -> bool:
        """Whether it has been added within the last hour."""
        added_at = self._added_at.get(digest)
        return added_at is not None and now - added_at <= _HOUR

    def discard(self, digest: bytes) -> None:
        """Remove a digest if it is there."""
        self._added_at.pop(digest, None)


@dataclass
class _Unlogged:
    """The failures of a peer since its last line in the log."""

    logged_at: float
    failed: int = 0
    unchecked: int = 0


class FailureLog:
    """Logs the failures of at most so many peers, with one line a minute for each.

    The first failure of a peer is logged at once. The count of those of the minute after it is
    logged when the minute is over, at the next authentication of any peer.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._peers: dict[str, _Unlogged] = {}
        """In the order of their last lines."""

    def note(self, peer: str, now: float, *, checked: bool) -> None:
        """Count a failure, or a refusal without a check."""
        count = self._peers.get(peer)
        if count is None:
            _write(peer, _Unlogged(now, int(checked), int(not checked)))
            self._peers[peer] = _Unlogged(now)
            if len(self._peers) > self._size:
                self._write_oldest()
        elif checked:
            count.failed += 1
        else:
            count.unchecked += 1

    def write_due(self, now: float) -> None:
        """Log the counts of the minutes that are over."""
        while self._peers and next(iter(self._peers.values())).logged_at <= now - _MINUTE:
            peer = self._write_oldest()
            if peer is not None:
                self._peers[peer] = _Unlogged(now)

    def _write_oldest(self) -> str | None:
        """Remove the oldest peer; return it if it had failures, which are logged."""
        peer = next(iter(self._peers))
        count = self._peers.pop(peer)
        if not count.failed and not count.unchecked:
            return None
        _write(peer, count)
        return peer


def _write(peer: str, count: _Unlogged) -> None:
    _log.warning(
        "authentication failed by=%s failed=%d unchecked=%d", peer, count.failed, count.unchecked
    )


class LimitedAuthentication:
    """Authenticates requests within the limits of their peers.

    A request without credentials is no guess: it is checked as ever, which costs no more than any
    request that is refused, and does not count.

    Args:
        authenticate: Checks a request.
        credentials: Returns what a client could guess; it is empty for a request without any.
        limits: The limits of the peers.
    """

    def __init__(
        self,
        authenticate: Authenticate,
        credentials: Callable[[HTTPConnection], list[str]],
        limits: FailureLimits,
    ) -> None:
        self._authenticate = authenticate
        self._credentials = credentials
        self._limits = limits

    async def __call__(self, connection: HTTPConnection) -> str | User | None:
        """Return the user.

        Raises:
            TooManyRequests: The peer has failed too often.
        """
        credentials = self._credentials(connection)
        if not credentials:
            return await self._authenticate(connection)
        return await self._limits.check(self._authenticate, connection, credentials)


def limit_failures(
    authenticate: Authenticate, own: Authenticate, limits: FailureLimits, settings: Settings
) -> Authenticate:
    """Limit the failures of an authentication that accepts the users of ``own`` and cookies."""
    if own is local_user:
        return authenticate
    if isinstance(own, TrustedHeader):
        return LimitedAuthentication(authenticate, own.untrusted_names, limits)
    names = ("authorization",) if isinstance(own, BearerFile) else settings.credential_headers

    def credentials(connection: HTTPConnection) -> list[str]:
        fields = [(name, connection.headers.getlist(name)) for name in names]
        found = [f"{name}: {value}" for name, values in fields for value in values if value]
        session_id = accepted_session_id(connection)
        return found if session_id is None else [*found, session_id]

    return LimitedAuthentication(authenticate, credentials, limits)
