"""Grants: later calls of the tool in the same chat run without a request (A8)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import pytest
from sqlalchemy import update

from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.errors import AlreadyDecided, Malformed, ToolError, Unknown
from sluicegate.stores.sql.schema import APPROVALS
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import gated
from sluicegate.wire.chunks import ToolApprovalRequestChunk, ToolApprovalResponseChunk
from sluicegate.wire.reducer import reduce_chunks
from tests.engine.loop_time import within_limit
from tests.engine.stage import (
    Counted,
    HeldTool,
    Prompts,
    calls,
    kinds,
    part_of,
    read,
    says,
    scripted,
)
from tests.engine.talk import Talk, check, decide
from tests.engine.test_denials import RequestingTool
from tests.engine.topologies import flow

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.wire.ui_messages import Part, UIMessage
    from tests.engine.loop_time import LoopTime
    from tests.engine.stage import Open

Major = Literal[6, 7]
RELEASES: list[ReleasePolicy] = ["deferred", "preview", "progressive"]
TWICE = [calls(("pay", {"n": 1})), calls(("pay", {"n": 2})), says("done")]


async def remember(talk: Talk) -> None:
    """Say yes to everything that waits, for the rest of the chat."""
    await talk.approve(remember=dict.fromkeys(talk.asks(), "chat"))


def paid(message: UIMessage) -> list[Part]:
    return [part for part in message["parts"] if part["type"] == "tool-pay"]


@pytest.mark.parametrize("style", ["call", "confirmation"])
@pytest.mark.parametrize(
    ("release", "major"),
    [("deferred", 6), ("deferred", 7), ("preview", 7), ("progressive", 6), ("progressive", 7)],
)
async def test_a_granted_tool_requests_no_further_approval(
    open_stage: Open, counted: Counted, release: ReleasePolicy, major: Major, style: str
) -> None:
    engine = await open_stage(scripted(TWICE, [counted.tool()]), approval_style=style)
    talk = Talk(engine, release, major)
    await talk.say("pay")
    await remember(talk)
    turn = talk.turns[-1]
    assert turn.finish_reason == "stop"
    assert counted.runs == [1, 2]
    assert [part["state"] for part in paid(turn.message)] == ["output-available"] * 2
    assert comparable(await talk.history(), major=major) == comparable(turn.message, major=major)
    told = [c for c in turn.chunks if isinstance(c, ToolApprovalRequestChunk)]
    answered = [c for c in turn.chunks if isinstance(c, ToolApprovalResponseChunk)]
    if major == 6 or style == "confirmation":
        assert (told, answered) == ([], [])
        return
    [request], [answer] = told, answered
    assert (request.is_automatic, answer.approved) == (True, True)
    assert request.approval_id == answer.approval_id
    assert turn.chunks.index(answer) == turn.chunks.index(request) + 1
    second = paid(turn.message)[1]
    assert second["approval"]["isAutomatic"] is True
    assert "providerExecuted" not in second


async def test_a_grant_applies_to_its_chat_only(open_stage: Open, counted: Counted) -> None:
    engine = await open_stage(scripted(TWICE, [counted.tool()]))
    talk = Talk(engine)
    await talk.say("pay")
    await remember(talk)
    turn = await talk.say("pay again")
    assert (turn.finish_reason, counted.runs) == ("stop", [1, 2, 1, 2])
    for stranger in (Talk(engine), Talk(engine, user="bob", chat_id=talk.chat_id)):
        assert (await stranger.say("pay")).finish_reason == "tool-calls"


async def test_a_grant_survives_a_restart(open_engine: Any, counted: Counted) -> None:
    agent = scripted(TWICE, [counted.tool()])
    async with open_engine(agent) as engine:
        talk = Talk(engine)
        await talk.say("pay")
        await remember(talk)
    async with open_engine(agent) as talk.engine:
        assert (await talk.say("pay again")).finish_reason == "stop"


@pytest.mark.parametrize("release", RELEASES)
async def test_the_result_of_a_granted_call_beside_an_open_approval_is_buffered(
    open_stage: Open, counted: Counted, release: ReleasePolicy
) -> None:
    asking = RequestingTool()
    script = {
        "first": [calls(("pay", {"n": 1})), says("done")],
        "both": [calls(("ask", {"n": 1}), ("pay", {"n": 2})), says("done")],
    }
    talk = Talk(await open_stage(scripted(script, [asking.ask, counted.tool()])), release)
    await talk.say("first")
    await remember(talk)
    turn = await talk.say("both")
    assert (counted.runs, len(talk.pending())) == ([1, 2], 1)
    kept = part_of(turn.message, "pay")
    assert kept["approval"]["approved"] is True
    assert kept["state"] == (
        "output-available" if release == "progressive" else "approval-responded"
    )
    assert comparable(await talk.history()) == comparable(turn.message)
    turn = await talk.approve()
    assert turn.finish_reason == "stop"
    assert part_of(turn.message, "pay")["output"] == {"paid": 2}
    assert comparable(await talk.history()) == comparable(turn.message)
    assert (counted.runs, asking.done) == ([1, 2], [1])


@pytest.mark.parametrize("release", RELEASES)
async def test_a_tool_that_requests_its_own_approval_can_be_granted(
    open_stage: Open, prompts: Prompts, release: ReleasePolicy
) -> None:
    asking = RequestingTool()
    script = [calls(("ask", {"n": 1})), calls(("ask", {"n": 2})), says("done")]
    agent = scripted(script, [asking.ask], before_model_callback=prompts)
    talk = Talk(await open_stage(agent), release)
    await talk.say("ask")
    await remember(talk)
    turn = talk.turns[-1]
    assert (turn.finish_reason, asking.asked, asking.done) == ("stop", [1, 1, 2, 2], [1, 2])
    assert prompts.results["ask"] == {"n": 2}
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_a_call_that_requires_no_approval_uses_no_grant(
    open_stage: Open, counted: Counted
) -> None:
    def dear(n: int) -> bool:
        return n > 10

    tool = gated(counted.tool(gated=False), require_confirmation=dear)
    script = [calls(("pay", {"n": 20})), calls(("pay", {"n": 1}), ("pay", {"n": 30})), says("done")]
    talk = Talk(await open_stage(scripted(script, [tool])))
    await talk.say("pay")
    await remember(talk)
    parts = paid(talk.turns[-1].message)
    assert sorted(counted.runs) == [1, 20, 30]
    assert [part.get("providerExecuted", False) for part in parts] == [False, True, False]
    assert ["approval" in part for part in parts] == [True, False, True]


@pytest.mark.parametrize("release", RELEASES)
async def test_a_granted_call_that_fails_is_reported_like_any_other(
    open_stage: Open, release: ReleasePolicy
) -> None:
    async def pay(n: int) -> None:
        """Pay."""
        raise ToolError(f"No money for {n}.")

    async def ask(n: int, tool_context: Any) -> None:
        """Ask."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation()
            return
        raise ToolError("No answer.")

    script = [
        calls(("pay", {"n": 1}), ("ask", {"n": 1})),
        calls(("pay", {"n": 2}), ("ask", {"n": 2})),
    ]
    talk = Talk(await open_stage(scripted([*script, says("done")], [gated(pay), ask])), release)
    await talk.say("pay")
    await remember(talk)
    turn = talk.turns[-1]
    failed = [part["errorText"] for part in turn.message["parts"] if "errorText" in part]
    assert failed == ["No money for 1.", "No answer.", "No money for 2.", "No answer."]
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_denials_and_staged_choices_for_other_approvals_add_no_grant(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(TWICE, [counted.tool()])))
    await talk.say("pay")
    staged = dict.fromkeys([*talk.asks(), "another"], "chat")
    await talk.answer(approved=False, remember=staged)
    assert len(talk.pending()) == 1
    assert await grants(talk) == []
    # The client sends its staged choices with every request.
    await talk.answer(approved=True, remember=staged)
    assert await grants(talk) == []
    assert counted.runs == [2]


