"""A live chat has one socket: a newer one takes it over, and nothing else writes to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import pytest

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import (
    HeldByAnotherOwner,
    TakenOver,
    TurnRunning,
)
from sluicegate.live.outgoing_frame_queue import ChatEnded
from sluicegate.stores.leases.database_leases import DatabaseLeases
from tests.engine.stage import Counted, HeldTool, calls, says, scripted, words
from tests.engine.talk import Talk
from tests.live.caller import LIMIT, Caller, calling, question
from tests.stores.builders import end_leases

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent

    from sluicegate.engine.chat_engine import ChatEngine
    from tests.engine.stage import Open, OpenReplicas
    from tests.engine.talk import Turn

    OpenTwo: TypeAlias = Callable[[BaseAgent], Awaitable[tuple[ChatEngine, ChatEngine]]]


is_shared = pytest.mark.parametrize("streams_url", ["shared streams"], indirect=True)


@pytest.fixture(params=["one process", "two replicas"])
def open_two(
    request: pytest.FixtureRequest, open_stage: Open, open_replicas: OpenReplicas
) -> OpenTwo:
    """Opens an agent; returns the engines of the first socket and of the newer one."""

    async def open_one(agent: BaseAgent) -> tuple[ChatEngine, ChatEngine]:
        engine = await open_stage(agent)
        return engine, engine

    return open_one if request.param == "one process" else open_replicas


@is_shared
async def test_a_newer_socket_takes_the_chat_over_with_its_pending_approval(
    open_two: OpenTwo,
) -> None:
    paid = Counted()
    script = {"pay": [calls(("pay", {"n": 3})), says("It is paid.")]}
    one, two = await open_two(scripted(script, [paid.tool()]))
    async with calling(Caller(one)) as first:
        await first.say("pay")
        second = Caller(two, chat_id=first.chat_id, messages=first.messages)
        async with calling(second):
            ended = await first.frame(ChatEnded)
            assert (ended.error.code, ended.reason) == ("taken_over", "lease_lost")
            with pytest.raises(TakenOver):
                await first.start({"message": question("no")})
            assert words((await second.approve()).message) == "It is paid."
    assert paid.runs == [3]


@is_shared
async def test_a_claimed_call_ends_before_a_newer_socket_gets_the_chat(open_two: OpenTwo) -> None:
    hold = HeldTool()
    script = {"hold": [calls(("hold", {"n": 3})), says("It is held.")]}
    one, two = await open_two(scripted(script, [hold.tool(require_confirmation=True)]))
    async with calling(Caller(one)) as first:
        await first.say("hold")
        deciding = asyncio.create_task(first.approve())
        await hold.began.wait()
        second = Caller(two, chat_id=first.chat_id)

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


@is_shared
async def test_of_many_sockets_the_last_one_has_the_chat(open_two: OpenTwo) -> None:
    engines = await open_two(scripted([says("Hello.")]))
    chat = Caller(engines[0]).chat_id
    sockets = [Caller(engine, chat_id=chat) for _ in range(3) for engine in engines]
    async with contextlib.AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(calling(each)) for each in sockets))
        [last] = [each for each in sockets if each.ended is None]
        assert words((await last.say("hi")).message) == "Hello."
    assert (await last.chats())["status"] == "ready"


@is_shared
async def test_a_socket_takes_the_chat_over_that_another_one_got_while_it_asked_for_it(
    open_replicas: OpenReplicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await open_replicas(scripted([says("Hello.")]))
    release = one.resources.replicas.release
    asked, may_ask = asyncio.Event(), asyncio.Event()

    async def ask(chat: ChatKey, within: float) -> bool:
        if not asked.is_set():
            asked.set()
            await may_ask.wait()
        return await release(chat, within)

    monkeypatch.setattr(one.resources.replicas, "release", ask)
    async with contextlib.AsyncExitStack() as stack:
        remote = await stack.enter_async_context(calling(Caller(two)))
        newest = Caller(one, chat_id=remote.chat_id)
        opening = asyncio.create_task(stack.enter_async_context(calling(newest)))
        await asked.wait()
        second = Caller(one, chat_id=remote.chat_id)
        await stack.enter_async_context(calling(second))
        may_ask.set()
        await opening
        ended = await second.frame(ChatEnded)
        assert ended.error.code == "taken_over"
        assert words((await newest.say("hi")).message) == "Hello."


async def test_a_live_chat_refuses_texts_from_elsewhere(open_stage: Open) -> None:
    engine = await open_stage(scripted([says("Hello.")]))
    async with calling(Caller(engine)) as caller:
        with pytest.raises(HeldByAnotherOwner):
            await caller.start_elsewhere({"message": question("no")})
        with pytest.raises(TurnRunning, match="live"):
            await engine.delete_chat(caller.chat_id, user=caller.user)
        assert words((await caller.say("hi")).message) == "Hello."
    assert words((await Talk(engine, chat_id=caller.chat_id).say("hi")).message) == "Hello."


@is_shared
async def test_a_chat_is_taken_over_from_a_replica_that_is_gone(
    open_replicas: OpenReplicas,
) -> None:
    one, two = await open_replicas(scripted([says("Hello.")]))
    async with calling(Caller(one)) as first:
        await one.resources.lease_monitor.aclose()
        second = Caller(two, chat_id=first.chat_id)

        async def take_over() -> Turn:
            async with calling(second):
                return await second.say("hi")

        taking = asyncio.create_task(take_over())
        leases = DatabaseLeases(two.resources.database)
        while not (await leases.state(second.key)).release_requested:
            assert not taking.done()
        await end_leases(two.resources.database)
        async with asyncio.timeout(LIMIT):
            assert words((await taking).message) == "Hello."


@is_shared
async def test_a_turn_at_another_replica_is_not_taken_over(open_replicas: OpenReplicas) -> None:
    hold = HeldTool()
    one, two = await open_replicas(
        scripted([calls(("hold", {"n": 3})), says("It is held.")], [hold.tool()])
    )
    talk = Talk(one)
    turn = asyncio.create_task(talk.say("hold"))
    await hold.began.wait()
    with pytest.raises(HeldByAnotherOwner):
        async with calling(Caller(two, chat_id=talk.chat_id)):
            pass
    leases = DatabaseLeases(two.resources.database)
    chat = ChatKey(two.resources.app, talk.user, talk.chat_id)
    assert not (await leases.state(chat)).release_requested
    hold.may_end.set()
    assert words((await turn).message) == "It is held."
