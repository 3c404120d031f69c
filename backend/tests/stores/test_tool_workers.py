"""Registered workers on every database (S1-R23)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluicegate.stores.tool_workers import WorkerRegistrations

if TYPE_CHECKING:
    from sluicegate.stores.sql.database import Database
    from tests.stores.builders import Clock


@pytest.fixture
def workers(database: Database) -> WorkerRegistrations:
    return WorkerRegistrations(database, "app")


async def known(workers: WorkerRegistrations) -> list[tuple[str, str, int]]:
    return [(row.name, row.url, round(row.seconds)) for row in await workers.all()]


async def test_a_lease_runs_out_unless_it_is_renewed(
    workers: WorkerRegistrations, clock: Clock
) -> None:
    await workers.put("shop", "http://one/mcp", seconds=300)
    await workers.put("bank", "http://two/mcp", seconds=300)
    clock.ahead += 200
    await workers.put("shop", "http://three/mcp", seconds=300)
    assert await known(workers) == [
        ("bank", "http://two/mcp", 100),
        ("shop", "http://three/mcp", 300),
    ]
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
