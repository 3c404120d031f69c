"""Killed at each point of an approved call, restarted, asked again: never twice, never lost."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.wire.messages import comparable
from tests.agents.conformance_agent import root_agent
from tests.engine.talk import Talk, decide

BACKEND = Path(__file__).resolve().parents[2]

EXPECTED = {
    "pending": (1, "output-available"),
    "decided": (1, "output-available"),
    "claimed": (0, "output-error"),
    "effect": (1, "output-error"),
    "outcome": (1, "output-available"),
}
"""Effects after the restart, and the state in which the call ends."""


@pytest.mark.parametrize("point", EXPECTED)
async def test_a_killed_server_never_runs_a_call_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    effects = tmp_path / "effects"
    effects.touch()
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(effects))
    database = tmp_path / "chats.db"
    dying = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.faults.dying_server", str(database), "chat", point),
        cwd=BACKEND,
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await dying.communicate()
    assert dying.returncode == -signal.SIGKILL
    options = EngineOptions(sessions=f"sqlite+aiosqlite:///{database}")
    engine = await ChatEngine.open(root_agent, options)
    try:
        talk = Talk(engine, chat_id="chat", messages=json.loads(printed))
        stored = await talk.history()
        [card] = [part for part in stored["parts"] if "approval" in part]
        awaited = "approval-requested" if point == "pending" else "approval-responded"
        assert card["state"] == awaited
        if point == "pending":
            decide(talk.pending()[0], approved=True)
        turn = await talk.post_last()
        assert not turn.failed
        stored = await talk.history()
        assert comparable(stored) == comparable(talk.messages[-1])
    finally:
        await engine.close()
    count, state = EXPECTED[point]
    assert len(effects.read_text().splitlines()) == count
    [card] = [part for part in stored["parts"] if "approval" in part]
    assert card["state"] == state
    if state == "output-error":
        assert "unknown" in card["errorText"]
