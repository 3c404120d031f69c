"""A live model that fails while something else goes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sluicegate.live.outbox import Ended
from sluicegate.wire.messages import comparable
from tests.engine.stage import HeldTool, calls, part_of, says, scripted, words
from tests.engine.talk import Talk
from tests.live.caller import Caller, calling

if TYPE_CHECKING:
    from tests.engine.stage import Open

FAILS = {"parts": [], "error": {"code": 500, "message": "words-of-a-provider"}}


async def test_a_claimed_call_comes_to_its_end_though_the_model_fails(open_stage: Open) -> None:
    held = HeldTool()
    script = {"hold": [calls(("hold", {"n": 1})), says("Held.")], "330": [FAILS], ".": [says("Hi")]}
    engine = await open_stage(scripted(script, [held.tool(require_confirmation=True)]))
    caller = Caller(engine)
    async with calling(caller):
        await caller.say("hold")
        answering = asyncio.create_task(caller.approve())
        await held.began.wait()
        caller.speak(330)
        await caller.was_taken()
        assert not answering.done()
        held.may_end.set()
        turn = await answering
        assert turn.failed
        await caller.frame(Ended)
    assert held.ended == 1
    [row] = await engine.parts.ledger.rows(caller.chat._hold.chat)
    assert row.state == "executed"
    stored = (await caller.chats())["messages"][1]
    assert part_of(stored, "hold")["state"] == "output-available"
    assert comparable(stored) == comparable(turn.message)
    page = Talk(engine, chat_id=caller.chat_id)
    assert words((await page.say("hi")).message) == "Hi"
