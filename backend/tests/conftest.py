"""Fixtures of all tests, such as real stores that start when a test of the process wants them."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.fork_server import ForkServer
from tests.parts import left_out
from tests.real_stores.postgres import Postgres
from tests.real_stores.valkey import Valkey
from tests.tools.worker_process import WorkerForkServer

# A deadline for each example would measure how busy the machine is.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rows of long tables that this run does not play."""
    others = left_out(items)
    if others:
        config.hook.pytest_deselected(items=others)
        omitted = set(others)
        items[:] = [item for item in items if item not in omitted]


def pytest_collection_finish() -> None:
    """Leave what is imported to the end: the collector would visit it for a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that counts the effects of tools."""
    path = tmp_path / "effects"
    path.touch()
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(path))
    return path


@pytest.fixture(scope="session")
def real_stores_folder() -> Iterator[Path]:
    """Where real servers keep their files: in memory where the system has such a place."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="sluicegate-", dir=place))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres(real_stores_folder: Path) -> Iterator[Postgres]:
    """A PostgreSQL server for all tests of this worker."""
    server = Postgres(real_stores_folder / "postgres")
    server.create()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def valkey(real_stores_folder: Path) -> Iterator[Valkey]:
    """A Valkey server for all tests of this worker."""
    server = Valkey(real_stores_folder / "valkey")
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Where processes of ``sluicegate`` come from."""
    with ForkServer() as server:
        yield server


@pytest.fixture(scope="session")
def nursery(
    tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer
) -> Iterator[WorkerForkServer]:
    """Where remote tool workers come from."""
    made = WorkerForkServer(tmp_path_factory.mktemp("workers"), fork_server)
    yield made
    made.close()
