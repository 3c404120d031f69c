"""Turns from a request to the stored message, against the real ADK and a scripted model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sluicegate.errors import AlreadyDecided, TurnRunning, Unknown
from sluicegate.testing.message_comparison import comparable
from tests.engine.stage import Counted, calls, says, scripted
from tests.engine.stores import on_every_store
from tests.engine.talk import Talk, decide

if TYPE_CHECKING:
    from pathlib import Path

    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.chat_engine import ChatEngine
    from tests.engine.stage import Open

pytestmark = on_every_store

RELEASES: list[ReleasePolicy] = ["deferred", "preview", "progressive"]


def count(effects: Path) -> int:
    return len(effects.read_text().splitlines())


async def check_history(talk: Talk) -> None:
    """The client's message and the stored one are the same."""
    stored = await talk.history()
    assert stored["id"] == talk.messages[-1]["id"]
    assert comparable(stored) == comparable(talk.messages[-1])


@pytest.mark.parametrize("release", RELEASES)
async def test_a_plain_answer_is_one_message(engine: ChatEngine, release: ReleasePolicy) -> None:
    talk = Talk(engine, release)
    turn = await talk.say("story:plain")
    assert turn.finish_reason == "stop"
    assert [part["text"] for part in turn.message["parts"] if part["type"] == "text"] == [
        "Here is a plain answer."
    ]
    await check_history(talk)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("approved", [True, False])
async def test_a_gated_tool_runs_once_after_an_approval_and_never_after_a_denial(
    engine: ChatEngine, effects: Path, release: ReleasePolicy, approved: bool
) -> None:
    talk = Talk(engine, release)
    first = await talk.say("story:approval")
    assert first.finish_reason == "tool-calls"
    assert len(talk.pending()) == 1
    assert count(effects) == 0
    await check_history(talk)
    second = await talk.answer(approved=approved, reason="because")
    assert second.finish_reason == "stop"
    assert count(effects) == int(approved)
    await check_history(talk)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("story", ["two_in_sequence", "five_in_sequence"])
async def test_gated_calls_in_sequence_take_one_request_each(
    engine: ChatEngine, effects: Path, release: ReleasePolicy, story: str
) -> None:
    talk = Talk(engine, release)
    turn = await talk.say(f"story:{story}")
    while turn.finish_reason == "tool-calls":
        turn = await talk.approve()
        await check_history(talk)
    gates = 2 if story == "two_in_sequence" else 5
    assert len(talk.turns) == gates + 1
    assert count(effects) == gates


async def test_one_of_two_decisions_is_stored_and_the_turn_lists_the_open_approval(
    talk: Talk, effects: Path
) -> None:
    await talk.say("story:two_in_one_step")
    decide(talk.pending()[0], approved=True)
    early = await talk.post_last()
    assert early.failed
    assert count(effects) == 0
    decide(talk.pending()[0], approved=True)
    assert (await talk.post_last()).finish_reason == "stop"
    assert count(effects) == 2
    await check_history(talk)


async def test_in_style_confirmation_one_of_two_decisions_ends_without_an_error(
    open_stage: Open,
) -> None:
    counted = Counted()
    script = [calls(("pay", {"n": 1}), ("pay", {"n": 2})), says("done")]
    agent = scripted(script, [counted.tool()])
    talk = Talk(await open_stage(agent, approval_style="confirmation"))
    await talk.say("pay")
    decide(talk.pending()[0], approved=True)
    early = await talk.post_last()
    assert early.types == ["start", "tool-input-available", "finish"]
    assert early.finish_reason == "tool-calls"
    again = await talk.post_last()
    assert again.failed, "the same answer twice would change nothing (T4)"
    decide(talk.pending()[0], approved=False)
    assert (await talk.post_last()).finish_reason == "stop"
    assert counted.runs == [1]
    await check_history(talk)


async def test_a_contradicting_decision_is_refused_and_changes_nothing(
    talk: Talk, effects: Path
) -> None:
    await talk.say("story:approval")
    await talk.approve()
    part = next(p for p in talk.messages[-1]["parts"] if "approval" in p)
    decide(part, approved=False)
    with pytest.raises(AlreadyDecided):
        await talk.post_last()
    assert count(effects) == 1


async def test_a_decision_of_another_user_finds_no_approval(talk: Talk, effects: Path) -> None:
    await talk.say("story:approval")
    decide(talk.pending()[0], approved=True)
    stranger = Talk(talk.engine, user="bob", chat_id=talk.chat_id, messages=talk.messages)
    with pytest.raises(Unknown):
        await stranger.post_last()
    assert count(effects) == 0


async def test_a_pending_approval_survives_a_restart(open_engine: object, effects: Path) -> None:
    assert callable(open_engine)
    async with open_engine() as first:
        talk = Talk(first)
        await talk.say("story:reload")
        await check_history(talk)
    async with open_engine() as second:
        talk.engine = second
        talk.messages = (await second.get_chat(talk.chat_id, user=talk.user))["messages"]
        assert (await talk.approve()).finish_reason == "stop"
        await check_history(talk)
    assert count(effects) == 1


async def test_new_text_supersedes_open_approvals(talk: Talk, effects: Path) -> None:
    await talk.say("story:new_text")
    turn = await talk.say("story:after")
    assert turn.finish_reason == "stop"
    assert "data-approval" in turn.types
    await check_history(talk)
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    [part] = [p for m in chat["messages"] for p in m["parts"] if "toolCallId" in p]
    [notice] = [chunk for chunk in turn.chunks if chunk.type == "data-approval"]  # type: ignore[attr-defined]
    # The client shows the closed approval as it does after a reload.
    assert notice.data["reason"] == part["approval"]["reason"]  # type: ignore[attr-defined]
    assert part["state"] == "output-denied"
    assert count(effects) == 0


async def test_a_failing_model_ends_in_one_error_and_its_text_is_kept(talk: Talk) -> None:
    turn = await talk.say("story:model_fails")
    assert turn.failed
    assert turn.types.count("error") == 1
    assert "secret" not in str(turn.chunks)
    await check_history(talk)


async def test_a_second_message_during_a_turn_is_refused(talk: Talk) -> None:
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "story:stop"}]}
    talk.messages.append(question)  # type: ignore[arg-type]
    reader = await talk.start({"message": question})
    with pytest.raises(TurnRunning):
        await talk.start({"message": {**question, "id": "u2"}})
    await talk.engine.stop(talk.chat_id, user=talk.user)
    turn = await talk.read(reader)
    assert turn.finish_reason == "other"
    await check_history(talk)
