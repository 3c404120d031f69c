"""A live chat has one socket: a newer one takes it over, and nothing else writes to it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from sluicegate.errors import (
    HeldElsewhere,
    TakenOver,
    TurnRunning,
)
from sluicegate.live.outbox import ChatEnded
from tests.engine.stage import Counted, HeldTool, calls, says, scripted, words
from tests.engine.talk import Talk
from tests.live.caller import Caller, calling, question

if TYPE_CHECKING:
    from tests.engine.stage import Open


async def test_a_newer_socket_takes_the_chat_over_with_its_pending_approval(
    open_stage: Open,
) -> None:
    paid = Counted()
    script = {"pay": [calls(("pay", {"n": 3})), says("It is paid.")]}
    engine = await open_stage(scripted(script, [paid.tool()]))
    async with calling(Caller(engine)) as first:
        await first.say("pay")
        second = Caller(engine, chat_id=first.chat_id, messages=first.messages)
        async with calling(second):
            ended = await first.frame(ChatEnded)
            assert (ended.error.code, ended.close_code) == ("taken_over", 4409)
            with pytest.raises(TakenOver):
                await first.start({"message": question("no")})
            assert words((await second.approve()).message) == "It is paid."
    assert paid.runs == [3]


async def test_a_claimed_call_ends_before_a_newer_socket_gets_the_chat(open_stage: Open) -> None:
    hold = HeldTool()
    script = {"hold": [calls(("hold", {"n": 3})), says("It is held.")]}
    engine = await open_stage(scripted(script, [hold.tool(require_confirmation=True)]))
    async with calling(Caller(engine)) as first:
        await first.say("hold")
        deciding = asyncio.create_task(first.approve())
        await hold.began.wait()
        second = Caller(engine, chat_id=first.chat_id)

        async def take_over() -> int:
            async with calling(second):
                return hold.ended

        taking = asyncio.create_task(take_over())
        await first.frame(ChatEnded)
        assert not taking.done()
        hold.may_end.set()
        assert await taking == 1
        await asyncio.wait([deciding])
        deciding.exception()
        [part] = [p for p in (await second.history())["parts"] if p["type"] == "tool-hold"]
        assert part["output"] == {"held": 3}


async def test_of_many_sockets_the_last_one_has_the_chat(open_stage: Open) -> None:
    engine = await open_stage(scripted([says("Hello.")]))
    chat = Caller(engine).chat_id
    sockets = [Caller(engine, chat_id=chat) for _ in range(5)]
    async with contextlib.AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(calling(each)) for each in sockets))
        [last] = [each for each in sockets if each.ended is None]
        assert words((await last.say("hi")).message) == "Hello."
    assert (await last.chats())["status"] == "ready"


async def test_a_live_chat_refuses_texts_from_elsewhere(open_stage: Open) -> None:
    engine = await open_stage(scripted([says("Hello.")]))
    async with calling(Caller(engine)) as caller:
        with pytest.raises(HeldElsewhere):
            await caller.start_elsewhere({"message": question("no")})
        with pytest.raises(TurnRunning, match="live"):
            await engine.delete_chat(caller.chat_id, user=caller.user)
        assert words((await caller.say("hi")).message) == "Hello."
    assert words((await Talk(engine, chat_id=caller.chat_id).say("hi")).message) == "Hello."
