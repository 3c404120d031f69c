"""Opens the stores of a URL: of turns, of users' events, and of rates."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from sluicegate.errors import ConfigurationError
from sluicegate.stores.streams.base import MAX_BYTES, MAX_CHUNKS
from sluicegate.stores.streams.memory import MemoryStreamStore
from sluicegate.stores.streams.time_limits import DEFAULT_TIMINGS
from sluicegate.stores.streams.user_events import MemoryUserEvents

if TYPE_CHECKING:
    from types import ModuleType

    from sluicegate.stores.streams.base import StreamStore
    from sluicegate.stores.streams.time_limits import ValkeyTimings
    from sluicegate.stores.streams.user_events import UserEvents
    from sluicegate.stores.streams.valkey import ValkeyStreamStore
    from sluicegate.stores.streams.valkey_shared_rate_limits import ValkeyRates
    from sluicegate.stores.streams.valkey_user_events import ValkeyUserEvents

MEMORY: Final = "memory"
_PACKAGE: Final = "redis"


async def open_stream_store(
    url: str,
    *,
    max_chunks: int = MAX_CHUNKS,
    max_bytes: int = MAX_BYTES,
    timings: ValkeyTimings = DEFAULT_TIMINGS,
) -> StreamStore:
    """Open the store: ``memory``, or a server's URL such as ``valkey://localhost:6379/0``.

    ``max_chunks`` and ``max_bytes`` limit each turn; bytes are those of encoded chunks.

    Raises:
        ConfigurationError: the URL cannot be parsed, or the server refuses the user.
    """
    if url == MEMORY:
        return MemoryStreamStore(max_chunks=max_chunks, max_bytes=max_bytes)
    store: ValkeyStreamStore = _import("sluicegate.stores.streams.valkey").ValkeyStreamStore(
        url, max_chunks=max_chunks, max_bytes=max_bytes, timings=timings
    )
    try:
        await store.connect()
    except ConfigurationError:
        await store.aclose()
        raise
    return store


async def open_user_events(
    url: str, app: str, *, lease_ttl: float, timings: ValkeyTimings = DEFAULT_TIMINGS
) -> UserEvents:
    """Open the events of the users of an application, on the server that holds the streams.

    ``lease_ttl`` is the time in seconds after which another process is taken for dead. An
    unavailable server is no obstacle.

    Raises:
        ConfigurationError: the URL cannot be parsed.
    """
    if url == MEMORY:
        return MemoryUserEvents()
    module = _import("sluicegate.stores.streams.valkey_user_events")
    events: ValkeyUserEvents = module.ValkeyUserEvents(
        url, app, lease_ttl=lease_ttl, timings=timings
    )
    await events.start()
    return events


def open_rates(
    url: str, app: str, *, timings: ValkeyTimings = DEFAULT_TIMINGS
) -> ValkeyRates | None:
    """Open what the processes of an application count together; None for streams in memory.

    An unavailable server is no obstacle.

    Raises:
        ConfigurationError: the URL cannot be parsed.
    """
    if url == MEMORY:
        return None
    rates: ValkeyRates = _import("sluicegate.stores.streams.valkey_shared_rate_limits").ValkeyRates(
        url, app, timings=timings
    )
    rates.start()
    return rates


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != _PACKAGE:
            raise
        raise ConfigurationError(
            "Streams on a server need the package redis; install it with pip install redis."
        ) from error
