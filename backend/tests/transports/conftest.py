"""A shared server with the fake engine for a module, and a socket for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.server.exchange import serving
from tests.server.fake_engine import FakeEngine, application
from tests.transports.socket_client import SocketClient, opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[tuple[FakeEngine, tuple[str, int]]]:
    """A server with the default settings."""
    engine = FakeEngine()
    async with serving(application(engine)) as address:
        yield engine, address


@pytest.fixture
def engine(shared: tuple[FakeEngine, tuple[str, int]]) -> FakeEngine:
    shared[0].__init__()  # type: ignore[misc]  # as good as new, and still the server's
    return shared[0]


@pytest_asyncio.fixture(loop_scope="module")
async def client(
    shared: tuple[FakeEngine, tuple[str, int]], engine: FakeEngine
) -> AsyncIterator[SocketClient]:
    async with opened(shared[1]) as client:
        yield client
