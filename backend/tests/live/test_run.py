"""A live run with calls: it fails, or transfers to another agent, while they run or wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from google.adk.agents.llm_agent import LlmAgent

from sluicegate.live.outgoing_frame_queue import ChatEnded
from sluicegate.replay import ScriptedModel
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.live_frames import TurnCompleteFrame
from tests.engine.stage import Counted, HeldTool, calls, part_of, says, scripted, words
from tests.engine.talk import Talk
from tests.live.caller import Caller, agree, calling
from tests.live.model_input import record_input

if TYPE_CHECKING:
    from tests.engine.stage import Open

FAILS = {"parts": [], "error": {"code": 500, "message": "words-of-a-provider"}}


async def test_a_claimed_call_completes_after_the_model_fails(open_stage: Open) -> None:
    held = HeldTool()
    script = {"hold": [calls(("hold", {"n": 1})), says("Held.")], "330": [FAILS], ".": [says("Hi")]}
    agent = scripted(script, [held.tool(require_confirmation=True)])
    model_input = record_input(agent)
    engine = await open_stage(agent)
    caller = Caller(engine)
    async with calling(caller):
        await caller.say("hold")
        answering = asyncio.create_task(caller.approve())
        await held.began.wait()
        caller.speak(330)
        await model_input.audio(2)
        assert not answering.done()
        held.may_end.set()
        turn = await answering
        assert turn.failed
        await caller.frame(ChatEnded)
    assert held.ended == 1
    [row] = await engine.resources.ledger.rows(caller.key)
    assert row.state == "executed"
    stored = (await caller.chats())["messages"][1]
    assert part_of(stored, "hold")["state"] == "output-available"
    assert comparable(stored) == comparable(turn.message)
    page = Talk(engine, chat_id=caller.chat_id)
    assert words((await page.say("hi")).message) == "Hi"


TRANSFER = ("transfer_to_agent", {"agent_name": "back"})


def agents(responses: dict[str, list[Any]], *tools: Any) -> LlmAgent:
    """Two agents; the first one has the tools."""
    scenarios: list[dict[str, Any]] = [
        {"match": match, "agent": "front", "responses": said} for match, said in responses.items()
    ]
    scenarios.append({"match": ".", "agent": "back", "responses": [says("Back here.")]})
    model = ScriptedModel.from_data({"scenarios": scenarios}, root="front")
    back = LlmAgent(name="back", model=model)
    return LlmAgent(name="front", model=model, sub_agents=[back], tools=list(tools))


async def test_a_transfer_is_refused_while_a_call_waits(
    open_stage: Open,
) -> None:
    pay = Counted()
    script = {
        "pay": [calls(("pay", {"n": 3})), says("Paid.")],
        "330": [calls(TRANSFER), says("Not now.")],
    }
    engine = await open_stage(agents(script, pay.tool()))
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        caller.speak(330)
        await caller.frame(TurnCompleteFrame, 3)
        turn = await caller.approve()
        assert words(turn.message) == "Paid."
        assert pay.runs == [3]
        spoken = await caller.spoken_turn()
        assert words(spoken.message) == "Not now."
        await agree(caller)


async def test_a_gated_call_beside_a_transfer_requests_approval_first(
    open_stage: Open,
) -> None:
    pay = Counted()
    script = {"pay": [calls(("pay", {"n": 3}), TRANSFER), calls(TRANSFER)]}
    engine = await open_stage(agents(script, pay.tool()))
    async with calling(Caller(engine)) as caller:
        assert (await caller.say("pay")).finish_reason == "tool-calls"
        turn = await caller.approve()
        assert pay.runs == [3]
        assert words(turn.message) == "Back here."
        await agree(caller)


async def test_a_transfer_is_refused_while_a_call_runs(
    open_stage: Open,
) -> None:
    held = HeldTool()
    script = {
        "hold": [calls(("hold", {"n": 3})), says("Held.")],
        "330": [calls(TRANSFER), says("Not now.")],
    }
    engine = await open_stage(agents(script, held.tool(require_confirmation=True)))
    async with calling(Caller(engine)) as caller:
        await caller.say("hold")
        answering = asyncio.create_task(caller.approve())
        await held.began.wait()
        caller.speak(330)
        await caller.frame(TurnCompleteFrame, 3)
        held.may_end.set()
        turn = await answering
        assert held.ended == 1
        assert words(turn.message) == "Held."
        await agree(caller)
