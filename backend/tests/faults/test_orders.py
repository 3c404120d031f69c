"""Three approvals of one step, decided in every order, after restarts and by many tabs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from copy import deepcopy
from itertools import permutations
from pathlib import Path

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from tests.engine.stage import Counted, Prompts, calls, says, scripted
from tests.engine.talk import Talk, decide
from tests.patience import LEASE
from tests.stores.builders import PATIENT

DENIED = 1
"""The approval that is denied."""


class Stage:
    """An agent that requests three payments at once, and the effects."""

    def __init__(self, folder: Path) -> None:
        self.paid, self.prompts = Counted(), Prompts()
        self._url = f"sqlite+aiosqlite:///{folder}/chats.db"
        script = [calls(*(("pay", {"n": n}) for n in range(3))), says("Done.")]
        tools = [self.paid.tool()]
        self._agent = scripted(script, tools, before_model_callback=self.prompts)

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[ChatEngine]:
        options = EngineOptions(sessions=self._url, lease_ttl=LEASE)
        timings = EngineTimings(database=PATIENT)
        engine = await ChatEngine.open(self._agent, options, timings=timings)
        try:
            yield engine
        finally:
            await engine.close()

    def check(self) -> None:
        """Each tool ran once, the denied one never, and one model call has all results."""
        assert sorted(self.paid.runs) == [n for n in range(3) if n != DENIED]
        assert len(self.prompts.contents) == 2
        parts = [part for content in self.prompts.contents[-1] for part in content.parts or ()]
        assert len([part for part in parts if part.function_response]) == 3


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
async def test_f6_decisions_in_any_order_with_restarts_run_each_call_once(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    stage = Stage(tmp_path)
    async with stage.served() as engine:
        talk = Talk(engine)
        await talk.say("pay")
    cards = talk.asks()
    for number in order:
        async with stage.served() as engine:
            talk.engine = engine
            [part] = [p for p in talk.pending() if p["approval"]["id"] == cards[number]]
            decide(part, approved=number != DENIED)
            turn = await talk.post_last()
            assert turn.failed == (number != order[-1])
    stage.check()


@pytest.mark.parametrize("tabs", [1, 6])
async def test_f7_concurrent_decisions_of_one_or_six_tabs_run_each_call_once(
    tmp_path: Path, tabs: int
) -> None:
    stage = Stage(tmp_path)
    async with stage.served() as engine:
        talk = Talk(engine)
        await talk.say("pay")
        for number, part in enumerate(talk.pending()):
            decide(part, approved=number != DENIED)
        same = [
            Talk(engine, chat_id=talk.chat_id, messages=deepcopy(talk.messages))
            for _ in range(tabs)
        ]
        turns = await asyncio.gather(*(tab.post_last() for tab in same))
    assert not any(turn.failed for turn in turns)
    stage.check()
