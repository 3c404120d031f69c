"""Limits of a turn, a process and a user (section 10)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.engine.turn.running_turn import TOOK_TOO_LONG
from sluicegate.errors import (
    HeldByAnotherOwner,
    Malformed,
    StoreError,
    TooManyRequests,
    Unavailable,
)
from sluicegate.testing.message_comparison import comparable
from sluicegate.wire.encoding import to_json
from tests.engine.loop_time import within_limit
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
from tests.engine.talk import Talk, Turn, check, decide

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.turn.reader import TurnReader
    from tests.engine.loop_time import LoopTime
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "preview", "progressive"]
HANGS = says("I am still at it", hang=True)


async def ask(talk: Talk, text: str = "go") -> TurnReader:
    question: Any = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": text}]}
    talk.messages.append(question)
    return await talk.start({"message": question})


async def check_history(talk: Talk, turn: Turn) -> None:
    stored = await talk.history()
    assert comparable(stored) == comparable(turn.message)


async def test_a_fixed_release_policy_refuses_other_policies(open_stage: Open) -> None:
    agent = scripted([says("Hello.")], [Counted().tool()])
    engine = await open_stage(agent, release="progressive", release_fixed=True)
    with pytest.raises(Malformed, match="progressive"):
        await Talk(engine, "deferred").say("hello")
    assert not (await Talk(engine, "progressive").say("hello")).failed
    chats = await engine.list_chats(user="ann", limit=10, after=None, query=None)
    assert len(chats["chats"]) == 1


async def test_the_list_says_which_chats_run_and_which_wait(open_stage: Open) -> None:
    script = {"pay": [calls(("pay", {"n": 1}))], "think": [HANGS], ".": [says("Hello.")]}
    engine = await open_stage(scripted(script, [Counted().tool()]))
    waiting, running, ready = Talk(engine), Talk(engine), Talk(engine)
    await waiting.say("pay")
    await ready.say("hello")
    reader = await ask(running, "think")
    chats = (await engine.list_chats(user="ann", limit=10, after=None, query=None))["chats"]
    assert {chat["id"]: chat["status"] for chat in chats} == {
        waiting.chat_id: "waiting",
        running.chat_id: "running",
        ready.chat_id: "ready",
    }
    await reader.aclose()


async def test_the_number_of_concurrent_turns_of_a_user_is_limited(open_stage: Open) -> None:
    engine = await open_stage(scripted([HANGS]), max_turns_per_user=2, max_turns=3)
    first, second = Talk(engine), Talk(engine)
    readers = [await ask(first), await ask(second)]
    with pytest.raises(TooManyRequests) as refused:
        await ask(Talk(engine))
    assert refused.value.retry_after is not None
    other = Talk(engine, user="bob")
    readers.append(await ask(other))
    with pytest.raises(Unavailable):
        await ask(Talk(engine, user="carl"))
    await engine.stop(first.chat_id, user="ann")
    third = Talk(engine)
    readers.append(await ask(third))
    for talk in (second, third, other):
        await engine.stop(talk.chat_id, user=talk.user)
    for reader in readers:
        await read(reader)


async def test_a_turn_that_takes_too_long_ends_with_an_error(
    open_stage: Open, loop_time: LoopTime
) -> None:
    steps = Steps()
    script = [says("I said this much")]
    talk = Talk(await open_stage(scripted(script, sleep=steps), turn_timeout=60.0))
    reader = await ask(talk)
    await steps.reached(1)
    loop_time.advance(60.0)
    turn = talk.take(await read(reader))
    assert turn.failed
    assert "too long" in turn.chunks[-1].error_text  # type: ignore[attr-defined]
    assert words(turn.message) == "I said t"
    await check_history(talk, turn)


async def test_a_turn_times_out_only_after_its_claimed_call(open_stage: Open) -> None:
    held = HeldTool()
    script = [calls(("hold", {"n": 1})), says("never said")]
    agent = scripted(script, [held.tool(require_confirmation=True)])
    talk = Talk(await open_stage(agent))
    await talk.say("hold")
    decide(talk.pending()[0], approved=True)
    last = talk.messages[-1]
    reading = asyncio.create_task(
        read(await talk.start({"message": last, "messageId": last["id"]}))
    )
    await held.began.wait()
    talk.running.fail(TOOK_TOO_LONG)
    assert await stays_pending(reading)
    held.may_end.set()
    turn = talk.take(await reading)
    assert turn.failed
    assert part_of(turn.message, "hold")["output"] == {"held": 1}
    await check_history(talk, turn)


async def test_a_turn_without_readers_is_stopped_after_the_grace_period(
    open_stage: Open, loop_time: LoopTime
) -> None:
    talk = Talk(await open_stage(scripted([HANGS]), linger=60.0))
    reader = await ask(talk)
    turn = talk.running
    await reader.aclose()
    loop_time.advance(60.0)
    await within_limit(turn.done)
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    assert chat["status"] == "ready"


async def test_a_claimed_call_continues_without_readers(
    open_stage: Open, loop_time: LoopTime
) -> None:
    held = HeldTool()
    script = [calls(("hold", {"n": 1})), says("never heard")]
    agent = scripted(script, [held.tool(require_confirmation=True)])
    talk = Talk(await open_stage(agent, linger=30.0, tool_timeout=3600.0))
    await talk.say("hold")
    decide(talk.pending()[0], approved=True)
    last = talk.messages[-1]
    reader = await talk.start({"message": last, "messageId": last["id"]})
    await held.began.wait()
    turn = talk.running
    await reader.aclose()
    loop_time.advance(30.0)
    assert await stays_pending(asyncio.ensure_future(turn.done.wait()))
    held.may_end.set()
    await within_limit(turn.done)
    assert part_of(await talk.history(), "hold")["output"] == {"held": 1}


async def test_a_reader_that_returns_keeps_the_turn_alive(
    open_stage: Open, loop_time: LoopTime
) -> None:
    steps = Steps()
    talk = Talk(await open_stage(scripted([says("a word and another")], sleep=steps), linger=60.0))
    reader = await ask(talk)
    await steps.reached(1)
    await reader.aclose()
    again = await talk.engine.resume(talk.chat_id, user=talk.user, client=talk.client)
    assert again is not None
    reading = asyncio.create_task(read(again))
    loop_time.advance(60.0)
    assert await stays_pending(reading)
    steps.go()
    assert talk.take(await reading).finish_reason == "stop"


@pytest.mark.parametrize("release", ["deferred", "preview"])
async def test_the_release_buffer_is_bounded_and_nothing_is_lost(
    open_stage: Open, release: ReleasePolicy
) -> None:
    counted = Counted()
    long = "words and more words " * 40
    script = [calls(("pay", {"n": 1}), text=long), says("never said")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()]), held_bytes=500), release)
    turn = await talk.say("pay")
    assert turn.failed
    assert "held more" in turn.chunks[-1].error_text  # type: ignore[attr-defined]
    assert not talk.pending()
    await check_history(talk, turn)
    assert words(turn.message)
    assert long.startswith(words(turn.message))
    assert counted.runs == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("bound", range(6, 30, 6))
async def test_a_stream_that_exceeds_its_limit_ends_in_one_error(
    open_stage: Open, release: ReleasePolicy, bound: int
) -> None:
    counted = Counted()
    script = [
        {
            "parts": [
                {"thought": "one two three"},
                {"text": "four five six seven"},
                {"call": {"name": "free", "args": {"n": 1}}},
            ],
            "delta_chars": 2,
        },
        says("never said, or perhaps it is"),
    ]

    async def free(n: int) -> dict[str, int]:
        """Not gated."""
        return {"n": n}

    agent = scripted(script, [counted.tool(), free])
    talk = Talk(await open_stage(agent, max_turn_chunks=bound), release)
    turn = await talk.say("go")
    assert turn.failed or bound > 12
    assert len(turn.chunks) <= 2 * bound
    check(turn.chunks)
    await check_history(talk, turn)


async def test_an_answer_of_5000_deltas_arrives_completely(open_stage: Open) -> None:
    text = "sluice. " * 5_000
    talk = Talk(await open_stage(scripted([says(text, delta_chars=8)])))
    turn = await talk.say("go")
    assert not turn.failed
    assert sum(chunk.type == "text-delta" for chunk in turn.chunks) == 5_000  # type: ignore[attr-defined]
    assert words(turn.message) == text
    await check_history(talk, turn)


@pytest.mark.parametrize(("deltas", "fits"), [(50, True), (100, False)])
async def test_the_size_of_a_turn_is_limited_by_the_setting(
    open_stage: Open, deltas: int, fits: bool
) -> None:
    text = "sluice. " * deltas
    script = [says(text, delta_chars=8)]
    talk = Talk(await open_stage(scripted(script), max_turn_bytes=4_000))
    turn = await talk.say("go")
    assert turn.failed is not fits
    said = [to_json(chunk) for chunk in turn.chunks if chunk.type == "text-delta"]  # type: ignore[attr-defined]
    assert sum(map(len, said)) <= 4_000
    await check_history(talk, turn)


async def test_a_store_that_fails_at_the_claim_prevents_the_effect(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1})), says("never said")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])))
    await talk.say("pay")
    ledger = talk.engine.resources.ledger
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "claim", _fails)
        turn = await talk.approve()
    assert turn.failed
    assert counted.runs == []
    part = part_of(turn.message, "pay")
    assert (part["state"], part["approval"]["approved"]) == ("output-error", True)
    await check_history(talk, turn)


async def test_a_store_that_fails_after_the_effect_leaves_the_outcome_unknown(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1})), says("never said")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])))
    await talk.say("pay")
    with monkeypatch.context() as patched:
        patched.setattr(talk.engine.resources.ledger, "store_outcome", _fails)
        turn = await talk.approve()
    assert turn.failed
    assert counted.runs == [1]
    assert "unknown" in part_of(turn.message, "pay")["errorText"]
    await check_history(talk, turn)
    await talk.post_last()
    assert counted.runs == [1]


async def test_a_store_that_fails_at_the_request_leaves_no_approval(
    open_stage: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [calls(("pay", {"n": 1})), says("never said")]
    talk = Talk(await open_stage(scripted(script, [Counted().tool()])))
    with monkeypatch.context() as patched:
        patched.setattr(talk.engine.resources.ledger, "request", _fails)
        turn = await talk.say("pay")
    assert turn.failed
    assert not talk.pending()
    await check_history(talk, turn)
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    assert chat["status"] == "ready"


async def test_new_text_is_refused_when_another_owner_has_the_lease(open_stage: Open) -> None:
    talk = Talk(await open_stage(scripted([says("Hello.")])))
    leases = talk.engine.resources.leases
    fence = await leases.acquire(talk.key, "another process")
    with pytest.raises(HeldByAnotherOwner):
        await talk.say("hello")
    await leases.release(talk.key, "another process", fence)
    talk.messages.clear()
    assert not (await talk.say("hello")).failed


async def _fails(*_: Any, **__: Any) -> None:
    raise StoreError("the disk is full")
