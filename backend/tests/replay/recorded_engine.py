"""An engine that plays the conformance scenarios and records them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.engine.options import EngineOptions
from sluicegate.replay.file_recorder import FileRecorder
from sluicegate.replay.recording import Recording, load_recording
from sluicegate.replay.recording_engine import RecordingEngine
from tests.agents.conformance_agent import root_agent
from tests.engine.talk import Talk


class RecordedEngineSetup:
    """The engine, its recorder, and the recordings."""

    def __init__(self, engine: RecordingEngine, recorder: FileRecorder) -> None:
        self.engine = engine
        self.recorder = recorder

    def talk(self, **more: Any) -> Talk:
        return Talk(self.engine, **more)

    def path(self, talk: Talk) -> Path:
        app = self.engine.survey.agents[0]
        return self.recorder.path(ChatKey(app, talk.user, talk.chat_id))

    def recording(self, talk: Talk) -> Recording:
        return load_recording(self.path(talk))


@asynccontextmanager
async def open_recording_engine(
    folder: Path, target: Any = root_agent, *, redact: Iterable[str] = (), **options: Any
) -> AsyncIterator[RecordedEngineSetup]:
    """Open an engine whose database and recordings lie in ``folder``, which is made if need be."""
    await asyncio.to_thread(folder.mkdir, exist_ok=True, parents=True)
    url = f"sqlite+aiosqlite:///{folder}/sluicegate.db"
    made = EngineOptions(sessions=url, artifacts=f"file:{folder}/artifacts", **options)
    recorder = FileRecorder(folder / "recordings", redact=redact)
    engine = await RecordingEngine.open(target, made, recorder=recorder)
    try:
        yield RecordedEngineSetup(engine, recorder)
    finally:
        await engine.close()