async def test_a_late_approval_adds_no_grant(open_stage: Open, counted: Counted) -> None:
    ahead = 0.0
    engine = await open_stage(scripted(TWICE, [counted.tool()]), clock=lambda: ahead)
    talk = Talk(engine)
    await talk.say("pay")
    ahead = 86_401.0
    await remember(talk)
    assert (await grants(talk), counted.runs) == ([], [])


async def test_an_approval_that_lost_the_race_adds_no_grant(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(TWICE, [counted.tool()])))
    await talk.say("pay")
    asked = talk.asks()
    await talk.answer(approved=False)
    [part, *_] = paid(talk.messages[-1])
    part["approval"] |= {"approved": True}
    part["state"] = "approval-responded"
    with pytest.raises(AlreadyDecided):
        await talk.post_last(remember=dict.fromkeys(asked, "chat"))
    assert await grants(talk) == []


@pytest.mark.parametrize("where", ["declared", "metadata"])
async def test_a_tool_that_allows_no_grant_always_requests_approval(
    open_stage: Open, counted: Counted, where: str
) -> None:
    tool = counted.tool()
    if where == "declared":
        tool = gated(tool, rememberable=False)  # type: ignore[assignment]
    else:
        tool.custom_metadata = {"rememberable": False}
    talk = Talk(await open_stage(scripted(TWICE, [tool])))
    turn = await talk.say("pay")
    [request] = [c for c in turn.chunks if isinstance(c, ToolApprovalRequestChunk)]
    assert request.approval_descriptor["rememberable"] is False
    with pytest.raises(Malformed, match="Approvals of pay cannot be remembered"):
        await remember(talk)
    assert (await talk.history())["parts"][-1]["state"] == "approval-requested"
    await talk.post_last()
    assert (counted.runs, len(talk.pending())) == ([1], 1)


