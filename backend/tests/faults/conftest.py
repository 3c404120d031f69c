"""Two replicas on one PostgreSQL database and one Valkey server, all of which may be killed."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.faults.served import Replica, client_of
from tests.fork_server import ForkServer
from tests.real_stores.postgres import Postgres
from tests.real_stores.valkey import Valkey


@dataclass(frozen=True)
class Pair:
    """The replicas and their stores."""

    one: Replica
    two: Replica
    postgres: Postgres
    valkey: Valkey


@pytest.fixture(scope="session")
def soak() -> Iterator[list[str]]:
    """The command of the soak test."""
    with ForkServer("tests.faults.soak.__main__") as server:
        yield server.command


@pytest.fixture(scope="session")
def _started(real_stores_folder: Path, fork_server: ForkServer) -> Iterator[Pair]:
    folder = Path(tempfile.mkdtemp(prefix="faults-", dir=real_stores_folder))
    postgres, valkey = Postgres(folder / "postgres"), Valkey(folder / "valkey")
    with ExitStack() as stack:
        postgres.create()
        for store, ends in ((postgres, postgres.stop), (valkey, valkey.kill)):
            stack.callback(ends)
            store.start()
        stores = (postgres.url(), valkey.url())
        pair = [Replica(name, folder, *stores, fork_server) for name in ("one", "two")]
        for replica in pair:
            stack.callback(replica.kill)
            replica.start()
        for replica in pair:
            replica.wait()
        yield Pair(pair[0], pair[1], postgres, valkey)


@pytest.fixture
def replicas(_started: Pair) -> Pair:
    """Both replicas, running."""
    _started.one.revive()
    _started.two.revive()
    return _started


@pytest.fixture
async def one(replicas: Pair) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the first replica."""
    async with client_of(replicas.one.url) as http:
        yield http


@pytest.fixture
async def two(replicas: Pair) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the second replica."""
    async with client_of(replicas.two.url) as http:
        yield http
