"""An SQLite database as a server leaves it that has only started, so that no test makes its own."""

from __future__ import annotations

import asyncio
import functools
import tempfile
import threading
from pathlib import Path

from google.adk.agents import LlmAgent

from sluicegate import ScriptedModel
from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions


def new_database(file: Path) -> str:
    """Return the URL of a file; if there is none yet, it has the tables of this version."""
    if not file.exists():
        file.write_bytes(_with_tables())
    return f"sqlite+aiosqlite:///{file}"


@functools.cache
def _with_tables() -> bytes:
    """The bytes of the file, once for each process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "new.db"
        # The thread of a test may run an event loop already.
        thread = threading.Thread(target=asyncio.run, args=(_create(file),))
        thread.start()
        thread.join()
        return file.read_bytes()


async def _create(file: Path) -> None:
    said = {"match": ".", "responses": [{"parts": [{"text": "."}]}]}
    agent = LlmAgent(name="nobody", model=ScriptedModel.from_data({"scenarios": [said]}))
    options = EngineOptions(sessions=f"sqlite+aiosqlite:///{file}")
    engine = await ChatEngine.open(agent, options)
    await engine.close()