async def test_a_tool_that_no_longer_allows_grants_requests_approval_again(
    open_engine: Any, counted: Counted
) -> None:
    async with open_engine(scripted(TWICE, [counted.tool()])) as engine:
        talk = Talk(engine)
        await talk.say("pay")
        await remember(talk)
    async with open_engine(scripted(TWICE, [gated(counted.tool(), rememberable=False)])) as engine:
        talk.engine = engine
        assert (await talk.say("again")).finish_reason == "tool-calls"


async def grants(talk: Talk) -> list[str]:
    listed = await talk.engine.approvals.grants(talk.chat_id, user=talk.user)
    return [grant["tool"] for grant in listed["grants"]]


async def test_grants_are_listed_and_can_be_revoked(open_stage: Open, counted: Counted) -> None:
    talk = Talk(await open_stage(scripted(TWICE, [counted.tool()])))
    await talk.say("pay")
    [asked] = talk.asks()
    await remember(talk)
    listed = await talk.engine.approvals.grants(talk.chat_id, user=talk.user)
    [grant] = listed["grants"]
    assert (grant["tool"], grant["approvalId"]) == ("pay", asked)
    assert grant["grantedAt"].endswith("+00:00")
    assert (grant["agent"], grant["where"]) == (talk.engine.survey.agents[0], {})
    with pytest.raises(Unknown):
        await talk.engine.approvals.revoke(talk.chat_id, "pay", user=talk.user, via="test")
    await talk.engine.approvals.revoke(talk.chat_id, grant["id"], user=talk.user, via="test")
    assert await grants(talk) == []
    assert (await talk.say("again")).finish_reason == "tool-calls"
    with pytest.raises(Unknown):
        await talk.engine.approvals.revoke(talk.chat_id, grant["id"], user=talk.user, via="test")


async def test_a_user_cannot_list_or_revoke_grants_of_other_users(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(TWICE, [counted.tool()])))
    await talk.say("pay")
    await remember(talk)
    with pytest.raises(Unknown):
        await talk.engine.approvals.grants(talk.chat_id, user="bob")
    listed = await talk.engine.approvals.grants(talk.chat_id, user=talk.user)
    with pytest.raises(Unknown):
        await talk.engine.approvals.revoke(
            talk.chat_id, listed["grants"][0]["id"], user="bob", via="test"
        )
    assert await grants(talk) == ["pay"]


async def test_a_deleted_chat_has_no_grants(open_stage: Open, counted: Counted) -> None:
    talk = Talk(await open_stage(scripted(TWICE, [counted.tool()])))
    await talk.say("pay")
    await remember(talk)
    await talk.engine.delete_chat(talk.chat_id, user=talk.user)
    again = Talk(talk.engine, chat_id=talk.chat_id)
    assert (await again.say("pay")).finish_reason == "tool-calls"


async def test_a_call_that_an_old_grant_approved_does_not_run(
    open_engine: Any, counted: Counted
) -> None:
    agent = scripted([TWICE[0], says("done")], [counted.tool()])
    async with open_engine(agent) as engine:
        talk = Talk(engine)
        await talk.say("pay")
        [part] = talk.pending()
        # As schema 6 stored it: approved by a grant, without the definition of the tool.
        stored = update(APPROVALS).values(
            state="approved", answer=True, grant_id="ask-1", definition_hash=None
        )
        await engine.resources.database.write(lambda connection: connection.execute(stored))
        decide(part, approved=True)
        turn = await talk.post_last()
    assert counted.runs == []
    assert "the tool has changed" in str(turn.message["parts"])


