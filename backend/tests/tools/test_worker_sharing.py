"""Registrations shared by several servers of one database (S1-R23)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sluicegate.errors import HeldByAnotherOwner, Malformed, StoreUnavailable
from sluicegate.stores.tool_workers import RegisteredWorker, WorkerRegistrations
from sluicegate.tools.worker_registry import WorkerRegistry, WorkerSharing
from tests.tools.test_workers import TOKEN, Network, network

__all__ = ["network"]

ONE, TWO = "http://one/mcp", "http://two/mcp"
Server = Callable[[], WorkerRegistry]


@dataclass
class SharedRegistrations(WorkerRegistrations):
    """A store in memory, with a clock for the leases."""

    now: Callable[[], float]
    rows: dict[str, tuple[str, float]] = field(default_factory=dict)
    is_unavailable: bool = False

    async def put(self, name: str, url: str, *, seconds: float) -> None:
        self.rows[name] = (url, self.now() + seconds)

    async def remove(self, name: str) -> bool:
        return self.rows.pop(name, None) is not None

    async def all(self) -> list[RegisteredWorker]:
        if self.is_unavailable:
            raise StoreUnavailable("no connection")
        now = self.now()
        return [
            RegisteredWorker(name, url, until - now)
            for name, (url, until) in sorted(self.rows.items())
            if until > now
        ]


@pytest.fixture
def shared(network: Network) -> SharedRegistrations:
    return SharedRegistrations(lambda: network.now)


@pytest.fixture
def server(network: Network, shared: SharedRegistrations) -> Server:
    """Starts another server on the same database."""

    def start() -> WorkerRegistry:
        registry = network.registry()
        registry.share(WorkerSharing(shared, {"shop": TOKEN}.get))
        return registry

    return start


async def names(registry: WorkerRegistry) -> list[str]:
    await registry.refresh()
    return [tool.name for tool in registry.tools()]


async def test_a_worker_of_one_server_is_a_worker_of_all_until_its_lease_ends(
    network: Network, server: Server
) -> None:
    here, there = server(), server()
    await here.register("shop", ONE, TOKEN)
    assert await names(there) == ["shop_pay"]
    network.now += 29
    await there.register("shop", ONE, TOKEN)
    network.now += 29
    assert await names(here) == await names(there) == ["shop_pay"]
    network.now += 2
    assert await names(here) == await names(there) == []


async def test_a_worker_of_another_server_is_listed_once_by_refresh_new(
    network: Network, server: Server
) -> None:
    here, there = server(), server()
    await here.register("shop", ONE, TOKEN)
    assert there.find("shop_pay") is None
    await there.refresh_new()
    assert there.find("shop_pay") is not None
    del network.listed[ONE]
    await there.refresh_new()
    assert there.find("shop_pay") is not None
    assert await names(there) == []


async def test_a_worker_is_removed_from_all_servers(server: Server) -> None:
    here, there = server(), server()
    await here.register("shop", ONE, TOKEN)
    assert await there.remove("shop")
    assert await names(here) == []
    assert not await here.remove("shop")


async def test_a_name_belongs_to_one_worker_on_all_servers(
    network: Network, server: Server
) -> None:
    here, there = server(), server()
    await here.register("shop", ONE, TOKEN)
    with pytest.raises(HeldByAnotherOwner, match="at another address and answers"):
        await there.register("shop", TWO, TOKEN)
    del network.listed[ONE]
    await there.register("shop", TWO, TOKEN)
    assert await names(here) == ["shop_pay"]
    [worker] = here.workers()
    assert worker.client.url == TWO


async def test_each_server_uses_the_credential_of_its_own_file(server: Server) -> None:
    here, there = server(), server()
    await here.register("shop", ONE, TOKEN)
    await there.refresh()
    [worker] = there.workers()
    assert worker.client.token() == TOKEN


async def test_a_worker_that_other_servers_cannot_call_is_refused(
    server: Server, shared: SharedRegistrations
) -> None:
    for name, token in (("shop", "another-token"), ("bank", TOKEN)):
        with pytest.raises(Malformed, match="must stand behind the name"):
            await server().register(name, ONE, token)
    assert shared.rows == {}


async def test_a_configured_worker_takes_precedence(server: Server) -> None:
    here, there = server(), server()
    there.add("shop", TWO, lambda: None)
    await here.register("shop", ONE, TOKEN)
    await there.refresh()
    assert [worker.client.url for worker in there.workers()] == [TWO]


async def test_registrations_are_kept_while_the_store_is_unavailable(
    network: Network, server: Server, shared: SharedRegistrations, caplog: pytest.LogCaptureFixture
) -> None:
    here = server()
    await here.register("shop", ONE, TOKEN)
    shared.is_unavailable = True
    network.now += 60
    for _ in range(3):
        assert await names(here) == ["shop_pay"]
    assert caplog.text.count("are not known") == 1
    shared.is_unavailable = False
    assert await names(here) == []
