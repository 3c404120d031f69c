"""A second reader of a running turn gets the whole message, whenever it comes (section 7)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import pytest

from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.chunks import chunk_for_major
from sluicegate.wire.reducer import reduce_chunks
from tests.engine.loop_time import within_limit
from tests.engine.stage import Counted, HeldTool, Steps, calls, kinds, read, says, scripted
from tests.engine.talk import Talk, check, decide

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.wire.chunks import BaseChunk
    from tests.engine.stage import Open

MAJORS: tuple[Literal[6, 7], ...] = (6, 7)
SEVEN = RequestingClient(7)
THOUGHTS_AND_WORDS = {
    "parts": [{"thought": "one two three "}, {"text": "four five six seven"}],
    "delta_chars": 5,
}
PIECES = 7


async def join(talk: Talk, major: Literal[6, 7] = 7) -> asyncio.Task[list[BaseChunk]] | None:
    reader = await talk.engine.resume(talk.chat_id, user=talk.user, client=RequestingClient(major))
    return None if reader is None else asyncio.create_task(read(reader))


async def approved(talk: Talk) -> asyncio.Task[list[BaseChunk]]:
    """Say yes; the response is being read."""
    decide(talk.pending()[0], approved=True)
    last = talk.messages[-1]
    return asyncio.create_task(read(await talk.start({"message": last, "messageId": last["id"]})))


@pytest.mark.parametrize("release", ["deferred", "preview", "progressive"])
async def test_a_reader_may_join_after_any_chunk_of_a_later_turn(
    open_stage: Open, release: ReleasePolicy
) -> None:
    steps = Steps()
    script = [calls(("pay", {"n": 1}), text="first "), THOUGHTS_AND_WORDS]
    steps.go(1)
    talk = Talk(await open_stage(scripted(script, [Counted().tool()], sleep=steps)), release)
    await talk.say("pay")
    response = await approved(talk)
    readers: list[tuple[Literal[6, 7], asyncio.Task[list[BaseChunk]]]] = []
    for piece in range(1, PIECES):
        await steps.reached(1 + piece)
        for major in MAJORS:
            joined = await join(talk, major)
            assert (joined is None) == (release == "preview" and major == 6)
            if joined is not None:
                readers.append((major, joined))
        steps.go(1)
    live = talk.take(await response).message
    assert kinds(talk.turns[-1].chunks)[-1] == "finish"
    for major, reader in readers:
        chunks = await reader
        check(chunks)
        assert all(chunk_for_major(chunk, major) == chunk for chunk in chunks)
        seen = reduce_chunks(chunks)
        how = {"major": major, "resumed": major == 6}
        assert seen["id"] == live["id"]
        assert comparable(seen, **how) == comparable(live, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("major", MAJORS)
async def test_a_reader_that_joins_a_later_turn_learns_at_once_who_decided(
    open_stage: Open, major: Literal[6, 7]
) -> None:
    steps = Steps()
    steps.go(1)
    script = [calls(("pay", {"n": 1})), THOUGHTS_AND_WORDS]
    talk = Talk(await open_stage(scripted(script, [Counted().tool()], sleep=steps)))
    await talk.say("pay")
    response = await approved(talk)
    await steps.reached(2)
    reader = await talk.engine.resume(talk.chat_id, user=talk.user, client=RequestingClient(major))
    assert reader is not None
    chunks = aiter(reader)
    head = [await anext(chunks), await anext(chunks)]
    [trace] = reduce_chunks(head)["metadata"]["approvals"].values()
    assert (trace["state"], trace["decidedBy"], trace["tool"]) == ("approved", "ann", "pay")
    steps.go()
    resumed = reduce_chunks([*head, *[chunk async for chunk in chunks]])
    await reader.aclose()
    live = talk.take(await response).message
    stored = await talk.history()
    assert resumed["metadata"] == live["metadata"] == stored["metadata"]
    [trace] = stored["metadata"]["approvals"].values()
    assert trace["state"] == "executed"


async def test_a_reader_that_disconnects_changes_nothing(open_stage: Open) -> None:
    steps = Steps()
    talk = Talk(await open_stage(scripted([THOUGHTS_AND_WORDS], sleep=steps)))
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "talk"}]}
    reader = await talk.start({"message": question})
    chunks = aiter(reader)
    await anext(chunks)
    await reader.aclose()
    other = await join(talk)
    assert other is not None
    steps.go()
    assert kinds(await other)[-1] == "finish"
    assert [part["type"] for part in (await talk.history())["parts"]] == [
        "step-start",
        "reasoning",
        "text",
    ]


async def test_a_chat_that_is_loaded_while_its_turn_ends_has_the_end(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = HeldTool()
    script = [calls(("hold", {"n": 1})), says("It is held.")]
    talk = Talk(await open_stage(scripted(script, [tool.tool(require_confirmation=True)])))
    await talk.say("hold")
    response = await approved(talk)
    await within_limit(tool.began)
    running, ledger = talk.running, talk.engine.resources.ledger
    rows = ledger.rows

    async def rows_at_the_end(*args: Any, **more: Any) -> Any:
        # The events are loaded; the turn ends before the rest is.
        monkeypatch.undo()
        tool.may_end.set()
        await within_limit(running.done)
        return await rows(*args, **more)

    monkeypatch.setattr(ledger, "rows", rows_at_the_end)
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    await response
    assert chat["status"] == "ready"
    states = [part.get("state") for part in chat["messages"][-1]["parts"]]
    assert states == [None, "output-available", None, "done"]
    assert chat["messages"][-1] == await talk.history()


async def test_a_request_is_not_in_the_chat_before_the_ledger_has_it(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(await open_stage(scripted([calls(("pay", {"n": 1}))], [Counted().tool()])))
    ledger, began, may_end = talk.engine.resources.ledger, asyncio.Event(), asyncio.Event()
    request = ledger.request

    async def held(*args: Any, **more: Any) -> Any:
        began.set()
        await within_limit(may_end)
        return await request(*args, **more)

    monkeypatch.setattr(ledger, "request", held)
    response = asyncio.create_task(talk.say("pay"))
    await within_limit(began)
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    may_end.set()
    await response
    assert chat["status"] == "running"
    assert not any("approval" in part for part in chat["messages"][-1]["parts"])
    [part] = [part for part in (await talk.history())["parts"] if "state" in part]
    assert part["state"] == "approval-requested"
    assert "expiresAt" in part["approval"]["descriptor"]


async def test_without_a_running_turn_there_is_no_stream_to_resume(talk: Talk) -> None:
    assert await join(talk) is None
    await talk.say("story:approval")
    assert await join(talk) is None
    await talk.approve()
    assert await join(talk) is None


async def test_a_running_chat_of_another_user_is_not_resumed(open_stage: Open) -> None:
    steps = Steps()
    talk = Talk(await open_stage(scripted([THOUGHTS_AND_WORDS], sleep=steps)))
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "talk"}]}
    reader = await talk.start({"message": question})
    stranger = Talk(talk.engine, user="bob", chat_id=talk.chat_id)
    assert await join(stranger) is None
    steps.go()
    assert kinds(await read(reader))[-1] == "finish"


async def test_a_message_repeated_during_a_later_turn_returns_the_answer_from_its_beginning(
    open_stage: Open,
) -> None:
    steps = Steps()
    steps.go(1)
    script = [calls(("pay", {"n": 1}), text="first "), THOUGHTS_AND_WORDS]
    talk = Talk(await open_stage(scripted(script, [Counted().tool()], sleep=steps)))
    await talk.say("pay", message_id="u1")
    response = await approved(talk)
    again = asyncio.create_task(read(await talk.start({"message": talk.messages[0]})))
    steps.go()
    live = talk.take(await response).message
    seen = reduce_chunks(await again)
    assert comparable(seen) == comparable(live)


async def test_a_6_client_that_repeats_a_request_gets_a_previewed_turn_after_its_end(
    open_stage: Open,
) -> None:
    steps = Steps()
    script = [calls(("pay", {"n": 1}), text="shown and taken back "), says("done")]
    engine: ChatEngine = await open_stage(scripted(script, [Counted().tool()], sleep=steps))
    talk = Talk(engine, "preview")
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "pay"}]}
    first = asyncio.create_task(read(await talk.start({"message": question})))
    old = Talk(engine, major=6, chat_id=talk.chat_id)
    second = asyncio.create_task(old.start({"message": question}))
    await asyncio.sleep(0)
    steps.go()
    assert "reset-step" in kinds(await first)
    chunks = await read(await second)
    assert not any(kind.startswith("text-") for kind in kinds(chunks))
    assert kinds(chunks)[-3:] == ["tool-approval-request", "finish-step", "finish"]
