"""Engines that many examples share, each in a chat of its own."""

from __future__ import annotations

import logging
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from tests.properties.example_agent import agent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> str:
    """A place for databases: in memory where the system has one."""
    return tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None)


@pytest.fixture
async def engines(folder: str) -> AsyncIterator[dict[str, ChatEngine]]:
    """One engine for each approval style."""
    opened: dict[str, ChatEngine] = {}
    for style in ("call", "confirmation"):
        url = f"sqlite+aiosqlite:///{folder}/{style}.db"
        options = EngineOptions.model_validate(
            {
                "sessions": url,
                "artifacts": f"file:{folder}/artifacts",
                "approval_style": style,
                "max_turns_per_user": 50,
                "max_turns_per_minute": 1_000_000,
                "max_messages_per_minute": 1_000_000,
            }
        )
        opened[style] = await ChatEngine.open(agent, options)
    with _no_refused_chunk():
        yield opened
    for engine in opened.values():
        await engine.close()
    shutil.rmtree(folder)


@contextmanager
def _no_refused_chunk() -> Iterator[None]:
    """A chunk that the grammar refuses fails its turn, which an example may take for a failure."""
    refused: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: refused.append(record.getMessage())  # type: ignore[method-assign]
    handler.addFilter(lambda record: "ChunkOrderError" in record.getMessage())
    logger = logging.getLogger("sluicegate")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    assert refused == []
