"""The same request once more: it joins, it is repeated, it is run on, and never run twice (A4)."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.engine.load_chat_log import ChatLogs
from sluicegate.errors import TooManyRequests, TurnRunning
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.reducer import reduce_chunks
from tests.engine.stage import (
    Counted,
    HeldTool,
    Prompts,
    Steps,
    calls,
    kinds,
    read,
    says,
    scripted,
    words,
)
from tests.engine.stores import on_every_store
from tests.engine.talk import Talk, check, decide

if TYPE_CHECKING:
    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.plan import ChatLog
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.wire.ui_messages import UIMessage
    from tests.engine.stage import Open

pytestmark = on_every_store

RELEASES: list[ReleasePolicy] = ["deferred", "progressive"]


def answered(talk: Talk, *, approved: bool = True) -> dict[str, Any]:
    """The body of an answer to everything that waits; the client's message is as it was."""
    message = deepcopy(talk.messages[-1])
    for part in message["parts"]:
        if part.get("state") == "approval-requested":
            decide(part, approved=approved)
    return {"message": message, "messageId": message["id"]}


def question(name: str, text: str) -> UIMessage:
    return {"id": name, "role": "user", "parts": [{"type": "text", "text": text}]}


@pytest.mark.parametrize("release", RELEASES)
async def test_a_repeated_decision_during_its_turn_joins_the_turn(
    open_stage: Open, release: ReleasePolicy
) -> None:
    held = HeldTool()
    script = [calls(("hold", {"n": 1}), text="Wait. "), says("done")]
    agent = scripted(script, [held.tool(require_confirmation=True)])
    talk = Talk(await open_stage(agent), release)
    await talk.say("hold")
    body = answered(talk)
    first = asyncio.create_task(read(await talk.start(body)))
    await held.began.wait()
    second = asyncio.create_task(read(await talk.start(body)))
    held.may_end.set()
    one, other = await first, await second
    assert one == other
    assert held.ended == 1


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("approved", [True, False])
async def test_a_repeated_decision_later_returns_the_rest_of_the_message_and_runs_nothing(
    open_stage: Open, release: ReleasePolicy, approved: bool
) -> None:
    counted = Counted()
    script = [
        calls(("pay", {"n": 1}), text="First. "),
        calls(("pay", {"n": 2}), text="Second. "),
        says("done"),
    ]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])), release)
    await talk.say("pay")
    for _ in range(2):
        body = answered(talk, approved=approved)
        talk.messages[-1] = body["message"]
        turn = await talk.post(body)
        runs = list(counted.runs)
        again = await read(await talk.start(body))
        assert counted.runs == runs
        assert [kinds(again)[0], kinds(again)[-1]] == ["start", "finish"]
        assert comparable(reduce_chunks(again, body["message"])) == comparable(turn.message)
    assert len(counted.runs) == (2 if approved else 0)


@pytest.mark.parametrize("further", [True, False], ids=["the next step has begun", "no steps"])
async def test_a_repeated_decision_returns_the_rest_whichever_steps_its_message_has(
    open_stage: Open, further: bool
) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1}), text="First. "), says("done")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])))
    await talk.say("pay")
    body = answered(talk)
    talk.messages[-1] = deepcopy(body["message"])
    turn = await talk.post(body)
    parts = body["message"]["parts"]
    if further:
        parts.append({"type": "step-start"})
    else:
        parts[:] = [part for part in parts if part["type"] != "step-start"]

    again = await read(await talk.start(body))

    assert comparable(reduce_chunks(again, body["message"])) == comparable(turn.message)
    assert counted.runs == [1]


async def test_an_old_decision_of_a_page_that_has_continued_ends_in_an_error(
    open_stage: Open,
) -> None:
    counted = Counted()
    talk = Talk(
        await open_stage(scripted([calls(("pay", {"n": 1})), says("done")], [counted.tool()]))
    )
    await talk.say("pay")
    await talk.approve()
    stored = await talk.history()
    turn = await talk.post_last()
    assert turn.types == ["start", "error"]
    assert await talk.history() == stored
    assert counted.runs == [1]


