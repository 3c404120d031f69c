"""A process killed at each point of an approved call: it never runs twice and is never lost."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.testing.message_comparison import comparable
from tests.agents.conformance_agent import root_agent
from tests.engine.talk import Talk, decide
from tests.faults.paying_agents import AGENTS
from tests.patience import LEASE
from tests.server.webhook_receiver import Receiver, settings_of
from tests.stores.builders import PATIENT

BACKEND = Path(__file__).resolve().parents[2]
TIMINGS = EngineTimings(database=PATIENT)

EXPECTED = {
    "pending": (1, "output-available"),
    "decided": (1, "output-available"),
    "claimed": (0, "output-error"),
    "effect": (1, "output-error"),
    "outcome": (1, "output-available"),
}
"""Effects after the restart, and the state in which the call ends."""


def options_of(database: Path, **more: Any) -> EngineOptions:
    """The options of an engine on the database of the killed process."""
    return EngineOptions(sessions=f"sqlite+aiosqlite:///{database}", lease_ttl=LEASE, **more)


async def killed(
    database: Path, point: str, *agent: str, module: str = "dying_server"
) -> list[Any]:
    """Let a server approve a call and die; returns the messages of its client."""
    dying = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", f"tests.faults.{module}", str(database), "chat", point, *agent),
        cwd=BACKEND,
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await dying.communicate()
    assert dying.returncode == -signal.SIGKILL
    messages: list[Any] = json.loads(printed)
    return messages


WAYS = [
    *(("dying_server", point) for point in ("pending", "effect")),
    *(("dying_live", point) for point in ("pending", "decided", "effect")),
]
"""Over which transport a server dies, and where; what follows is the same. Forked ones die more."""


@pytest.mark.parametrize(("module", "point"), WAYS)
async def test_a_killed_server_never_runs_a_call_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, point: str
) -> None:
    effects = tmp_path / "effects"
    effects.touch()
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(effects))
    database = tmp_path / "chats.db"
    printed = await killed(database, point, module=module)
    options = options_of(database)
    engine = await ChatEngine.open(root_agent, options, timings=TIMINGS)
    try:
        talk = Talk(engine, chat_id="chat", messages=printed)
        # Messages that were sent live while the approval was pending are shown after the decision.
        stored = await talk.history()
        [card] = [part for part in stored["parts"] if "approval" in part]
        awaited = "approval-requested" if point == "pending" else "approval-responded"
        assert card["state"] == awaited
        if point == "pending":
            decide(talk.pending()[0], approved=True)
        turn = await talk.post_last()
        assert not turn.failed
        messages = (await engine.get_chat("chat", user=talk.user))["messages"]
        assert len(messages) == (4 if module == "dying_live" else 2)
        stored = messages[1]
        assert comparable(stored) == comparable(talk.messages[-1])
    finally:
        await engine.close()
    count, state = EXPECTED[point]
    assert len(effects.read_text().splitlines()) == count
    [card] = [part for part in stored["parts"] if "approval" in part]
    assert card["state"] == state
    if state == "output-error":
        assert "unknown" in card["errorText"]


RECOVERED = {
    ("idempotent", "claimed"): (1, "output-available"),
    ("idempotent", "effect"): (1, "output-available"),
    ("find", "claimed"): (0, "output-error"),
    ("find", "effect"): (1, "output-available"),
}
"""Effects after the restart, and how the call ends, for tools that can say or may run again."""


@pytest.mark.parametrize(("agent", "point"), RECOVERED)
async def test_a_killed_call_is_looked_up_or_run_again_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, point: str
) -> None:
    effects = tmp_path / "effects"
    effects.touch()
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(effects))
    database = tmp_path / "chats.db"
    messages = await killed(database, point, agent)
    options = options_of(database)
    engine = await ChatEngine.open(AGENTS[agent], options, timings=TIMINGS)
    try:
        talk = Talk(engine, chat_id="chat", messages=messages)
        turn = await talk.post_last()
        assert not turn.failed
        assert comparable(await talk.history()) == comparable(turn.message)
    finally:
        await engine.close()
    [card] = [part for part in turn.message["parts"] if "approval" in part]
    count, state = RECOVERED[agent, point]
    assert (len(effects.read_text().splitlines()), card["state"]) == (count, state)


@pytest.mark.parametrize("point", ["decided", "claimed", "released", "responded", "asked"])
async def test_a_killed_call_that_asks_again_keeps_its_answers_and_has_one_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    effects = tmp_path / "effects"
    effects.touch()
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(effects))
    database = tmp_path / "chats.db"
    messages = await killed(database, point, "asks twice")
    options = options_of(database)
    engine = await ChatEngine.open(AGENTS["asks twice"], options, timings=TIMINGS)
    try:
        talk = Talk(engine, chat_id="chat", messages=messages)
        turn = await talk.post_last()
        assert not turn.failed, turn.chunks[-1]
        talk.messages[-1] = await talk.history()
        assert [part["approval"]["descriptor"]["payload"] for part in talk.pending()] == (
            [] if point == "claimed" else [{"step": 2}]
        )
        assert effects.read_text() == ""
        if point == "claimed":
            [card] = [part for part in talk.messages[-1]["parts"] if "approval" in part]
            assert "unknown" in card["errorText"]
            return
        turn = await talk.approve()
        assert comparable(await talk.history()) == comparable(turn.message)
    finally:
        await engine.close()
    assert len(effects.read_text().splitlines()) == 1


async def test_a_call_whose_process_died_is_reported_although_nobody_opens_its_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    effects = tmp_path / "effects"
    effects.touch()
    monkeypatch.setenv("SLUICEGATE_EFFECTS", str(effects))
    database = tmp_path / "chats.db"
    messages = await killed(database, "effect")
    with Receiver().running() as receiver:
        options = options_of(database, **settings_of(receiver, tmp_path))
        timings = EngineTimings(sweep=0.02, database=PATIENT)
        engine = await ChatEngine.open(root_agent, options, timings=timings)
        try:
            [lost] = await receiver.accepted(1)
            assert (lost.kind, lost.data["chatId"]) == ("approval.unknown", "chat")
            assert (lost.data["state"], "decidedBy" in lost.data) == ("unknown", True)
            # The client sends its decision again, as it would have without this.
            talk = Talk(engine, chat_id="chat", messages=messages)
            turn = await talk.post_last()
            assert not turn.failed
            assert comparable(await talk.history()) == comparable(turn.message)
        finally:
            await engine.close()
        assert receiver.is_idle
    [card] = [part for part in turn.message["parts"] if "approval" in part]
    assert "unknown" in card["errorText"]
    assert len(effects.read_text().splitlines()) == 1
