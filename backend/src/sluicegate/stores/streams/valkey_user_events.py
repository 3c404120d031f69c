"""The events of each user for several processes, over one stream of a Valkey or Redis server.

The stream carries the events of all users of an application to every process, which keeps the
latest of each user in memory (`UserEventLog`). The ids of the server are those of the events, so
a connection resumes at any process.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from redis.exceptions import RedisError

from sluicegate.stores.streams.time_limits import ValkeyTimings
from sluicegate.stores.streams.user_events import Cursor, RetentionLimits, UserEventLog
from sluicegate.stores.streams.valkey_client import cancel_until_done, valkey_client
from sluicegate.wire.user_events import RESET, encode_user_event

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sluicegate.stores.streams.user_events import UserEventReader
    from sluicegate.wire.user_events import UserEvent

_USER: Final = b"user"
_DATA: Final = b"data"
"""Fields of an entry. One without a user resets the connections of every user."""

_ENTRIES_AT_ONCE: Final = 500
_MAX_IN_DOUBT: Final = 1_000
_LIVENESS_SECONDS: Final = 5.0
_PRESUMED_DEAD: Final = 5.0
"""Seconds after its leases at which a silent process is taken for dead."""

_START: Final = Cursor(0, 0)
"""The position of a process that the server has not answered yet."""

logger = logging.getLogger("sluicegate")


class ValkeyUserEvents:
    """The events of the users of several processes (implements `UserEvents`).

    While the server is unavailable, events reach the connections of this process alone. Their
    users' connections everywhere are reset when the server is available again, and those of every
    user when a process has died with events that it may not have published.

    Args:
        url: The server's URL; the constructor does not connect.
        app: The name of the application.
        lease_ttl: Seconds after which a silent process has lost its chats.
        limits: How many events are kept, and for how long.
        timings: The time limits of commands.

    Raises:
        ConfigurationError: the URL cannot be parsed.
    """

    def __init__(
        self,
        url: str,
        app: str,
        *,
        lease_ttl: float,
        limits: RetentionLimits | None = None,
        timings: ValkeyTimings | None = None,
    ) -> None:
        self._limits = limits or RetentionLimits()
        self._timings = timings = timings or ValkeyTimings()
        self._client = valkey_client(url, timings.command, timings)
        self._blocking = valkey_client(url, timings.block + timings.command, timings)
        name = hashlib.sha256(app.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._key = f"sluicegate:events:{name}"
        self._liveness = ProcessLiveness(f"{self._key}:alive", lease_ttl + _PRESUMED_DEAD)
        self._log = UserEventLog(_START, self._limits)
        self._last: bytes | None = None
        """The id of the newest entry that was read; None before the server has answered."""
        self._pending: deque[tuple[str, str]] = deque()
        self._in_doubt: set[str] = set()
        """Users whose events other processes may have missed; the empty name is every user."""
        self._published = asyncio.Event()
        self._synchronized = asyncio.Event()
        self._is_closing = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Connect; an unavailable server may become available later."""
        self._tasks = [
            asyncio.create_task(self._receive()),
            asyncio.create_task(self._send()),
            asyncio.create_task(self._watch_processes()),
        ]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._timings.command):
                await self._synchronized.wait()

    def publish(self, user: str, event: UserEvent) -> None:
        """Publish an event to the connections of a user in every process."""
        self._pending.append((user, encode_user_event(event)))
        self._published.set()

    def read(self, user: str, after: str | None, roles: Collection[str] = ()) -> UserEventReader:
        """Return a reader of the events after the id ``after``, by default of future ones."""
        return self._log.read(user, after, roles)

    async def aclose(self) -> None:
        """Deliver what was published, unless the server is unavailable, and disconnect."""
        if not self._tasks:
            return
        receiving, sending, watching = self._tasks
        self._is_closing = True
        self._published.set()
        await asyncio.wait([sending], timeout=2 * self._timings.command)
        await cancel_until_done([receiving, sending, watching], self._timings)
        if not self._in_doubt:
            await self._try(self._liveness.leave(self._client))
        await self._blocking.aclose()
        await self._client.aclose()
        self._tasks = []

    async def _send(self) -> None:
        while not (self._is_closing and not self._pending):
            # After a failure the users in doubt are due without a new event.
            timeout = self._timings.retry_pause if self._in_doubt else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._published.wait()
            self._published.clear()
            count = min(len(self._pending), _ENTRIES_AT_ONCE)
            batch = [self._pending.popleft() for _ in range(count)]
            if self._pending:
                self._published.set()
            await self._deliver(batch)

    async def _deliver(self, batch: Sequence[tuple[str, str]]) -> None:
        resets = [(user, _RESET) for user in self._in_doubt]
        if not batch and not resets:
            return
        if await self._try(self._add([*resets, *batch])):
            self._in_doubt.clear()
            return
        for user, data in batch:
            self._log.append_next(user, data)
            self._in_doubt.add(user)
        if len(self._in_doubt) > _MAX_IN_DOUBT:
            self._in_doubt = {""}

    async def _add(self, entries: Sequence[tuple[str, str]]) -> None:
        async with self._client.pipeline(transaction=False) as pipe:
            for user, data in entries:
                fields: dict[Any, Any] = {_DATA: data}
                if user:
                    fields[_USER] = user.encode("utf-8", "surrogatepass")
                pipe.xadd(self._key, fields, maxlen=self._limits.total, approximate=True)
            pipe.expire(self._key, round(self._limits.seconds))
            await pipe.execute()

    async def _receive(self) -> None:
        is_in_sync = False
        while True:
            try:
                if not is_in_sync:
                    await self._synchronize()
                    is_in_sync = True
                    self._synchronized.set()
                replies: Any = await self._blocking.xread(
                    {self._key: self._last or b"0-0"},
                    count=_ENTRIES_AT_ONCE,
                    block=round(self._timings.block * 1000),
                )
            except (RedisError, OSError):
                is_in_sync = False
                await asyncio.sleep(self._timings.retry_pause)
                continue
            for _, entries in replies:
                for entry, fields in entries:
                    self._append(entry, fields)

    async def _synchronize(self) -> None:
        """Find the newest entry that was read; without it others are missing, too.

        Raises:
            RedisError: the server does not respond.
        """
        if self._last is not None:
            last = self._last.decode()
            if await self._client.xrange(self._key, last, last):
                return
        entries: Any = await self._client.xrange(self._key)
        if entries:
            first = _cursor(entries[0][0]).earlier()
        else:
            first = await _server_time(self._client)
        self._log.reset(first)
        self._last = str(first).encode()
        for entry, fields in entries:
            self._append(entry, fields)

    def _append(self, entry: bytes, fields: Mapping[bytes, bytes]) -> None:
        self._last = entry
        user, data = fields.get(_USER), fields.get(_DATA)
        if user is None or data is None:
            self._log.reset(_cursor(entry))
            return
        self._log.append(_cursor(entry), user.decode("utf-8", "surrogatepass"), data.decode())

    async def _watch_processes(self) -> None:
        while True:
            try:
                if await self._liveness.renew(self._client):
                    logger.warning("a process has died; every user's events are reset")
                    await self._add([("", _RESET)])
            except (RedisError, OSError):
                logger.debug("the stream server does not answer; events are not shared meanwhile")
            await asyncio.sleep(_LIVENESS_SECONDS)

    async def _try(self, command: Any) -> bool:
        """Await a command; False if the server did not answer it."""
        try:
            await command
        except (RedisError, OSError):
            return False
        return True


