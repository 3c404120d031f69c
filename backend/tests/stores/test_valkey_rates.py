"""Rates that several processes count together over a Valkey server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from sluicegate.engine.rate_limits import RateLimit
from sluicegate.errors import TooManyRequests
from sluicegate.stores.streams.time_limits import ValkeyTimings
from sluicegate.stores.streams.valkey_shared_rate_limits import ValkeyRates
from tests.real_stores.valkey import Valkey

BOUND = 1_000
LIMIT = 30.0

Start = Callable[[Valkey, str], RateLimit]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts one more process of an application, and returns its limit."""
    async with AsyncExitStack() as stack:

        def start(server: Valkey, app: str) -> RateLimit:
            rates = ValkeyRates(server.url(), app, timings=ValkeyTimings(retry_pause=0.05))
            rates.start()
            stack.push_async_callback(rates.aclose)
            limit = RateLimit(BOUND, "Wait.", name="turns")
            rates.share(limit)
            return limit

        yield start


def _refuses(limit: RateLimit, user: str) -> bool:
    try:
        limit.take(user, 0)
    except TooManyRequests:
        return True
    return False


async def _heard(listening: RateLimit, counting: RateLimit) -> None:
    """Wait until a process hears what another counts."""
    user = f"warm-up of {id(listening)}"
    assert counting.on_count is not None
    async with asyncio.timeout(LIMIT):
        # What is sent before it listens is lost.
        while not _refuses(listening, user):
            counting.on_count(user, BOUND + 1)
            await asyncio.sleep(0.05)


async def test_what_one_process_counts_the_others_refuse(valkey: Valkey, start: Start) -> None:
    one, two, foreign = start(valkey, "shared"), start(valkey, "shared"), start(valkey, "foreign")
    await _heard(two, one)
    one.take("ann", BOUND)
    two.take("ann")
    async with asyncio.timeout(LIMIT):
        # It had one before.
        while not _refuses(two, "ann"):  # noqa: ASYNC110 - a limit announces nothing
            await asyncio.sleep(0.02)
    two.take("bob", BOUND)
    foreign.take("ann", BOUND)


async def test_a_process_does_not_count_its_own_twice(valkey: Valkey, start: Start) -> None:
    one, two = start(valkey, "own"), start(valkey, "own")
    await _heard(two, one)
    await _heard(one, two)
    one.take("ann", BOUND // 2)
    two.take("bob", BOUND)
    one.take("bob")
    async with asyncio.timeout(LIMIT):
        # Messages arrive in order: its own has arrived when the later one of another has.
        while not _refuses(one, "bob"):  # noqa: ASYNC110 - a limit announces nothing
            await asyncio.sleep(0.02)
    one.take("ann", BOUND // 2)


async def test_without_the_server_each_process_counts_alone(
    real_stores_folder: Path, tmp_path: Path, start: Start
) -> None:
    server = Valkey(real_stores_folder / f"rates-{tmp_path.name}")
    server.start()
    try:
        one, two = start(server, "down"), start(server, "down")
        await _heard(two, one)
        server.kill()
        one.take("ann", BOUND)
        with pytest.raises(TooManyRequests):
            one.take("ann")
        two.take("ann")
        server.start()
        await _heard(one, two)
    finally:
        server.kill()
