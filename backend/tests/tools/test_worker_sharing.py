"""Servers that share a database know each other's registered workers (S1-R23)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sluicegate.errors import HeldElsewhere, Malformed, StoreUnavailable
from sluicegate.stores.workers import RegisteredWorker, WorkerRegistrations
from sluicegate.tools.remote_tools import RemoteToolSettings
from sluicegate.tools.worker_registry import WorkerRegistry, WorkerSharing
from tests.tools.test_workers import TOKEN, Shop, shop

__all__ = ["shop"]

ONE, TWO = "http://one/mcp", "http://two/mcp"
Server = Callable[[], WorkerRegistry]


@dataclass
class Shared(WorkerRegistrations):
    """A store in memory, with a clock that is handed in."""

    now: Callable[[], float]
    rows: dict[str, tuple[str, float]] = field(default_factory=dict)
    is_away: bool = False

    async def put(self, name: str, url: str, *, seconds: float) -> None:
        self.rows[name] = (url, self.now() + seconds)

    async def remove(self, name: str) -> bool:
        return self.rows.pop(name, None) is not None

    async def all(self) -> list[RegisteredWorker]:
        if self.is_away:
            raise StoreUnavailable("it is away")
        now = self.now()
        return [
            RegisteredWorker(name, url, until - now)
            for name, (url, until) in sorted(self.rows.items())
            if until > now
        ]


@pytest.fixture
def shared(shop: Shop) -> Shared:
    return Shared(lambda: shop.now)


@pytest.fixture
def server(shop: Shop, shared: Shared) -> Server:
    """One more server on the same database."""

    def made() -> WorkerRegistry:
        registry = WorkerRegistry(RemoteToolSettings(), lease=30, clock=lambda: shop.now)
        registry.share(WorkerSharing(shared, {"shop": TOKEN}.get))
        return registry

    return made


async def names(registry: WorkerRegistry) -> list[str]:
    await registry.refresh()
    return [tool.name for tool in registry.tools()]


async def test_a_worker_of_one_server_is_one_of_all_until_its_lease_ends(
    shop: Shop, server: Server
) -> None:
    here, there = server(), server()
    await here.register("shop", ONE, TOKEN)
    assert await names(there) == ["shop_pay"]
    shop.now += 29
    await there.register("shop", ONE, TOKEN)
    shop.now += 29
    assert await names(here) == await names(there) == ["shop_pay"]
    shop.now += 2
    assert await names(here) == await names(there) == []


async def test_who_registered_elsewhere_is_asked_once_by_those_who_keep_up(
    shop: Shop, server: Server
) -> None:
    here, there = server(), server()
    await here.register("shop", ONE, TOKEN)
    assert there.find("shop_pay") is None
    await there.keep_up()
    assert there.find("shop_pay") is not None
    del shop.listed[ONE]
    await there.keep_up()
    assert there.find("shop_pay") is not None
    assert await names(there) == []


async def test_a_worker_leaves_all_servers_wherever_it_says_so(server: Server) -> None:
    here, there = server(), server()
    await here.register("shop", ONE, TOKEN)
    assert await there.remove("shop")
    assert await names(here) == []
    assert not await here.remove("shop")


async def test_a_name_belongs_to_one_worker_over_all_servers(shop: Shop, server: Server) -> None:
    here, there = server(), server()
    await here.register("shop", ONE, TOKEN)
    with pytest.raises(HeldElsewhere, match="at another address and answers"):
        await there.register("shop", TWO, TOKEN)
    del shop.listed[ONE]
    await there.register("shop", TWO, TOKEN)
    assert await names(here) == ["shop_pay"]
    [worker] = here.workers()
    assert worker.link.url == TWO


async def test_each_server_calls_with_the_credential_of_its_own_file(server: Server) -> None:
    here, there = server(), server()
    await here.register("shop", ONE, TOKEN)
    await there.refresh()
    [worker] = there.workers()
    assert worker.link.token() == TOKEN


async def test_a_worker_that_the_others_could_not_call_is_refused(
    server: Server, shared: Shared
) -> None:
    for name, token in (("shop", "another-token"), ("bank", TOKEN)):
        with pytest.raises(Malformed, match="must stand behind the name"):
            await server().register(name, ONE, token)
    assert shared.rows == {}


async def test_a_worker_of_the_configuration_comes_first(server: Server) -> None:
    here, there = server(), server()
    there.add("shop", TWO, lambda: None)
    await here.register("shop", ONE, TOKEN)
    await there.refresh()
    assert [worker.link.url for worker in there.workers()] == [TWO]


async def test_what_is_known_stays_while_the_store_is_away(
    shop: Shop, server: Server, shared: Shared, caplog: pytest.LogCaptureFixture
) -> None:
    here = server()
    await here.register("shop", ONE, TOKEN)
    shared.is_away = True
    shop.now += 60
    for _ in range(3):
        assert await names(here) == ["shop_pay"]
    assert caplog.text.count("are not known") == 1
    shared.is_away = False
    assert await names(here) == []