async def test_a_repeated_decision_beside_a_new_one_is_ignored(talk: Talk) -> None:
    await talk.say("story:two_in_one_step")
    decide(talk.pending()[0], approved=True)
    assert (await talk.post_last()).failed
    decide(talk.pending()[0], approved=False)
    turn = await talk.post_last()
    states = [part["state"] for part in turn.message["parts"] if "approval" in part]
    assert states == ["output-available", "output-denied"]


async def test_a_stored_decision_that_has_not_run_is_run_by_its_repetition(
    open_stage: Open,
) -> None:
    """The server was busy when the answer came: it is in the ledger, and nothing has run."""
    counted, held = Counted(), HeldTool()
    script = {
        "pay": [calls(("pay", {"n": 1})), says("paid")],
        "hold": [calls(("hold", {"n": 1})), says("held")],
    }
    engine = await open_stage(scripted(script, [counted.tool(), held.tool()]), max_turns_per_user=1)
    talk, busy = Talk(engine), Talk(engine)
    await talk.say("pay")
    other = asyncio.create_task(busy.say("hold"))
    await held.began.wait()
    body = answered(talk)
    with pytest.raises(TooManyRequests):
        await talk.start(body)
    assert counted.runs == []
    part = (await talk.history())["parts"][-1]
    assert (part["state"], part["approval"]["approved"]) == ("approval-responded", True)
    held.may_end.set()
    await other
    talk.messages[-1] = body["message"]
    assert words((await talk.post(body)).message) == "paid"
    assert counted.runs == [1]


async def test_two_concurrent_decisions_run_one_turn(open_stage: Open) -> None:
    counted = Counted()
    talk = Talk(
        await open_stage(scripted([calls(("pay", {"n": 1})), says("done")], [counted.tool()]))
    )
    await talk.say("pay")
    body = answered(talk)
    readers = await asyncio.gather(*(talk.start(body) for _ in range(5)))
    responses = await asyncio.gather(*(read(reader) for reader in readers))
    messages = [comparable(reduce_chunks(chunks, body["message"])) for chunks in responses]
    assert all(message == messages[0] for message in messages)
    assert counted.runs == [1]


async def test_a_repeat_that_reads_the_log_while_the_turn_ends_gets_the_whole_answer(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, steps = Counted(), Steps()
    script = [calls(("pay", {"n": 1})), says("some words to say")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()], sleep=steps)))
    await talk.say("pay")
    body = answered(talk)
    first = asyncio.create_task(read(await talk.start(body)))
    turn = talk.running
    await steps.reached(1)
    load, is_read, may_return = ChatLogs.load, asyncio.Event(), asyncio.Event()

    async def load_slowly(self: ChatLogs, *args: Any) -> ChatLog:
        log = await load(self, *args)
        is_read.set()
        await may_return.wait()
        return log

    monkeypatch.setattr(ChatLogs, "load", load_slowly)
    second = asyncio.create_task(talk.start(body))
    await is_read.wait()
    steps.go()
    message = comparable(reduce_chunks(await first, body["message"]))
    await turn.done.wait()
    may_return.set()
    again = comparable(reduce_chunks(await read(await second), body["message"]))
    assert again == message
    assert counted.runs == [1]


async def test_a_repeated_message_during_its_turn_joins_the_turn(open_stage: Open) -> None:
    steps = Steps()
    talk = Talk(await open_stage(scripted([says("some words to say")], sleep=steps)))
    body = {"message": question("u1", "talk")}
    first = asyncio.create_task(read(await talk.start(body)))
    await steps.reached(1)
    second = asyncio.create_task(read(await talk.start(body)))
    with pytest.raises(TurnRunning):
        await talk.start({"message": question("u2", "talk")})
    steps.go()
    assert comparable(reduce_chunks(await first)) == comparable(reduce_chunks(await second))


