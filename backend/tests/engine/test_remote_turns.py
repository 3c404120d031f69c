"""Two processes on one PostgreSQL database, with streams on Valkey or without (A2)."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.errors import AlreadyDecided, HeldByAnotherOwner, RequestError, TurnRunning, Unknown
from sluicegate.stores.leases.database_leases import DatabaseLeases
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.reducer import reduce_chunks
from tests.engine.loop_time import EVENT_TIMEOUT, within_limit
from tests.engine.stage import (
    Counted,
    HeldTool,
    Steps,
    calls,
    part_of,
    read,
    says,
    scripted,
    stays_pending,
    words,
)
from tests.engine.talk import Talk, decide
from tests.stores.builders import end_leases

if TYPE_CHECKING:
    from sluicegate.core.chat_and_turn_keys import ChatKey
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.stores.leases.base import LeaseState
    from tests.engine.loop_time import LoopTime
    from tests.engine.stage import OpenReplicas as Open


is_shared = pytest.mark.parametrize("streams_url", ["shared streams"], indirect=True)


@dataclass
class AlternatingClient(Talk):
    """A client whose requests alternate between two replicas."""

    other: ChatEngine | None = None

    async def start(self, body: dict[str, Any]) -> TurnReader:
        assert self.other is not None
        self.engine, self.other = self.other, self.engine
        return await super().start(body)


def at(talk: Talk, engine: ChatEngine) -> Talk:
    """The same page, with its requests going to another replica."""
    messages = copy.deepcopy(talk.messages)
    return Talk(engine, talk.release, talk.major, talk.user, talk.chat_id, messages)


async def check_histories(talk: Talk, *engines: ChatEngine) -> None:
    """Check that every replica returns the message of the client."""
    for engine in engines:
        assert comparable(await at(talk, engine).history()) == comparable(talk.messages[-1])


@pytest.mark.parametrize("release", ["deferred", "progressive"])
async def test_any_replica_answers_any_request(open_replicas: Open, release: Any) -> None:
    counted = Counted()
    script = [
        calls(("pay", {"n": 1})),
        calls(("pay", {"n": 2}), ("pay", {"n": 3})),
        says("All is paid."),
    ]
    one, two = await open_replicas(scripted(script, [counted.tool()]))
    talk = AlternatingClient(one, release, other=two)
    turn = await talk.say("pay")
    while talk.pending():
        for part in talk.pending():
            decide(part, approved=True)
        turn = await talk.post_last()
    assert turn.finish_reason == "stop"
    assert sorted(counted.runs) == [1, 2, 3]
    assert words(talk.messages[-1]) == "All is paid."
    await check_histories(talk, one, two)


async def test_approvals_of_one_step_may_be_decided_on_two_replicas(open_replicas: Open) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1}), ("pay", {"n": 2})), says("Done.")]
    one, two = await open_replicas(scripted(script, [counted.tool()]))
    talk = Talk(one)
    await talk.say("pay")
    elsewhere = at(talk, two)
    decide(talk.pending()[0], approved=True)
    early = await talk.post_last()
    assert early.failed
    assert counted.runs == []
    decide(elsewhere.pending()[1], approved=False)
    turn = await elsewhere.post_last()
    assert turn.finish_reason == "stop"
    assert counted.runs == [1]
    assert await at(talk, one).history() == await at(talk, two).history()


async def test_concurrent_equal_decisions_on_two_replicas_run_once(open_replicas: Open) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1})), says("Done.")]
    one, two = await open_replicas(scripted(script, [counted.tool()]))
    for number in range(1, 6):
        talk = Talk(one)
        await talk.say("pay")
        decide(talk.pending()[0], approved=True)
        tabs = [at(talk, one), at(talk, two)]
        turns = await asyncio.gather(*(tab.post_last() for tab in tabs))
        assert counted.runs == [1] * number
        assert any(turn.finish_reason == "stop" for turn in turns)
        for tab, turn in zip(tabs, turns, strict=True):
            assert not turn.failed
            await check_histories(tab, one, two)


async def test_the_last_two_decisions_on_two_replicas_concurrently_run_both_calls(
    open_replicas: Open,
) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1}), ("pay", {"n": 2})), says("Done.")]
    one, two = await open_replicas(scripted(script, [counted.tool()]))
    for number in range(1, 6):
        talk = Talk(one)
        await talk.say("pay")
        tabs = [at(talk, one), at(talk, two)]
        for card, tab in enumerate(tabs):
            decide(tab.pending()[card], approved=True)
        turns = await asyncio.gather(*(tab.post_last() for tab in tabs))
        assert sorted(counted.runs) == sorted([1, 2] * number)
        assert any(turn.finish_reason == "stop" for turn in turns)


async def test_of_two_opposite_decisions_one_is_recorded(open_replicas: Open) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1})), says("Done.")]
    one, two = await open_replicas(scripted(script, [counted.tool()]))
    asked = Talk(one)
    await asked.say("pay")
    tabs = [at(asked, one), at(asked, two)]
    for tab, approved in zip(tabs, (True, False), strict=True):
        tab.messages = [dict(message) for message in asked.messages]  # type: ignore[misc]
        tab.messages[-1] = {
            **asked.messages[-1],
            "parts": [*map(dict, asked.messages[-1]["parts"])],
        }
        decide(tab.pending()[0], approved=approved)
    yes, no = await asyncio.gather(*(tab.post_last() for tab in tabs), return_exceptions=True)
    lost = [each for each in (yes, no) if isinstance(each, BaseException)]
    assert [type(error) for error in lost] == [AlreadyDecided]
    assert counted.runs == ([1] if isinstance(no, AlreadyDecided) else [])


async def test_a_message_sent_to_two_replicas_concurrently_is_answered_once(
    open_replicas: Open,
) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1})), says("Hello there.")]
    one, two = await open_replicas(scripted(script, [counted.tool(gated=False)]))
    for number in range(1, 6):
        talk = Talk(one)
        readers = await asyncio.gather(
            *(at(talk, engine).start(question("hello")) for engine in (one, two))
        )
        answers = [reduce_chunks(await read(reader)) for reader in readers]
        assert counted.runs == [1] * number
        assert comparable(answers[0]) == comparable(answers[1])
        for engine in (one, two):
            chat = await engine.get_chat(talk.chat_id, user="ann")
            assert [m["role"] for m in chat["messages"]] == ["user", "assistant"]


@is_shared
@pytest.mark.parametrize("major", [6, 7])
async def test_a_turn_of_one_replica_is_streamed_by_the_other(
    open_replicas: Open, major: Any
) -> None:
    steps = Steps()
    script = [says("one two three four five", delta_chars=4)]
    one, two = await open_replicas(scripted(script, sleep=steps))
    talk = Talk(one, "progressive", major)
    reader = await talk.start(question("count"))
    steps.go(3)
    await steps.reached(3)
    resumed = await two.resume(talk.chat_id, user="ann", client=talk.client)
    assert resumed is not None
    assert (await two.get_chat(talk.chat_id, user="ann"))["status"] == "running"
    steps.go()
    here, there = await asyncio.gather(read(reader), read(resumed))
    assert [chunk.model_dump() for chunk in here] == [chunk.model_dump() for chunk in there]
    assert words(reduce_chunks(there)) == "one two three four five"
    assert await two.resume(talk.chat_id, user="ann", client=talk.client) is None


@is_shared
async def test_a_stream_resumed_on_another_replica_contains_the_whole_message(
    open_replicas: Open,
) -> None:
    steps, counted = Steps(), Counted()
    script = [calls(("pay", {"n": 1}), text="I pay."), says("It is paid, all of it.")]
    one, two = await open_replicas(scripted(script, [counted.tool()], sleep=steps))
    steps.go(2)
    talk = Talk(one, "progressive")
    await talk.say("pay")
    decide(talk.pending()[0], approved=True)
    reader = await talk.start({"message": talk.messages[-1], "messageId": talk.messages[-1]["id"]})
    resumed = await two.resume(talk.chat_id, user="ann", client=talk.client)
    assert resumed is not None
    steps.go()
    talk.take(await read(reader))
    whole = reduce_chunks(await read(resumed))
    assert comparable(whole) == comparable(talk.messages[-1])
    assert part_of(whole, "pay")["state"] == "output-available"


@pytest.mark.parametrize("streams_url", ["streams of their own"], indirect=True)
async def test_without_shared_streams_the_history_is_returned(open_replicas: Open) -> None:
    steps = Steps()
    one, two = await open_replicas(scripted([says("one two three")], sleep=steps))
    talk = Talk(one, "progressive")
    reader = await talk.start(question("count"))
    await steps.reached(1)
    assert await two.resume(talk.chat_id, user="ann", client=talk.client) is None
    assert (await two.get_chat(talk.chat_id, user="ann"))["status"] == "running"
    steps.go()
    await read(reader)
    assert (await two.get_chat(talk.chat_id, user="ann"))["status"] == "ready"
    assert words(await at(talk, two).history()) == "one two three"


async def test_new_text_is_refused_while_another_replica_runs_the_turn(
    open_replicas: Open, loop_time: LoopTime
) -> None:
    steps = Steps()
    agent = scripted([says("one two three")], sleep=steps)
    # Shorter than the time limits of the stores, which go by the same clock.
    one, two = await open_replicas(agent, timings={"lease": 20.0})
    talk = Talk(one)
    reader = await talk.start(question("count"))
    await steps.reached(1)
    refused = asyncio.create_task(at(talk, two).start(question("something else")))
    assert await stays_pending(refused)
    loop_time.advance(20.0)
    with pytest.raises(HeldByAnotherOwner):
        await refused
    with pytest.raises(TurnRunning):
        await two.delete_chat(talk.chat_id, user="ann")
    waiting = asyncio.create_task(at(talk, two).start(question("and then")))
    steps.go()
    await read(reader)
    await read(await waiting)
    chat = await one.get_chat(talk.chat_id, user="ann")
    assert len(chat["messages"]) == 4


async def test_a_stop_reaches_the_replica_that_runs_the_turn(open_replicas: Open) -> None:
    steps = Steps()
    one, two = await open_replicas(scripted([says("one two three", delta_chars=2)], sleep=steps))
    talk = Talk(one, "progressive")
    reading = asyncio.create_task(read(await talk.start(question("count"))))
    steps.go(2)
    await steps.reached(3)
    async with asyncio.timeout(EVENT_TIMEOUT):
        await two.stop(talk.chat_id, user="ann")
    chunks = await reading
    assert chunks[-1].finish_reason == "other"  # type: ignore[attr-defined]
    assert (await two.get_chat(talk.chat_id, user="ann"))["status"] == "ready"
    talk.take(chunks)
    await check_histories(talk, one, two)


async def test_every_replica_lists_a_chat_as_running(open_replicas: Open) -> None:
    held = HeldTool()
    one, two = await open_replicas(
        scripted([calls(("hold", {"n": 1})), says("Done.")], [held.tool()])
    )
    talk = Talk(one)
    reading = asyncio.create_task(talk.say("hold"))
    await held.began.wait()

    async def statuses() -> list[str]:
        pages = [
            await engine.list_chats(user="ann", limit=10, after=None, query=None)
            for engine in (one, two)
        ]
        return [page["chats"][0]["status"] for page in pages]

    assert await statuses() == ["running", "running"]
    held.may_end.set()
    await reading
    assert await statuses() == ["ready", "ready"]


async def test_a_stop_on_another_replica_waits_for_the_claimed_call(open_replicas: Open) -> None:
    held = HeldTool()
    script = [calls(("hold", {"n": 1})), says("Done.")]
    one, two = await open_replicas(scripted(script, [held.tool(require_confirmation=True)]))
    talk = Talk(one)
    await talk.say("hold")
    decide(talk.pending()[0], approved=True)
    reading = asyncio.create_task(talk.post_last())
    await held.began.wait()
    stopping = asyncio.create_task(two.stop(talk.chat_id, user="ann"))
    assert await stays_pending(stopping)
    held.may_end.set()
    await stopping
    turn = await reading
    assert held.ended == 1
    assert part_of(turn.message, "hold")["state"] == "output-available"
    await check_histories(talk, one, two)


async def test_a_stop_on_another_replica_supersedes_approvals(open_replicas: Open) -> None:
    counted = Counted()
    one, two = await open_replicas(scripted([calls(("pay", {"n": 1}))], [counted.tool()]))
    talk = Talk(one)
    await talk.say("pay")
    await two.stop(talk.chat_id, user="ann")
    for engine in (one, two):
        message = await at(talk, engine).history()
        assert part_of(message, "pay")["state"] == "output-denied"


@is_shared
async def test_a_reader_on_another_replica_keeps_a_turn_running(
    open_replicas: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, looks, has_outlived = Steps(), [], asyncio.Event()
    script = [says("one two three", delta_chars=4)]
    one, two = await open_replicas(scripted(script, sleep=steps), linger=0.05, abort_grace=0.05)
    talk = Talk(one, "progressive")
    reader = await talk.start(question("count"))
    steps.go(1)
    await steps.reached(1)
    resumed = await two.resume(talk.chat_id, user="ann", client=talk.client)
    assert resumed is not None
    state = DatabaseLeases.state

    async def looked(self: DatabaseLeases, chat: ChatKey) -> LeaseState:
        found = await state(self, chat)
        looks.append(found.has_remote_readers)
        if len(looks) == 3:
            has_outlived.set()
        return found

    # The turn checks for readers on other replicas when its last local reader has left.
    monkeypatch.setattr(DatabaseLeases, "state", looked)
    await reader.aclose()
    await within_limit(has_outlived)
    assert looks == [True] * 3
    steps.go()
    assert words(reduce_chunks(await read(resumed))) == "one two three"


@is_shared
async def test_a_turn_whose_process_was_killed_ends_with_an_error(
    open_replicas: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps()
    script = [says("one two three", delta_chars=4)]
    one, two = await open_replicas(scripted(script, sleep=steps))
    talk = Talk(one, "progressive")
    reader = await talk.start(question("count"))
    steps.go(1)
    await steps.reached(2)
    resumed = await two.resume(talk.chat_id, user="ann", client=talk.client)
    assert resumed is not None

    async def never(*_: Any, **__: Any) -> bool:
        await asyncio.Event().wait()
        return True

    monkeypatch.setattr(DatabaseLeases, "renew", never)
    await end_leases(two.resources.database)
    async with asyncio.timeout(EVENT_TIMEOUT):
        chunks = await read(resumed)
    assert "was lost (error" in chunks[-1].error_text  # type: ignore[attr-defined]
    assert await two.resume(talk.chat_id, user="ann", client=talk.client) is None
    steps.go()
    await read(reader)


async def test_chats_of_other_users_are_unknown_on_every_replica(open_replicas: Open) -> None:
    one, two = await open_replicas(scripted([says("Hello.")]))
    talk = Talk(one)
    await talk.say("hello")
    with pytest.raises(Unknown):
        await two.get_chat(talk.chat_id, user="bob")
    assert await two.resume(talk.chat_id, user="bob", client=RequestingClient(7)) is None
    with pytest.raises(RequestError):
        await two.delete_chat(talk.chat_id, user="bob")
    await two.delete_chat(talk.chat_id, user="ann")
    with pytest.raises(Unknown):
        await one.get_chat(talk.chat_id, user="ann")


def question(text: str) -> dict[str, Any]:
    parts = [{"type": "text", "text": text}]
    return {"message": {"id": "user-" + text.replace(" ", "-"), "role": "user", "parts": parts}}
