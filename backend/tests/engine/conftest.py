"""An engine on a fresh SQLite file, playing the conformance scenarios."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from tests.agents.conformance_agent import root_agent
from tests.engine.talk import Talk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path


@pytest.fixture
def effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that counts what tools really did."""
    path = tmp_path / "effects"
    path.touch()
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(path))
    return path


@pytest.fixture
def open_engine(
    tmp_path: Path, effects: Path
) -> Callable[..., AbstractAsyncContextManager[ChatEngine]]:
    """Open engines on the test's own database, one after the other."""

    @asynccontextmanager
    async def opened(target: Any = root_agent, **options: Any) -> AsyncIterator[ChatEngine]:
        url = f"sqlite+aiosqlite:///{tmp_path}/sluicegate.db"
        engine = await ChatEngine.open(target, EngineOptions(sessions=url, **options))
        try:
            yield engine
        finally:
            await engine.close()

    return opened


@pytest.fixture
async def engine(
    open_engine: Callable[..., AbstractAsyncContextManager[ChatEngine]],
) -> AsyncIterator[ChatEngine]:
    """One engine with the defaults."""
    async with open_engine() as opened:
        yield opened


@pytest.fixture
def talk(engine: ChatEngine) -> Talk:
    """A chat with it."""
    return Talk(engine)