class ProcessLiveness:
    """The processes that serve an application: a sorted set with the time of each last sign.

    Args:
        key: The server's key of the set.
        timeout: Seconds after its last sign at which a process is taken for dead.
    """

    def __init__(self, key: str, timeout: float) -> None:
        self._key = key
        self._timeout = timeout
        self._id = secrets.token_hex(8)

    async def renew(self, client: Any) -> bool:
        """Give a sign of life; True if another process is dead, at the first that notices.

        Raises:
            RedisError: the server does not respond.
        """
        now = (await _server_time(client)).milliseconds / 1000
        async with client.pipeline(transaction=True) as pipe:
            pipe.zadd(self._key, {self._id: now})
            pipe.zremrangebyscore(self._key, "-inf", now - self._timeout)
            pipe.expire(self._key, round(10 * self._timeout))
            _, dead, _ = await pipe.execute()
        return bool(dead)

    async def leave(self, client: Any) -> None:
        """Leave: everything is published. Raises RedisError without a reply."""
        await client.zrem(self._key, self._id)


def _cursor(entry: bytes) -> Cursor:
    milliseconds, _, number = entry.partition(b"-")
    return Cursor(int(milliseconds), int(number))


async def _server_time(client: Any) -> Cursor:
    seconds, microseconds = await client.time()
    return Cursor(seconds * 1000 + microseconds // 1000, 0)


_RESET: Final = encode_user_event(RESET)