@pytest.mark.parametrize("story", ["plain", "approval", "one_tool", "cut", "empty"])
async def test_a_repeated_message_returns_a_finished_or_waiting_answer(
    talk: Talk, story: str
) -> None:
    await talk.say(f"story:{story}", message_id="u1")
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    again = await read(await talk.start({"message": talk.messages[0]}))
    check(again)
    seen = reduce_chunks(again)
    assert seen["id"] == talk.messages[-1]["id"]
    assert comparable(seen) == comparable(talk.messages[-1])
    assert await talk.engine.get_chat(talk.chat_id, user=talk.user) == chat


async def test_an_approval_accepts_its_decision_after_the_message_was_repeated(talk: Talk) -> None:
    await talk.say("story:approval", message_id="u1")
    talk.messages.pop()
    await talk.post({"message": talk.messages[0]})
    assert (await talk.approve()).finish_reason == "stop"


async def test_a_repeated_message_runs_a_failed_answer_again(open_stage: Open) -> None:
    failing = [True]

    async def sometimes(n: int) -> dict[str, int]:
        """Not used."""
        return {"n": n}

    def fail(callback_context: object, llm_request: object) -> None:
        if failing:
            raise RuntimeError("no model")

    agent = scripted([says("made anew")], [sometimes], before_model_callback=fail)
    talk = Talk(await open_stage(agent))
    assert (await talk.say("go", message_id="u1")).failed
    failing.clear()
    talk.messages.pop()
    turn = await talk.post({"message": talk.messages[0]})
    assert words(turn.message) == "made anew"
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    assert [message["role"] for message in chat["messages"]] == ["user", "assistant"]


async def test_a_repeated_message_runs_a_stopped_answer_again(open_stage: Open) -> None:
    counted = Counted()
    talk = Talk(
        await open_stage(scripted([calls(("pay", {"n": 1})), says("done")], [counted.tool()]))
    )
    await talk.say("pay", message_id="u1")
    await talk.engine.stop(talk.chat_id, user=talk.user)
    talk.messages.pop()
    await talk.post({"message": talk.messages[0]})
    assert (await talk.approve()).finish_reason == "stop"
    assert counted.runs == [1]


async def test_a_late_copy_of_an_older_message_reverts_nothing(open_stage: Open) -> None:
    script = {
        "first": [says("never", error={"code": 503, "message": "no"})],
        "second": [says("two")],
    }
    talk = Talk(await open_stage(scripted(script)))
    assert (await talk.say("first", message_id="u1")).failed
    await talk.say("second", message_id="u2")
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    await read(await talk.start({"message": talk.messages[0]}))
    assert await talk.engine.get_chat(talk.chat_id, user=talk.user) == chat


async def test_a_decision_whose_exchange_is_closed_concurrently_runs_nothing(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, prompts = Counted(), Prompts()
    script = [calls(("pay", {"n": 1})), says("never said")]
    agent = scripted(script, [counted.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent))
    await talk.say("pay")
    resources, record = talk.engine.resources, Ledger.record_decisions

    async def overtaken(self: Ledger, *args: Any, **options: Any) -> list[ApprovalRow]:
        rows = await record(self, *args, **options)
        # As a live chat does that is opened and closed while the answer is on its way.
        exchange = (await resources.logs.load(talk.key)).last()
        assert exchange is not None
        async with resources.leases.acquired(talk.key, after=None):
            await resources.start_turn.close(talk.key, exchange)
        return rows

    monkeypatch.setattr(Ledger, "record_decisions", overtaken)
    decide(talk.pending()[0], approved=True)
    turn = await talk.post_last()
    assert counted.runs == []
    assert len(prompts.contents) == 1
    assert comparable(await talk.history()) == comparable(turn.message)
