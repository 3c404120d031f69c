"""Registered workers on every database (S1-R23)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from sluicegate.stores.tool_workers import WorkerRegistrations

if TYPE_CHECKING:
    from sluicegate.stores.sql.database import Database
    from tests.stores.builders import Clock

ROUNDING = 0.01
"""Seconds by which the clock of a database and ours may count differently."""


@pytest.fixture
def workers(database: Database) -> WorkerRegistrations:
    return WorkerRegistrations(database, "app")


async def test_a_lease_runs_out_unless_it_is_renewed(
    workers: WorkerRegistrations, clock: Clock
) -> None:
    registered = time.monotonic()
    await workers.put("shop", "http://one/mcp", seconds=300)
    await workers.put("bank", "http://two/mcp", seconds=300)
    clock.ahead += 200
    renewed = time.monotonic()
    await workers.put("shop", "http://three/mcp", seconds=300)
    bank, shop = await workers.all()
    read = time.monotonic()
    assert (bank.name, bank.url) == ("bank", "http://two/mcp")
    assert (shop.name, shop.url) == ("shop", "http://three/mcp")
    assert 100 - (read - registered) - ROUNDING <= bank.seconds <= 100 + ROUNDING
    assert 300 - (read - renewed) - ROUNDING <= shop.seconds <= 300 + ROUNDING
    clock.ahead += 101
    assert [row.name for row in await workers.all()] == ["shop"]


async def test_a_worker_is_removed_once(workers: WorkerRegistrations, clock: Clock) -> None:
    await workers.put("shop", "http://one/mcp", seconds=300)
    await workers.put("late", "http://one/mcp", seconds=300)
    assert await workers.remove("shop")
    assert not await workers.remove("shop")
    clock.ahead += 301
    assert not await workers.remove("late")
    assert await workers.all() == []


async def test_applications_do_not_share_workers(
    workers: WorkerRegistrations, database: Database
) -> None:
    other = WorkerRegistrations(database, "other")
    await workers.put("shop", "http://one/mcp", seconds=300)
    assert await other.all() == []
    assert not await other.remove("shop")
    assert len(await workers.all()) == 1
