"""The connection to Valkey, and its time limits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

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


@dataclass(frozen=True, slots=True)
class ValkeyTimings:
    """Time limits in seconds."""

    command: float = 1.0
    """How long a connection or a command may take."""

    block: float = 5.0
    """How long one request for new entries waits for them."""

    unavailable: float = 10.0
    """How long readers wait for an unavailable server; then their clients load the history."""

    close: float = 1.0
    """How long the end of a turn waits until the server has it."""

    delivery: float = 10.0
    """How long the entries of a finished turn are retried on an unavailable server."""

    retry_pause: float = 0.25
    """The pause between two attempts."""
