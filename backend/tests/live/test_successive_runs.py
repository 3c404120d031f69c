"""Exchanges that wait since before a live run, and decisions on other replicas."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.engine.turn.chat_leases import ChatLeases
from sluicegate.errors import HeldByAnotherOwner
from sluicegate.live.lease import LiveLease
from sluicegate.live.options import LiveTimings
from sluicegate.live.outgoing_frame_queue import ChatEnded
from sluicegate.stores.leases.database_leases import DatabaseLeases
from sluicegate.stores.leases.process_leases import ProcessLeases
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import client_tool
from sluicegate.wire.live_frames import ApprovalFrame, TranscriptFrame, TurnCompleteFrame, TurnFrame
from tests.engine.stage import Counted, Steps, calls, part_of, says, scripted, stays_pending, words
from tests.engine.talk import Talk, Turn, decide
from tests.live import caller as callers
from tests.live.caller import LIMIT, Caller, agree, spoken_response
from tests.live.model_input import record_input
from tests.stores.builders import end_leases

if TYPE_CHECKING:
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.chat_engine import ChatEngine
    from tests.engine.stage import Open, OpenReplicas

RELEASES: list[ReleasePolicy] = ["deferred", "progressive"]
SCRIPT = {
    "pay": [calls(("pay", {"n": 3}), text="Let me pay."), says("It is paid.")],
    "220": [spoken_response("The time is ten.")],
    "330": [calls(("pay", {"n": 4})), says("Paid too.")],
    ".": [says("Hello.")],
}
QUICK = LiveTimings(approval_poll=0.02)
calling = functools.partial(callers.calling, timings=QUICK)


async def page_with_request(engine: ChatEngine, release: ReleasePolicy = "deferred") -> Talk:
    page = Talk(engine, release)
    await page.say("pay")
    return page


def live(page: Talk, engine: ChatEngine | None = None) -> Caller:
    """The same person at a live socket."""
    engine = engine or page.engine
    messages = [{**m, "parts": [*map(dict, m["parts"])]} for m in page.messages]
    return Caller(engine, page.release, chat_id=page.chat_id, messages=messages)  # type: ignore[arg-type]


async def texts(caller: Caller) -> list[str]:
    return [words(message) for message in (await caller.chats())["messages"]]


async def continue_answer(caller: Caller, message: str) -> Turn:
    """Resume the answer as the client does when it receives its ``turn`` frame."""
    await caller.until(lambda frames: any(f.message_id == message for f in turns(frames)))
    return await caller.resumed(message)


def turns(frames: list[Any]) -> list[TurnFrame]:
    return [frame for frame in frames if isinstance(frame, TurnFrame)]


@pytest.mark.parametrize("release", RELEASES)
async def test_a_decision_about_an_earlier_exchange_waits_for_the_models_answer(
    open_stage: Open, release: ReleasePolicy
) -> None:
    pay, steps = Counted(), Steps()
    steps.go(8)
    engine = await open_stage(scripted(SCRIPT, [pay.tool()], sleep=steps))
    page = await page_with_request(engine, release)
    asked = steps.asked
    async with calling(live(page)) as caller:
        while not steps.allowed.locked():
            await steps.allowed.acquire()
        caller.speak(220)
        await steps.reached(asked + 1)
        answering = asyncio.create_task(caller.approve())
        ledger = engine.resources.ledger
        async with asyncio.timeout(LIMIT):
            while {row.state for row in await ledger.rows(page.key)} != {"approved"}:
                pass
        assert await stays_pending(answering)
        assert pay.runs == []
        steps.go()
        turn = await answering
        assert words(turn.message) == "Let me pay.It is paid."
        assert pay.runs == [3]
        spoken = await caller.spoken_turn()
        assert words(spoken.message) == "The time is ten."
        await agree(caller)
        assert (await texts(caller))[1:] == [
            "Let me pay.It is paid.",
            "a tone of 220 Hz",
            "The time is ten.",
        ]


async def test_a_model_that_does_not_finish_is_interrupted(
    open_stage: Open,
) -> None:
    pay = Counted()
    script = {**SCRIPT, "220": [says("It is ", hang=True)]}
    agent = scripted(script, [pay.tool()])
    model_input = record_input(agent)
    engine = await open_stage(agent)
    page = await page_with_request(engine)
    timings = replace(QUICK, speech_grace=0.05)
    async with calling(live(page), timings=timings) as caller:
        caller.speak(220)
        await model_input.audio(2)
        turn = await caller.approve()
        assert words(turn.message) == "Let me pay.It is paid."
        assert (await texts(caller))[2] == "a tone of 220 Hz"
        assert words((await caller.say("hi")).message) == "Hello."
    assert pay.runs == [3]


@pytest.mark.parametrize("release", RELEASES)
async def test_a_request_behind_an_earlier_exchange_follows_it(
    open_stage: Open, release: ReleasePolicy
) -> None:
    pay = Counted()
    engine = await open_stage(scripted(SCRIPT, [pay.tool()]))
    page = await page_with_request(engine, release)
    async with calling(live(page)) as caller:
        caller.speak(330)
        await caller.call_held(2)
        await caller.frame(TurnCompleteFrame)
        assert not [f for f in caller.frames if isinstance(f, TranscriptFrame | TurnFrame)]
        assert len(await texts(caller)) == 2
        turn = await caller.approve()
        assert words(turn.message) == "Let me pay.It is paid."
        assert pay.runs == [3]
        spoken = await caller.spoken_turn()
        assert spoken.finish_reason == "tool-calls"
        assert not [f for f in caller.frames if isinstance(f, TranscriptFrame) and f.role != "user"]
        turn = await caller.approve()
        assert pay.runs == [3, 4]
        assert words(turn.message) == "Paid too."
        await agree(caller)


@pytest.mark.parametrize(
    ("by_name", "approved"), [(True, True), (False, False)], ids=["/approvals, yes", "a page, no"]
)
@pytest.mark.parametrize("asks_live", [True, False], ids=["asked live", "asked before"])
async def test_a_decision_on_another_replica_reaches_the_live_run(
    open_replicas: OpenReplicas, *, approved: bool, by_name: bool, asks_live: bool
) -> None:
    pay = Counted()
    one, two = await open_replicas(scripted(SCRIPT, [pay.tool()]))
    page = Talk(two) if asks_live else await page_with_request(two)
    async with calling(live(page, one)) as caller:
        if asks_live:
            await caller.say("pay")
            page.messages = (await caller.chats())["messages"]
        [card] = page.pending()
        message = page.messages[-1]["id"]
        async with asyncio.timeout(LIMIT):
            if by_name:
                said = {"approved": approved}
                name = card["approval"]["id"]
                await two.approvals.decide(name, said, user=page.user, via="http")
            else:
                decide(card, approved=approved)
                turn = await page.post_last()
                assert not turn.failed
                assert words(turn.message).endswith("It is paid.")
        answered = await continue_answer(caller, message)
        assert words(answered.message) == "Let me pay.It is paid."
        assert pay.runs == ([3] if approved else [])
        state = "output-available" if approved else "output-denied"
        assert part_of(answered.message, "pay")["state"] == state
        if asks_live:
            frame = await caller.frame(ApprovalFrame)
            assert frame.state == ("approved" if approved else "denied")
        for engine in (one, two):
            stored = await Talk(engine, chat_id=page.chat_id).history()
            assert comparable(stored) == comparable(answered.message)
        assert words((await caller.say("hi")).message) == "Hello."


async def test_a_replica_that_continues_between_two_runs_gives_the_chat_back(
    open_replicas: OpenReplicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await open_replicas(scripted(SCRIPT, [Counted().tool()]))
    page = await page_with_request(two)
    release, acquire = LiveLease.release, ChatLeases.acquire
    taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def release_first(lease: LiveLease) -> None:
        monkeypatch.setattr(LiveLease, "release", release)
        monkeypatch.setattr(ChatLeases, "acquire", acquire_then_go_on)
        await release(lease)
        await taken

    async def acquire_then_go_on(leases: ChatLeases, *args: Any, **options: Any) -> int:
        monkeypatch.setattr(ChatLeases, "acquire", acquire)
        fence = await acquire(leases, *args, **options)
        taken.set_result(None)
        return fence

    async with calling(live(page, one)) as caller, asyncio.timeout(LIMIT):
        monkeypatch.setattr(LiveLease, "release", release_first)
        [card] = page.pending()
        decide(card, approved=True)
        turn = await page.post_last()
        assert words(turn.message) == "Let me pay.It is paid."
        answered = await continue_answer(caller, page.messages[-1]["id"])
        assert comparable(answered.message) == comparable(turn.message)
        assert words((await caller.say("hi")).message) == "Hello."


@pytest.mark.parametrize("asks_live", [True, False], ids=["asked live", "asked before"])
async def test_a_stop_on_another_replica_supersedes_live_approvals(
    open_replicas: OpenReplicas, *, asks_live: bool
) -> None:
    pay = Counted()
    one, two = await open_replicas(scripted(SCRIPT, [pay.tool()]))
    page = Talk(two) if asks_live else await page_with_request(two)
    async with calling(live(page, one)) as caller:
        if asks_live:
            await caller.say("pay")
        async with asyncio.timeout(LIMIT):
            await two.stop(page.chat_id, user=page.user)
        for engine in (one, two):
            chat = await engine.get_chat(page.chat_id, user=page.user)
            assert chat["status"] == "ready"
            assert part_of(chat["messages"][1], "pay")["state"] == "output-denied"
        assert words((await caller.say("hi")).message) == "Hello."
    assert pay.runs == []


async def test_a_stop_supersedes_approvals_of_a_live_chat_whose_replica_is_gone(
    open_replicas: OpenReplicas,
) -> None:
    pay = Counted()
    one, two = await open_replicas(scripted(SCRIPT, [pay.tool()]))
    page = await page_with_request(two)
    async with calling(live(page, one)):
        await one.resources.lease_monitor.aclose()
        stopping = asyncio.create_task(two.stop(page.chat_id, user=page.user))
        leases = DatabaseLeases(two.resources.database)
        while not (await leases.state(page.key)).stop_requested:
            assert not stopping.done()
        await end_leases(two.resources.database)
        async with asyncio.timeout(LIMIT):
            await stopping
        chat = await two.get_chat(page.chat_id, user=page.user)
        assert chat["status"] == "ready"
        assert part_of(chat["messages"][1], "pay")["state"] == "output-denied"
    assert pay.runs == []


async def test_a_client_side_output_is_refused_on_another_replica(
    open_replicas: OpenReplicas,
) -> None:
    script = {"where": [calls(("locate", {})), says("There.")]}
    locate = client_tool("locate", "Ask the browser.", {"type": "object", "properties": {}})
    one, two = await open_replicas(scripted(script, [locate]))
    async with calling(Caller(one)) as caller:
        await caller.say("where")
        page = Talk(two, chat_id=caller.chat_id)
        page.messages = (await caller.chats())["messages"]
        [part] = (part for part in page.messages[-1]["parts"] if part["type"] == "tool-locate")
        part |= {"state": "output-available", "output": {"place": "here"}}
        async with asyncio.timeout(LIMIT):
            with pytest.raises(HeldByAnotherOwner):
                await page.post_last()
        assert (await caller.chats())["status"] == "waiting"


async def test_a_text_on_another_replica_is_refused_while_the_chat_is_live(
    open_replicas: OpenReplicas,
) -> None:
    one, two = await open_replicas(scripted(SCRIPT, [Counted().tool()]))
    async with calling(Caller(one)) as caller:
        await caller.say("hi")
        page = Talk(two, chat_id=caller.chat_id)
        with pytest.raises(HeldByAnotherOwner):
            await page.say("hello")
    assert words((await page.say("hello")).message) == "Hello."


async def test_an_earlier_approval_expires_and_its_answer_is_announced(open_engine: Any) -> None:
    pay, late = Counted(), 0.0
    script = scripted(SCRIPT, [pay.tool()])
    async with open_engine(script, clock=lambda: late, approval_ttl=60.0) as engine:
        page = await page_with_request(engine)
        async with calling(live(page)) as caller:
            late = 100.0
            turn = await continue_answer(caller, page.messages[-1]["id"])
            assert words(turn.message) == "Let me pay.It is paid."
            assert part_of(turn.message, "pay")["approval"]["reason"] == "This approval expired."
            await agree(caller)
            caller.speak(220)
            await caller.frame(TurnCompleteFrame)
    assert pay.runs == []


async def test_the_lease_is_renewed_with_the_configured_duration(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_stage(scripted(SCRIPT, []), lease_ttl=0.09)
    kept: asyncio.Queue[float] = asyncio.Queue()

    async def renew(
        _leases: ProcessLeases, chat: ChatKey, *, owner: str, fence: int, ttl: float
    ) -> bool:
        kept.put_nowait(ttl)
        return kept.qsize() < 3

    monkeypatch.setattr(ProcessLeases, "renew", renew)
    async with calling(Caller(engine)) as caller, asyncio.timeout(LIMIT):
        # A lost lease is reported at once.
        assert (await caller.frame(ChatEnded)).reason == "lease_lost"
    assert [kept.get_nowait() for _ in range(3)] == [0.09] * 3
