"""Expired approvals (A5, S2-R36); the clock of the database is injected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import TooManyRequests
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import gated
from tests.engine.stage import Counted, Prompts, calls, part_of, says, scripted, words
from tests.engine.talk import Talk, decide

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from tests.engine.stage import Open
    from tests.stores.builders import Clock

RELEASES: list[ReleasePolicy] = ["deferred", "preview", "progressive"]
DAY = 86_400.0


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("approved", [True, False])
async def test_a_late_decision_runs_nothing_and_is_reported_as_expired(
    open_stage: Open,
    clock: Clock,
    counted: Counted,
    prompts: Prompts,
    release: ReleasePolicy,
    approved: bool,
) -> None:
    script = [calls(("pay", {"n": 1}), text="I pay. "), says("Too late.")]
    agent = scripted(script, [counted.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent, clock=clock), release)
    await talk.say("pay")
    clock.ahead += DAY + 1
    turn = await talk.answer(approved=approved)
    assert turn.finish_reason == "stop"
    part = part_of(turn.message, "pay")
    if approved:
        assert part["state"] == "output-error"
        assert "This approval expired" in part["errorText"]
    else:
        assert part["state"] == "output-denied"
    assert part["approval"]["approved"] is approved
    assert comparable(await talk.history()) == comparable(turn.message)
    result = prompts.results["pay"]
    assert "expired" in str(result)
    assert "denied this call" not in str(result)
    assert counted.runs == []


async def test_a_decision_in_time_is_valid_although_it_runs_late(
    open_stage: Open, clock: Clock, counted: Counted
) -> None:
    script = [calls(("pay", {"n": 1}), ("pay", {"n": 2})), says("done")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()]), clock=clock))
    await talk.say("pay")
    decide(talk.pending()[0], approved=True)
    assert (await talk.post_last()).failed
    clock.ahead += DAY - 600
    decide(talk.pending()[0], approved=True)
    assert (await talk.post_last()).finish_reason == "stop"
    assert sorted(counted.runs) == [1, 2]


@pytest.mark.parametrize("first", [True, False])
async def test_an_expired_approval_does_not_delay_the_others(
    open_stage: Open, clock: Clock, counted: Counted, first: bool
) -> None:
    script = [calls(("pay", {"n": 1}), ("pay", {"n": 2})), says("done")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()]), clock=clock))
    await talk.say("pay")
    decide(talk.pending()[0], approved=first)
    assert (await talk.post_last()).failed
    clock.ahead += DAY + 1
    turn = await talk.post_last()
    assert turn.finish_reason == "stop"
    states = [p["state"] for p in turn.message["parts"] if p["type"] == "tool-pay"]
    assert states == ["output-available" if first else "output-denied", "output-denied"]
    assert counted.runs == ([1] if first else [])


async def test_an_expired_approval_is_closed_by_the_next_message(
    open_stage: Open, clock: Clock, counted: Counted
) -> None:
    script = {"pay": [calls(("pay", {"n": 1}))], "hello": [says("Hello.")]}
    talk = Talk(await open_stage(scripted(script, [counted.tool()]), clock=clock))
    await talk.say("pay")
    clock.ahead += DAY + 1
    chats = await talk.engine.list_chats(user=talk.user, limit=10, after=None, query=None)
    assert chats["chats"][0]["pendingApprovals"] == 0
    turn = await talk.say("hello")
    [notice] = [c for c in turn.chunks if getattr(c, "type", "") == "data-approval"]
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    part = part_of(chat["messages"][1], "pay")
    assert (part["state"], part["approval"]["approved"]) == ("output-denied", False)
    assert part["approval"]["reason"] == "This approval expired."
    assert notice.data["reason"] == part["approval"]["reason"]  # type: ignore[attr-defined]


async def test_a_tool_may_have_a_deadline_of_its_own(
    open_stage: Open, clock: Clock, counted: Counted
) -> None:
    script = [calls(("pay", {"n": 1})), says("done")]
    options = {"approval_ttl": 10.0, "approval_ttls": {"pay": 100.0}}
    engine = await open_stage(scripted(script, [counted.tool()]), clock=clock, **options)
    talk = Talk(engine)
    await talk.say("pay")
    clock.ahead += 50
    assert words((await talk.approve()).message) == "done"
    assert counted.runs == [1]


async def test_a_decided_approval_stays_decided_after_its_deadline(
    open_stage: Open, clock: Clock, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server was busy when the answer came; it is run on a day later."""
    script = [calls(("pay", {"n": 1})), says("done")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()]), clock=clock))
    await talk.say("pay")
    turns = talk.engine.resources.turns

    def busy(user: str) -> None:
        raise TooManyRequests("busy", retry_after=1)

    with monkeypatch.context() as patched:
        patched.setattr(turns, "admit", busy)
        with pytest.raises(TooManyRequests):
            await talk.approve()
    clock.ahead += DAY + 1
    turn = await talk.post_last()
    assert turn.finish_reason == "stop"
    assert counted.runs == [1]
    assert comparable(await talk.history()) == comparable(turn.message)


@pytest.mark.parametrize("approved", [True, False])
async def test_an_approval_expires_although_nobody_uses_its_chat(
    open_stage: Open, clock: Clock, counted: Counted, prompts: Prompts, approved: bool
) -> None:
    script = [calls(("pay", {"n": 1})), says("Too late.")]
    agent = scripted(script, [counted.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent, clock=clock, timings={"sweep": 0.02}))
    await talk.say("pay")
    reader = await talk.engine.read_events(None, user=talk.user)
    await reader.read()
    clock.ahead += DAY + 1
    [event] = [json.loads(each.data) for each in await reader.read()]
    reader.close()
    approval = talk.pending()[0]["approval"]["id"]
    assert event == {
        "type": "approval",
        "chatId": talk.chat_id,
        "approvalId": approval,
        "tool": "pay",
        "state": "expired",
    }
    part = part_of(await talk.history(), "pay")
    assert part["approval"]["approved"] is False
    assert part["approval"]["reason"] == "This approval expired."
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    assert chat["status"] == "ready"
    # The agent does not know it yet: a late decision runs nothing, and the turn goes on.
    turn = await talk.answer(approved=approved)
    assert (turn.finish_reason, words(turn.message)) == ("stop", "Too late.")
    assert "expired" in str(prompts.results["pay"])
    part = part_of(turn.message, "pay")
    assert part["state"] == ("output-error" if approved else "output-denied")
    assert part["approval"]["approved"] is approved
    assert comparable(await talk.history()) == comparable(turn.message)
    assert counted.runs == []


async def test_an_expiry_may_count_as_a_denial_and_the_time_of_the_reminder_is_stored(
    open_stage: Open, clock: Clock, counted: Counted, prompts: Prompts
) -> None:
    tool = gated(counted.tool(), expires=600, remind_after=60, then="deny")
    script = [calls(("pay", {"n": 1})), says("Denied.")]
    engine = await open_stage(scripted(script, [tool], before_model_callback=prompts), clock=clock)
    talk = Talk(engine)
    await talk.say("pay")
    parts = engine.resources
    [row] = await parts.ledger.rows(ChatKey(parts.app, talk.user, talk.chat_id))
    assert row.remind_at is not None
    assert row.remind_at - row.requested_at == pytest.approx(60, abs=1)
    assert row.deadline - row.requested_at == pytest.approx(600, abs=1)
    assert row.at_expiry == "deny"
    clock.ahead += 601
    await talk.say("go on")
    assert "it was not approved in time, so it is denied" in str(prompts.results["pay"])
    assert counted.runs == []
