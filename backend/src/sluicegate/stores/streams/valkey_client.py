"""The connection to Valkey."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluicegate.stores.streams.time_limits import ValkeyTimings

_FORMS: Final = "write valkey://HOST:PORT/NUMBER or redis://HOST:PORT/NUMBER"

SCHEMES: Final = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss"}
"""The schemes of our URLs, and those of the client."""


def valkey_client(url: str, response: float, timings: ValkeyTimings) -> Redis:
    """Return a client that waits ``response`` seconds for each reply and never retries.

    Raises:
        ConfigurationError: the URL cannot be parsed.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in SCHEMES:
        raise ConfigurationError(f"The streams URL cannot be read; {_FORMS}.")
    try:
        return Redis.from_url(
            f"{SCHEMES[scheme]}://{rest}",
            socket_connect_timeout=timings.command,
            socket_timeout=response,
            # The callers decide whether to retry.
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
    except (ValueError, TypeError):
        # The URL may contain a password, so the message does not repeat it.
        raise ConfigurationError(f"The streams URL cannot be read; {_FORMS}.") from None


async def cancel_until_done(tasks: Iterable[asyncio.Task[None]], timings: ValkeyTimings) -> None:
    """Cancel tasks that use a client, again and again, until they have ended.

    The client sends with `asyncio.wait_for`, which loses a cancellation before Python 3.12 if
    the command has been sent at that moment.
    """
    unfinished = set(tasks)
    while unfinished:
        for task in unfinished:
            task.cancel()
        _, unfinished = await asyncio.wait(unfinished, timeout=timings.retry_pause)
