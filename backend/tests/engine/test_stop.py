"""Stopping a turn: at once, but never between a claim and its outcome (section 7, D7)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.errors import Superseded
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.testing.message_comparison import comparable
from tests.engine.loop_time import EVENT_TIMEOUT, within_limit
from tests.engine.stage import (
    Counted,
    HeldTool,
    Prompts,
    Steps,
    calls,
    part_of,
    read,
    says,
    scripted,
    stays_pending,
    words,
)
from tests.engine.talk import Talk, Turn, decide

if TYPE_CHECKING:
    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.call_keys import CallKey
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.turn.reader import TurnReader
    from tests.engine.loop_time import LoopTime
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "progressive"]
HANGS = says("I am still at it", hang=True)


async def ask(talk: Talk, text: str = "go") -> TurnReader:
    question: Any = {"id": f"u-{text}", "role": "user", "parts": [{"type": "text", "text": text}]}
    talk.messages.append(question)
    return await talk.start({"message": question})


async def answer(talk: Talk, *, approved: bool = True) -> TurnReader:
    for part in talk.pending():
        decide(part, approved=approved)
    last = talk.messages[-1]
    return await talk.start({"message": last, "messageId": last["id"]})


async def stop(talk: Talk) -> None:
    await talk.engine.stop(talk.chat_id, user=talk.user)


async def stopped(talk: Talk, reader: TurnReader) -> Turn:
    """Press stop; the response ends, and history holds the same message."""
    reading = asyncio.create_task(read(reader))
    await stop(talk)
    turn = talk.take(await reading)
    stored = await talk.history()
    assert comparable(stored) == comparable(talk.messages[-1])
    assert stored["metadata"]["stopped"] is talk.messages[-1]["metadata"]["stopped"] is True
    return turn


@pytest.mark.parametrize("release", RELEASES)
async def test_text_before_a_stop_is_kept(open_stage: Open, release: ReleasePolicy) -> None:
    steps = Steps()
    script = {"go": [says("I said this much")], "and": [says("another answer")]}
    talk = Talk(await open_stage(scripted(script, [Counted().tool()], sleep=steps)), release)
    reader = await ask(talk)
    await steps.reached(1)
    turn = await stopped(talk, reader)
    assert turn.finish_reason == "other"
    assert words(turn.message) == "I said t"
    steps.go()
    await talk.say("and now?")
    assert words(talk.messages[-1]) == "another answer"
    assert "stopped" not in {**talk.messages[-1]["metadata"], **(await talk.history())["metadata"]}


async def test_an_answer_that_was_stopped_before_it_began_is_marked(open_stage: Open) -> None:
    prompts = Prompts()
    agent = scripted([says(hang=True)], before_model_callback=prompts)
    talk = Talk(await open_stage(agent))
    reader = await ask(talk)
    await prompts.asked.wait()
    turn = await stopped(talk, reader)
    assert turn.message["parts"] == []


async def test_an_answer_that_a_new_message_closes_is_not_marked_as_stopped(
    open_stage: Open,
) -> None:
    script = {"pay": [calls(("pay", {"n": 1}))], "and": [says("another answer")]}
    talk = Talk(await open_stage(scripted(script, [Counted().tool()])))
    await talk.say("pay")
    await talk.say("and now?")
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    assert ["stopped" in m["metadata"] for m in chat["messages"] if m["role"] == "assistant"] == [
        False,
        False,
    ]


async def test_a_stop_flushes_the_release_buffer(open_stage: Open) -> None:
    prompts = Prompts()
    script = [calls(("pay", {"n": 1}), text="First I pay. "), HANGS]
    counted = Counted()
    agent = scripted(script, [counted.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent))
    await talk.say("pay")
    prompts.asked.clear()
    reader = await answer(talk)
    await within_limit(prompts.asked)
    turn = await stopped(talk, reader)
    assert words(turn.message).startswith("First I pay. ")
    assert part_of(turn.message, "pay")["output"] == {"paid": 1}
    assert counted.runs == [1]


@pytest.mark.parametrize("release", [*RELEASES, "preview"])
async def test_a_stop_concurrent_with_a_request_supersedes_it_in_the_ledger(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch, release: ReleasePolicy
) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1}), text="I pay. "), says("never said")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])), release)
    request, stops = Ledger.request, list[asyncio.Task[None]]()

    async def request_and_stop(ledger: Ledger, new: Any) -> None:
        await request(ledger, new)
        turn = talk.running
        stops.append(asyncio.create_task(stop(talk)))
        # ADK continues the run and ends its calls itself before the request is emitted.
        await turn.abort.wait()

    monkeypatch.setattr(Ledger, "request", request_and_stop)
    turn = talk.take(await read(await ask(talk)))
    await stops[0]
    [row] = await talk.engine.resources.ledger.rows(talk.key)
    assert (row.state, row.answer) == ("superseded", None)
    part = part_of(turn.message, "pay")
    assert (part["state"], part["approval"]["approved"]) == ("output-denied", False)
    assert comparable(await talk.history()) == comparable(turn.message)
    assert counted.runs == []


@pytest.mark.parametrize("release", RELEASES)
async def test_a_stop_waits_for_a_claimed_call_and_stores_its_outcome(
    open_stage: Open, release: ReleasePolicy
) -> None:
    held, prompts = HeldTool(), Prompts()
    script = [calls(("hold", {"n": 1})), says("never said")]
    agent = scripted(script, [held.tool(require_confirmation=True)], before_model_callback=prompts)
    talk = Talk(await open_stage(agent), release)
    await talk.say("hold")
    reading = asyncio.create_task(read(await answer(talk)))
    await held.began.wait()
    stopping = asyncio.create_task(stop(talk))
    assert await stays_pending(stopping)
    held.may_end.set()
    await stopping
    turn = talk.take(await reading)
    assert turn.finish_reason == "other"
    assert part_of(turn.message, "hold")["output"] == {"held": 1}
    assert comparable(await talk.history()) == comparable(turn.message)
    assert (held.ended, len(prompts.contents)) == (1, 1)


async def test_a_stop_during_a_claim_waits_for_its_call(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, claimed, may_go_on = Counted(), asyncio.Event(), asyncio.Event()
    claim = Ledger.claim

    async def slow(ledger: Ledger, key: CallKey, **options: Any) -> ApprovalRow | None:
        row = await claim(ledger, key, **options)
        claimed.set()
        await may_go_on.wait()
        return row

    monkeypatch.setattr(Ledger, "claim", slow)
    talk = Talk(await open_stage(scripted([calls(("pay", {"n": 1}))], [counted.tool()])))
    await talk.say("pay")
    reading = asyncio.create_task(read(await answer(talk)))
    await claimed.wait()
    stopping = asyncio.create_task(stop(talk))
    assert await stays_pending(stopping)
    may_go_on.set()
    await stopping
    turn = talk.take(await reading)
    assert part_of(turn.message, "pay")["state"] == "output-available"
    assert counted.runs == [1]


async def test_a_running_call_without_approval_is_cancelled_by_a_stop(open_stage: Open) -> None:
    held = HeldTool()
    talk = Talk(await open_stage(scripted([calls(("hold", {"n": 1})), says("no")], [held.tool()])))
    reader = await ask(talk)
    await held.began.wait()
    turn = await stopped(talk, reader)
    part = part_of(turn.message, "hold")
    assert part["state"] == "output-error"
    assert held.ended == 0


async def test_a_call_that_exceeds_its_timeout_ends_the_turn_and_is_never_run_again(
    open_stage: Open, loop_time: LoopTime
) -> None:
    held = HeldTool()
    script = [calls(("hold", {"n": 1})), says("never said")]
    agent = scripted(script, [held.tool(require_confirmation=True)])
    talk = Talk(await open_stage(agent, tool_timeout=20.0))
    await talk.say("hold")
    before = talk.messages[-1]
    decide(talk.pending()[0], approved=True)
    posting = asyncio.create_task(talk.post_last())
    await within_limit(held.began)
    loop_time.advance(20.0)
    turn = await asyncio.wait_for(posting, EVENT_TIMEOUT)
    assert turn.failed
    part = part_of(turn.message, "hold")
    assert part["state"] == "output-error"
    assert "unknown" in part["errorText"]
    stored = await talk.history()
    assert comparable(stored) == comparable(turn.message)
    [trace] = stored["metadata"]["approvals"].values()
    assert trace["state"] == "unknown"
    held.began.clear()
    held.may_end.set()
    talk.messages[-1] = before
    decide(talk.messages[-1]["parts"][-1], approved=True)
    await talk.post_last()
    assert not held.began.is_set()


async def test_a_stop_supersedes_waiting_approvals(open_stage: Open) -> None:
    counted = Counted()
    talk = Talk(await open_stage(scripted([calls(("pay", {"n": 1}))], [counted.tool()])))
    await talk.say("pay")
    await stop(talk)
    stored = await talk.history()
    assert stored["metadata"]["stopped"] is True
    part = part_of(stored, "pay")
    assert part["state"] == "output-denied"
    assert part["approval"]["approved"] is False
    chats = await talk.engine.list_chats(user=talk.user, limit=10, after=None, query=None)
    assert chats["chats"][0]["pendingApprovals"] == 0
    with pytest.raises(Superseded):
        await talk.approve()
    assert counted.runs == []


async def test_a_stop_interrupted_by_a_crash_supersedes_its_approvals(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted()
    talk = Talk(await open_stage(scripted([calls(("pay", {"n": 1}), text="I")], [counted.tool()])))
    await talk.say("pay")

    async def crash(*_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr("sluicegate.engine.turn.session_log.SessionLog.append_closings", crash)
    with pytest.raises(ConnectionError):
        await stop(talk)
    message = await talk.history()
    assert part_of(message, "pay")["state"] == "output-denied"
    assert words(message) == "I"


async def test_a_stop_with_one_approved_and_one_open_approval_reports_both(
    open_stage: Open,
) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1}), ("pay", {"n": 2}))]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])))
    await talk.say("pay")
    decide(talk.pending()[0], approved=True)
    assert (await talk.post_last()).failed
    await stop(talk)
    first, second = [p for p in (await talk.history())["parts"] if p["type"] == "tool-pay"]
    assert (first["state"], first["approval"]["approved"]) == ("output-error", True)
    assert (second["state"], second["approval"]["approved"]) == ("output-denied", False)
    assert "before it began" in first["errorText"]
    assert counted.runs == []


async def test_a_stop_without_a_running_turn_succeeds(talk: Talk) -> None:
    await stop(talk)
    await talk.say("story:plain")
    stored = await talk.history()
    await stop(talk)
    assert await talk.history() == stored


async def test_a_stop_reaches_a_turn_during_its_preparation(open_stage: Open) -> None:
    talk = Talk(await open_stage(scripted([HANGS])))
    asking = asyncio.create_task(ask(talk))
    await asyncio.sleep(0)
    stopping = asyncio.create_task(stop(talk))
    turn = talk.take(await read(await asking))
    await stopping
    assert turn.finish_reason == "other"


async def test_closing_the_engine_stops_its_turns(open_stage: Open) -> None:
    talk = Talk(await open_stage(scripted([HANGS])))
    reader = await ask(talk)
    await talk.engine.close()
    assert talk.take(await read(reader)).finish_reason == "other"
