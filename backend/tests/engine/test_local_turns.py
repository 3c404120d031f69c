"""Drain: claimed calls complete, other turns end at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.turn.local_turns import RESTARTS
from sluicegate.errors import Unavailable
from sluicegate.wire.chunks import ErrorChunk, TextDeltaChunk
from sluicegate.wire.ui_messages import UIMessage
from tests.engine.stage import HeldTool, Open, calls, part_of, says, scripted, words
from tests.engine.talk import Talk, Turn, decide

HOLD = [calls(("hold", {"n": 1})), says("done")]


async def answered(talk: Talk) -> asyncio.Task[Turn]:
    """An approval whose call is running."""
    await talk.say("hold")
    decide(talk.pending()[0], approved=True)
    return asyncio.create_task(talk.post_last())


async def states(engine: ChatEngine, talk: Talk) -> list[str]:
    page = await engine.approvals.waiting(user=talk.user, limit=10, after=None)
    assert page["approvals"] == []
    rows = await engine.resources.ledger.rows(talk.key)
    return [row.state for row in rows]


async def test_a_claimed_call_ends_before_its_turn(open_stage: Open) -> None:
    held = HeldTool()
    engine = await open_stage(scripted(HOLD, [held.tool(require_confirmation=True)]))
    talk = Talk(engine)
    turn = await answered(talk)
    await held.began.wait()
    ending = asyncio.create_task(engine.drain(within=60.0, hurried=asyncio.Event()))
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="restarting"):
        await Talk(engine).say("hold")
    assert not ending.done()
    held.may_end.set()
    await ending
    last = (await turn).chunks[-1]
    assert isinstance(last, ErrorChunk)
    assert last.error_text == RESTARTS
    assert part_of(await talk.history(), "hold")["output"] == {"held": 1}
    assert (held.ended, await states(engine, talk)) == (1, ["executed"])


@pytest.mark.parametrize("way", ["time is up", "hurried"])
async def test_a_call_that_does_not_end_is_cancelled_and_its_outcome_is_unknown(
    open_stage: Open, way: str
) -> None:
    held, hurried = HeldTool(), asyncio.Event()
    engine = await open_stage(scripted(HOLD, [held.tool(require_confirmation=True)]))
    talk = Talk(engine)
    turn = await answered(talk)
    await held.began.wait()
    if way == "hurried":
        hurried.set()
    await engine.drain(within=60.0 if way == "hurried" else 0.01, hurried=hurried)
    assert isinstance((await turn).chunks[-1], ErrorChunk)
    assert (held.ended, await states(engine, talk)) == (0, ["unknown"])
    assert "unknown" in part_of(await talk.history(), "hold")["errorText"]


async def test_a_turn_without_a_claimed_call_ends_at_once_and_keeps_its_text(
    open_stage: Open,
) -> None:
    engine = await open_stage(scripted([says("I am still at it", hang=True)]))
    talk = Talk(engine)
    message: UIMessage = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "go"}]}
    talk.messages.append(message)
    reader = await talk.start({"message": message})
    received = []
    async for chunk in reader:
        received.append(chunk)
        if isinstance(chunk, TextDeltaChunk) and chunk.delta.endswith("it"):
            await engine.drain(within=60.0, hurried=asyncio.Event())
    await reader.aclose()
    assert isinstance(talk.take(received).chunks[-1], ErrorChunk)
    assert words(await talk.history()) == words(talk.messages[-1]) == "I am still at it"


async def test_open_approvals_stay_open(open_stage: Open) -> None:
    held = HeldTool()
    held.may_end.set()
    agent = scripted(HOLD, [held.tool(require_confirmation=True)])
    engine = await open_stage(agent)
    talk = Talk(engine)
    await talk.say("hold")
    await engine.drain(within=60.0, hurried=asyncio.Event())
    await engine.close()
    talk.engine = await open_stage(agent)
    done: Any = await talk.approve()
    assert (done.finish_reason, held.ended) == ("stop", 1)