async def test_granted_calls_do_not_count_as_requests(open_stage: Open, counted: Counted) -> None:
    engine = await open_stage(scripted(TWICE, [counted.tool()]), max_requests_per_exchange=1)
    talk = Talk(engine)
    await talk.say("pay")
    await remember(talk)
    assert counted.runs == [1, 2]


async def test_a_reader_may_join_while_a_granted_call_runs(open_stage: Open) -> None:
    held, asking = HeldTool(), RequestingTool()
    script = {
        "first": [calls(("hold", {"n": 1})), says("done")],
        "both": [calls(("ask", {"n": 1})), calls(("hold", {"n": 2})), says("done")],
    }
    tools: list[Any] = [held.tool(require_confirmation=True), asking.ask]
    talk = Talk(await open_stage(scripted(script, tools)))
    await talk.say("first")
    held.may_end.set()
    await remember(talk)
    held.began.clear()
    held.may_end.clear()
    await talk.say("both")
    for part in talk.pending():
        part["state"] = "approval-responded"
        part["approval"]["approved"] = True
    last = talk.messages[-1]
    reader = await talk.start({"message": last, "messageId": last["id"]})
    await held.began.wait()
    shown = part_of(await talk.history(), "hold")
    assert (shown["state"], shown["approval"]["approved"]) == ("approval-responded", True)
    joined: dict[Major, TurnReader | None] = {
        major: await talk.engine.resume(
            talk.chat_id, user=talk.user, client=RequestingClient(major)
        )
        for major in (6, 7)
    }
    held.may_end.set()
    live = (await talk.read(reader)).message
    for major, other in joined.items():
        assert other is not None
        chunks = await read(other)
        check(chunks)
        how: Any = {"major": major, "resumed": major == 6}
        assert comparable(reduce_chunks(chunks), **how) == comparable(live, **how)
    assert comparable(await talk.history()) == comparable(live)


@pytest.mark.parametrize("release", RELEASES)
async def test_a_cancelled_granted_call_has_an_unknown_outcome(
    open_stage: Open, loop_time: LoopTime, release: ReleasePolicy
) -> None:
    held = HeldTool()
    script = {
        "first": [calls(("hold", {"n": 1})), says("done")],
        "again": [calls(("hold", {"n": 2})), says("done")],
        "after": [says("So it was.")],
    }
    tool = held.tool(require_confirmation=True)
    talk = Talk(await open_stage(scripted(script, [tool]), tool_timeout=60.0), release)
    await talk.say("first")
    held.may_end.set()
    await remember(talk)
    held.may_end.clear()
    held.began.clear()
    running = asyncio.create_task(talk.say("again"))
    await within_limit(held.began)
    loop_time.advance(60.0)
    turn = await running
    assert turn.failed
    cut = part_of(turn.message, "hold")
    assert "outcome is unknown" in cut["errorText"]
    assert cut["approval"]["approved"] is True
    assert comparable(await talk.history()) == comparable(turn.message)
    assert (await talk.say("after")).finish_reason == "stop"
    assert held.ended == 1


async def test_a_node_of_a_workflow_requests_approval_each_time(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(flow("flow", counted.tool())))
    await talk.say('{"n": 1}')
    with pytest.raises(Malformed, match="cannot be remembered"):
        await remember(talk)


async def test_history_marks_granted_calls(open_stage: Open, counted: Counted) -> None:
    talk = Talk(await open_stage(scripted(TWICE, [counted.tool()])))
    await talk.say("pay")
    await remember(talk)
    approvals = (await talk.history())["metadata"]["approvals"].values()
    assert [(a["state"], a["decidedBy"], a.get("automatic")) for a in approvals] == [
        ("executed", "ann", None),
        ("executed", "ann", True),
    ]


async def test_many_parallel_calls_use_one_grant(open_stage: Open, counted: Counted) -> None:
    many = calls(*(("pay", {"n": n}) for n in range(2, 12)))
    talk = Talk(await open_stage(scripted([TWICE[0], many, says("done")], [counted.tool()])))
    await talk.say("pay")
    await remember(talk)
    assert kinds(talk.turns[-1].chunks)[-1] == "finish"
    assert sorted(counted.runs) == list(range(1, 12))
