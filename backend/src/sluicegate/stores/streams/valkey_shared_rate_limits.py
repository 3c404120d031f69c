"""Rate limits that several processes count together, over a channel of a Valkey server.

Every process counts for itself and publishes what it has counted, several times a second; the
others add it to theirs. So a request never waits for the server, a user exceeds a limit by what
all other processes accept within `_INTERVAL` at most, and without the server each process counts
alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import secrets
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Protocol

from redis.exceptions import RedisError

from sluicegate.stores.streams.time_limits import ValkeyTimings
from sluicegate.stores.streams.valkey_client import cancel_until_done, valkey_client

if TYPE_CHECKING:
    from collections.abc import Callable

_INTERVAL: Final = 0.25
"""Seconds between two messages of a process."""

logger = logging.getLogger("sluicegate")


class SharedLimit(Protocol):
    """A limit of which other processes count a part."""

    name: str
    """The setting that sets it, the same in every process."""

    on_count: Callable[[str, int], None] | None
    """Is called with a user and what this process has counted."""

    def add(self, user: str, amount: int) -> None:
        """Count what another process has counted, whether or not it is too much."""


class ValkeyRates:
    """The rates of the processes of an application.

    Args:
        url: The server's URL; the constructor does not connect.
        app: The name of the application.
        timings: The time limits of commands.

    Raises:
        ConfigurationError: the URL cannot be parsed.
    """

    def __init__(self, url: str, app: str, *, timings: ValkeyTimings | None = None) -> None:
        self._timings = timings = timings or ValkeyTimings()
        self._client = valkey_client(url, timings.command, timings)
        name = hashlib.sha256(app.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._channel = f"sluicegate:rates:{name}"
        self._id = secrets.token_hex(8)
        self._limits: dict[str, SharedLimit] = {}
        self._counted: dict[str, Counter[str]] = {}
        self._has_counted = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to send and to receive; an unavailable server may become available later."""
        self._tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._receive())]

    def share(self, limit: SharedLimit) -> None:
        """Count a limit together with the limits that have its name in other processes."""
        counted = self._counted[limit.name] = Counter()

        def on_count(user: str, amount: int) -> None:
            counted[user] += amount
            self._has_counted.set()

        self._limits[limit.name] = limit
        limit.on_count = on_count

    async def aclose(self) -> None:
        """Stop counting together and disconnect."""
        for limit in self._limits.values():
            limit.on_count = None
        await cancel_until_done(self._tasks, self._timings)
        await self._client.aclose()

    async def _send(self) -> None:
        while True:
            await self._has_counted.wait()
            self._has_counted.clear()
            counts = {name: dict(counted) for name, counted in self._counted.items() if counted}
            for counted in self._counted.values():
                counted.clear()
            message = json.dumps({"from": self._id, "counts": counts})
            # What the server does not take is counted here alone.
            with contextlib.suppress(RedisError, OSError):
                await self._client.publish(self._channel, message)
            await asyncio.sleep(_INTERVAL)

    async def _receive(self) -> None:
        while True:
            with contextlib.suppress(RedisError, OSError):
                async with self._client.pubsub(ignore_subscribe_messages=True) as subscription:
                    await subscription.subscribe(self._channel)
                    while True:
                        await self._receive_message(subscription)
            await asyncio.sleep(self._timings.retry_pause)

    async def _receive_message(self, subscription: Any) -> None:
        received = await subscription.get_message(timeout=self._timings.block)
        if received is None:
            return
        message = json.loads(received["data"])
        if message["from"] == self._id:
            return
        for name, counted in message["counts"].items():
            # A process of another version may count what this one does not.
            limit = self._limits.get(name)
            if limit is not None:
                for user, amount in counted.items():
                    limit.add(user, amount)
