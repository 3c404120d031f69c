"""Exchanges with open approvals: speech, disconnects, decisions over other transports."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.errors import Superseded, TurnRunning
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.live_frames import ApprovalFrame, TranscriptFrame, TurnCompleteFrame, TurnFrame
from tests.engine.stage import Counted, Prompts, calls, part_of, says, scripted, words
from tests.engine.talk import Talk, decide
from tests.live.caller import Caller, agree, calling, spoken_response

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "progressive"]
SCRIPT = {
    "pay": [calls(("pay", {"n": 3}), text="Let me pay."), says("It is paid.")],
    "220": [spoken_response("The time is ten.")],
    "330": [calls(("pay", {"n": 4})), spoken_response("Paid too.")],
    ".": [says("Hello.")],
}


def stage(pay: Counted, **more: Any) -> Any:
    return scripted(SCRIPT, [pay.tool()], **more)


@pytest.mark.parametrize("release", RELEASES)
async def test_speech_during_an_approval_becomes_a_message_of_its_own(
    open_stage: Open, release: ReleasePolicy
) -> None:
    pay = Counted()
    engine = await open_stage(stage(pay))
    async with calling(Caller(engine, release)) as caller:
        await caller.say("pay")
        caller.speak(220)
        await caller.frame(TurnCompleteFrame, 2)
        # It is transcribed and answered with audio at once, and no chunk of it is published yet.
        assert caller.audio
        assert not [f for f in caller.frames if isinstance(f, TranscriptFrame | TurnFrame)]
        assert len((await caller.chats())["messages"]) == 2
        assert (await caller.chats())["status"] == "waiting"
        turn = await caller.approve()
        assert pay.runs == [3]
        assert words(turn.message) == "Let me pay.It is paid."
        assert "time" not in words(turn.message)
        first = turn.message
        spoken = await caller.spoken_turn()
        assert words(spoken.message) == "The time is ten."
        await agree(caller)
        messages = (await caller.chats())["messages"]
        assert [words(m) for m in messages] == [
            "pay",
            "Let me pay.It is paid.",
            "a tone of 220 Hz",
            "The time is ten.",
        ]
        assert comparable(messages[1]) == comparable(first)
        assert (await caller.say("hi")).finish_reason == "stop"
    assert len((await caller.chats())["messages"]) == 6


@pytest.mark.parametrize("release", RELEASES)
async def test_a_request_during_an_approval_is_shown_after_the_first_decision(
    open_stage: Open, release: ReleasePolicy
) -> None:
    pay = Counted()
    engine = await open_stage(stage(pay))
    async with calling(Caller(engine, release)) as caller:
        await caller.say("pay")
        caller.speak(330)
        await caller.frame(TurnCompleteFrame, 2)
        assert len((await caller.chats())["messages"]) == 2
        await caller.approve()
        assert pay.runs == [3]
        spoken = await caller.spoken_turn()
        assert spoken.finish_reason == "tool-calls"
        turn = await caller.approve()
        assert pay.runs == [3, 4]
        assert words(turn.message) == "Paid too."
        await agree(caller)


@pytest.mark.parametrize("release", RELEASES)
async def test_a_text_supersedes_open_approvals(open_stage: Open, release: ReleasePolicy) -> None:
    pay = Counted()
    engine = await open_stage(stage(pay))
    async with calling(Caller(engine, release)) as caller:
        await caller.say("pay")
        [part] = caller.pending()
        old = dict(caller.messages[-1])
        caller.speak(220)
        await caller.frame(TurnCompleteFrame, 2)
        turn = await caller.say("hi")
        assert words(turn.message) == "Hello."
        [card] = [c for c in turn.chunks if getattr(c, "type", "") == "data-approval"]
        assert card.data["approvalId"] == part["approval"]["id"]  # type: ignore[attr-defined]
        assert pay.runs == []
        await agree(caller)
        messages = (await caller.chats())["messages"]
        assert [words(m) for m in messages][-4:] == [
            "a tone of 220 Hz",
            "The time is ten.",
            "hi",
            "Hello.",
        ]
        assert part_of(messages[1], "pay")["state"] == "output-denied"
        decide(part, approved=True)
        with pytest.raises(Superseded):
            await caller.post({"message": {**old, "parts": [part]}, "messageId": old["id"]})


async def test_a_stop_supersedes_open_approvals(open_stage: Open) -> None:
    pay = Counted()
    engine = await open_stage(stage(pay))
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        await engine.stop(caller.chat_id, user=caller.user)
        assert (await caller.frame(ApprovalFrame)).state == "superseded"
        assert (await caller.chats())["status"] == "ready"
        stored = await caller.history()
        assert stored["metadata"]["stopped"] is True
        assert part_of(stored, "pay")["state"] == "output-denied"
        assert words((await caller.say("hi")).message) == "Hello."
    assert pay.runs == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("spoken", [False, True], ids=["typed", "spoken"])
async def test_after_a_disconnect_the_decision_comes_over_another_transport(
    open_stage: Open, release: ReleasePolicy, *, spoken: bool
) -> None:
    pay, prompts = Counted(), Prompts()
    engine = await open_stage(
        scripted(
            {"440|pay": [calls(("pay", {"n": 3}), text="Let me pay."), says("It is paid.")]},
            [pay.tool()],
            before_model_callback=prompts,
        )
    )
    caller = Caller(engine, release)
    async with calling(caller):
        if spoken:
            caller.speak()
            await caller.spoken_turn()
        else:
            await caller.say("pay")
    assert (await caller.chats())["status"] == "waiting"
    page = Talk(engine, release, chat_id=caller.chat_id)
    page.messages = (await caller.chats())["messages"]
    turn = await page.approve()
    assert pay.runs == [3]
    # The model receives its own call and the result.
    assert prompts.results["pay"] == {"paid": 3}
    assert words(turn.message) == "Let me pay.It is paid."
    assert comparable(await page.history()) == comparable(turn.message)
    again = await page.post_last()
    assert again.failed
    assert pay.runs == [3]


async def test_speech_during_an_approval_is_shown_after_a_later_decision(
    open_stage: Open,
) -> None:
    pay = Counted()
    engine = await open_stage(stage(pay))
    caller = Caller(engine)
    async with calling(caller):
        await caller.say("pay")
        caller.speak(220)
        await caller.frame(TurnCompleteFrame, 2)
    page = Talk(engine, chat_id=caller.chat_id)
    page.messages = (await caller.chats())["messages"]
    assert len(page.messages) == 2
    await page.approve()
    assert pay.runs == [3]
    assert [words(m) for m in (await caller.chats())["messages"]][1:] == [
        "Let me pay.It is paid.",
        "a tone of 220 Hz",
        "The time is ten.",
    ]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("begun_live", [True, False], ids=["live", "page"])
async def test_an_earlier_approval_is_decided_in_a_new_live_chat(
    open_stage: Open, release: ReleasePolicy, *, begun_live: bool
) -> None:
    pay = Counted()
    engine = await open_stage(stage(pay))
    before = Caller(engine, release)
    if begun_live:
        async with calling(before):
            await before.say("pay")
    else:
        page = Talk(engine, release, chat_id=before.chat_id)
        await page.say("pay")
        before.messages = page.messages
    caller = Caller(engine, release, chat_id=before.chat_id, messages=before.messages)
    async with calling(caller):
        caller.speak(220)
        await caller.frame(TurnCompleteFrame)
        assert not [f for f in caller.frames if isinstance(f, TurnFrame)]
        turn = await caller.approve()
        assert pay.runs == [3]
        assert words(turn.message) == "Let me pay.It is paid."
        await agree(caller)
        # The earlier output is published now, and the live run continues.
        spoken = await caller.spoken_turn()
        assert words(spoken.message) == "The time is ten."
        caller.speak(220)
        spoken = await caller.spoken_turn(2)
        assert words(spoken.message) == "The time is ten."
        assert words((await caller.say("hi")).message) == "Hello."
        await agree(caller)


async def test_a_text_in_a_new_live_chat_supersedes_earlier_approvals(
    open_stage: Open,
) -> None:
    pay = Counted()
    engine = await open_stage(stage(pay))
    page = Talk(engine)
    await page.say("pay")
    caller = Caller(engine, chat_id=page.chat_id, messages=page.messages)
    async with calling(caller):
        turn = await caller.say("hi")
        assert words(turn.message) == "Hello."
        assert any(getattr(c, "type", "") == "data-approval" for c in turn.chunks)
        await agree(caller)
        assert words((await caller.say("hi")).message) == "Hello."
    assert part_of((await caller.chats())["messages"][1], "pay")["state"] == "output-denied"
    assert pay.runs == []


async def test_a_stop_in_a_new_live_chat_supersedes_earlier_approvals(
    open_stage: Open,
) -> None:
    engine = await open_stage(stage(Counted()))
    page = Talk(engine)
    await page.say("pay")
    async with calling(Caller(engine, chat_id=page.chat_id)) as caller:
        await engine.stop(caller.chat_id, user=caller.user)
        assert (await caller.chats())["status"] == "ready"
        assert words((await caller.say("hi")).message) == "Hello."


async def test_an_earlier_approval_is_decided_over_another_transport(
    open_stage: Open,
) -> None:
    pay = Counted()
    engine = await open_stage(stage(pay))
    page = Talk(engine)
    await page.say("pay")
    async with calling(Caller(engine, chat_id=page.chat_id)) as caller:
        turn = await page.approve()
        assert words(turn.message) == "Let me pay.It is paid."
        assert pay.runs == [3]
        frame = await caller.frame(TurnFrame)
        assert frame.message_id == turn.message["id"]
        caller.messages = page.messages[:1]
        own = await caller.spoken_turn()
        assert comparable(own.message) == comparable(turn.message)
        assert words((await caller.say("hi")).message) == "Hello."


async def test_open_approvals_survive_a_restart(open_engine: Any) -> None:
    pay = Counted()
    async with open_engine(stage(pay)) as engine:
        caller = Caller(engine)
        async with calling(caller):
            await caller.say("pay")
            caller.speak(220)
            await caller.frame(TurnCompleteFrame, 2)
    async with open_engine(stage(pay)) as engine:
        page = Talk(engine, chat_id=caller.chat_id, messages=caller.messages)
        assert comparable(await page.history()) == comparable(caller.messages[-1])
        turn = await page.approve()
        assert words(turn.message) == "Let me pay.It is paid."
        assert pay.runs == [3]
        messages = (await engine.get_chat(page.chat_id, user=page.user))["messages"]
        assert len(messages) == 4


async def test_concurrent_equal_decisions_run_the_call_once(open_stage: Open) -> None:
    pay = Counted()
    engine = await open_stage(stage(pay))
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        pages = [Talk(engine, chat_id=caller.chat_id) for _ in range(5)]
        for page in pages:
            page.messages = (await caller.chats())["messages"]
        turns = await asyncio.gather(*(page.approve() for page in pages), caller.approve())
        assert pay.runs == [3]
        whole = [turn for turn in turns if not turn.failed]
        assert {words(turn.message) for turn in whole} == {"Let me pay.It is paid."}
        assert len(whole) == len(turns)


async def test_a_text_is_refused_while_a_call_waits_and_an_answer_runs(open_stage: Open) -> None:
    held = asyncio.Event()

    async def look() -> str:
        """Look for long."""
        await held.wait()
        return "seen"

    script = [calls(("pay", {"n": 3}), ("look", {})), says("Done.")]
    pay = Counted()
    engine = await open_stage(scripted(script, [pay.tool(), look]))
    async with calling(Caller(engine)) as caller:
        asking = asyncio.create_task(caller.say("go"))
        await caller.frame(TurnCompleteFrame)
        with pytest.raises(TurnRunning):
            await caller.start(
                {"message": {"id": "u", "role": "user", "parts": [{"type": "text", "text": "x"}]}}
            )
        held.set()
        turn = await asking
        assert turn.finish_reason == "tool-calls"
        await caller.approve()
        assert pay.runs == [3]
        await agree(caller)


async def test_a_disconnect_while_one_call_waits_and_another_runs(
    open_stage: Open,
) -> None:
    began = asyncio.Event()

    async def look() -> str:
        """Look for ever."""
        began.set()
        await asyncio.Event().wait()
        return "seen"

    script = [calls(("pay", {"n": 3}), ("look", {})), says("Done.")]
    pay = Counted()
    engine = await open_stage(scripted(script, [pay.tool(), look]))
    caller = Caller(engine)
    async with calling(caller):
        asking = asyncio.create_task(caller.say("go"))
        await began.wait()
        await caller.call_held()
    assert (await asking).finish_reason == "tool-calls"
    page = Talk(engine, chat_id=caller.chat_id, messages=caller.messages)
    turn = await page.approve()
    assert pay.runs == [3]
    assert part_of(turn.message, "look")["errorText"] == "This call did not finish."
    assert comparable(await page.history()) == comparable(turn.message)
