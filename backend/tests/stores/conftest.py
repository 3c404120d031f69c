"""The stores under test; a further implementation is one more parameter here."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from sluicegate.stores.approvals.grants import Grants
from sluicegate.stores.approvals.inbox import ApprovalInbox
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.chats import ChatIndex
from sluicegate.stores.leases.database_leases import DatabaseLeases
from sluicegate.stores.leases.process_leases import ProcessLeases
from sluicegate.stores.sql.database import Database
from sluicegate.stores.streams.memory import MemoryStreamStore
from sluicegate.stores.streams.valkey import ValkeyStreamStore
from tests.real_stores.databases import flush, fresh_database
from tests.stores.builders import PATIENT_STREAMS, Clock, open_database

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from sluicegate.stores.leases.base import Leases
    from sluicegate.stores.streams.base import StreamStore
    from tests.real_stores.postgres import Postgres
    from tests.real_stores.valkey import Valkey


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "valkey", "valkey elsewhere"])
def stream_kind(request: pytest.FixtureRequest) -> str:
    """The store of the chunks; ``elsewhere`` is read by another process than the writing one."""
    kind: str = request.param
    return kind


@pytest.fixture
async def make_stream_store(
    stream_kind: str, request: pytest.FixtureRequest
) -> AsyncIterator[Callable[..., StreamStore]]:
    """A factory with the limits ``max_chunks`` and ``max_bytes``."""
    if stream_kind == "memory":
        yield MemoryStreamStore
        return
    server: Valkey = request.getfixturevalue("valkey")
    await flush(server)
    made: list[ValkeyStreamStore] = []

    def make(**limits: int) -> StreamStore:
        made.append(ValkeyStreamStore(server.url(), timings=PATIENT_STREAMS, **limits))
        return made[-1]

    yield make
    for store in made:
        await store.aclose()


@pytest.fixture
def streams(make_stream_store: Callable[..., StreamStore]) -> StreamStore:
    return make_stream_store()


@pytest.fixture
def reading(
    stream_kind: str, streams: StreamStore, make_stream_store: Callable[..., StreamStore]
) -> StreamStore:
    """The store that reads the turns that ``streams`` writes."""
    return make_stream_store() if stream_kind == "valkey elsewhere" else streams


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where the system has one: most tests need no disk that syncs."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@pytest.fixture
def sqlite_url(folder: Path) -> str:
    return f"sqlite+aiosqlite:///{folder / 'chats.db'}"


@pytest.fixture
async def postgresql_url(postgres: Postgres) -> AsyncIterator[str]:
    async with fresh_database(postgres) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def database(database_url: str, clock: Clock) -> AsyncIterator[Database]:
    database = await open_database(database_url, clock_offset=clock)
    yield database
    await database.close()


@pytest.fixture
def ledger(database: Database) -> Ledger:
    return Ledger(database)


@pytest.fixture
def grants(database: Database, ledger: Ledger) -> Grants:
    return Grants(database, ledger)


@pytest.fixture
def inbox(database: Database) -> ApprovalInbox:
    return ApprovalInbox(database)


@pytest.fixture(params=["sqlite", "postgresql", "in the process"])
def leases_url(request: pytest.FixtureRequest) -> str | None:
    """The URL of the database of the leases, None for leases in memory."""
    if request.param == "in the process":
        return None
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def leases(leases_url: str | None, clock: Clock) -> AsyncIterator[Leases]:
    if leases_url is None:
        yield ProcessLeases(clock)
        return
    database = await open_database(leases_url, clock_offset=clock)
    yield DatabaseLeases(database)
    await database.close()


@pytest.fixture
def chats(database: Database) -> ChatIndex:
    return ChatIndex(database)
