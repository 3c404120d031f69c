"""Approvals seen and answered outside the chat page."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from google.adk.agents.parallel_agent import ParallelAgent

from sluicegate.engine.turn.session_log import SessionLog
from sluicegate.errors import (
    AlreadyDecided,
    Malformed,
    Superseded,
    TooManyRequests,
    Unknown,
)
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import gated
from sluicegate.wire.reducer import reduce_chunks
from tests.engine.loop_time import within_limit
from tests.engine.stage import (
    Counted,
    HeldTool,
    Steps,
    calls,
    kinds,
    part_of,
    read,
    says,
    scripted,
    stays_pending,
)
from tests.engine.talk import Talk
from tests.engine.topologies import flow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sluicegate.core.release.policies import ReleasePolicy
    from sluicegate.engine.turn.reader import TurnReader
    from tests.engine.loop_time import LoopTime
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "preview", "progressive"]
PAY = [calls(("pay", {"n": 1})), says("done")]
YES = {"approved": True}

PATIENCE = 20.0
"""Seconds that a decision waits for a turn, which pass only when a test advances them."""


async def listed(talk: Talk, user: str | None = None) -> list[dict[str, Any]]:
    page = await talk.engine.approvals.waiting(user=user or talk.user, limit=100, after=None)
    approvals: list[dict[str, Any]] = page["approvals"]
    return approvals


async def decide(talk: Talk, said: dict[str, Any], user: str | None = None) -> dict[str, Any]:
    """Decide the only approval of the last message."""
    [asked] = [p["approval"]["id"] for p in talk.messages[-1]["parts"] if "approval" in p]
    return await talk.engine.approvals.decide(asked, said, user=user or talk.user, via="test")


async def turns_ended(talk: Talk) -> None:
    """Wait until nothing runs."""
    for turn in talk.engine.resources.turns.running_turns():
        await turn.done.wait()


async def settled(talk: Talk) -> dict[str, Any]:
    """The stored last message once nothing runs."""
    await turns_ended(talk)
    return dict(await talk.history())


async def test_open_approvals_are_listed_with_their_context(
    open_stage: Open, counted: Counted
) -> None:
    engine = await open_stage(scripted(PAY, [gated(counted.tool(), rememberable=False)]))
    talk = Talk(engine)
    await talk.say("pay")
    [card] = await listed(talk)
    assert card["approvalId"] == talk.asks()[0]
    assert (card["chatId"], card["tool"], card["arguments"]) == (talk.chat_id, "pay", {"n": 1})
    assert (card["state"], card["editable"], card["rememberable"]) == ("requested", True, False)
    assert card["schema"]["properties"]["n"]["type"] == "integer"
    assert card["expiresAt"] > card["requestedAt"]
    assert await listed(talk, user="bob") == []
    assert await engine.approvals.get(card["approvalId"], user="ann") == card


@pytest.mark.parametrize("release", RELEASES)
async def test_a_decision_outside_the_chat_runs_the_turn_to_its_end(
    open_stage: Open, counted: Counted, release: ReleasePolicy
) -> None:
    script = [calls(("pay", {"n": 1}), text="I pay. "), says("done")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])), release)
    await talk.say("pay")
    shown = await decide(talk, {"approved": True, "reason": "go on"})
    assert (shown["approved"], shown["reason"], shown["decidedBy"]) == (True, "go on", "ann")
    stored = await settled(talk)
    assert part_of(stored, "pay")["output"] == {"paid": 1}  # type: ignore[arg-type]
    assert stored["parts"][-1]["text"] == "done"
    assert (counted.runs, await listed(talk)) == ([1], [])
    # A page that has missed it all posts its own answer, and gets the rest.
    turn = await talk.answer(approved=True, reason="go on")
    assert comparable(turn.message) == comparable(stored)  # type: ignore[arg-type]
    assert counted.runs == [1]


async def test_a_decision_outside_the_chat_loads_the_chat_and_its_approvals_once(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay")
    with (
        patch.object(Ledger, "rows", autospec=True, side_effect=Ledger.rows) as rows,
        patch.object(SessionLog, "load", autospec=True, side_effect=SessionLog.load) as load,
    ):
        await decide(talk, YES)
        await turns_ended(talk)
    assert (counted.runs, rows.await_count, load.await_count) == ([1], 1, 1)


async def test_an_answer_names_everybody_who_has_approved_its_call(
    open_stage: Open, counted: Counted
) -> None:
    tool = gated(counted.tool(), approvers=["ann", "bob"], quorum=2)
    talk = Talk(await open_stage(scripted(PAY, [tool])))
    await talk.say("pay")
    [asked] = talk.asks()
    await decide(talk, YES, user="bob")
    await talk.approve()
    for message in (talk.messages[-1], await talk.history()):
        approval = message["metadata"]["approvals"][asked]
        assert [each["by"] for each in approval["decisions"]] == ["bob", "ann"]
        assert (approval["state"], approval["missing"]) == ("executed", 0)


async def test_a_denial_outside_the_chat_reaches_the_model(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay")
    assert (await decide(talk, {"approved": False, "reason": "too dear"}))["state"] == "denied"
    part = part_of(await settled(talk), "pay")  # type: ignore[arg-type]
    assert (part["state"], part["approval"]["reason"]) == ("output-denied", "too dear")
    assert counted.runs == []


async def test_a_decision_outside_the_chat_may_edit_arguments_and_add_a_grant(
    open_stage: Open, counted: Counted
) -> None:
    script = [*PAY[:1], calls(("pay", {"n": 5})), says("done")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])))
    await talk.say("pay")
    shown = await decide(talk, {"approved": True, "edits": {"n": 2}, "remember": "chat"})
    assert (shown["edits"], shown["remember"]) == ({"n": 2}, {"ttl": 86400.0})
    await settled(talk)
    assert counted.runs == [2, 5]


async def test_one_of_two_decisions_waits_for_the_other(open_stage: Open, counted: Counted) -> None:
    script = [calls(("pay", {"n": 1}), ("pay", {"n": 2})), says("done")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])))
    await talk.say("pay")
    first, second = talk.asks()
    for number, asked in enumerate((first, second)):
        assert counted.runs == []
        assert len(await listed(talk)) == 2 - number
        await talk.engine.approvals.decide(asked, YES, user="ann", via="test")
    await settled(talk)
    assert sorted(counted.runs) == [1, 2]


async def test_a_repeated_decision_is_accepted_and_a_different_one_is_refused(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay")
    for _ in range(3):
        assert (await decide(talk, YES))["approved"] is True
        await settled(talk)
    different: list[dict[str, Any]] = [
        {"approved": False},
        {**YES, "edits": {"n": 2}},
        {**YES, "remember": "chat"},
        {**YES, "remember": {"where": ["n"]}},
    ]
    for body in different:
        with pytest.raises(AlreadyDecided):
            await decide(talk, body)
    assert (await decide(talk, {**YES, "edits": {"n": 1}}))["approved"] is True
    assert counted.runs == [1]


async def test_a_repeated_decision_outside_the_chat_names_the_same_edits_and_grant(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay")
    whole: dict[str, Any] = {**YES, "edits": {"n": 2}, "remember": {"where": ["n"], "ttl": 60}}
    for _ in range(2):
        shown = await decide(talk, whole)
        assert (shown["edits"], shown["remember"]) == ({"n": 2}, {"where": ["n"], "ttl": 60.0})
        await settled(talk)
    for missing in ("edits", "remember"):
        with pytest.raises(AlreadyDecided):
            await decide(talk, {name: whole[name] for name in whole if name != missing})
    assert counted.runs == [2]


async def test_a_user_cannot_decide_approvals_of_another_user(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay")
    engine = talk.engine
    for user, asked in (("bob", talk.asks()[0]), ("ann", "adk-unknown")):
        with pytest.raises(Unknown, match="no such approval"):
            await engine.approvals.decide(asked, YES, user=user, via="test")
        with pytest.raises(Unknown, match="no such approval"):
            await engine.approvals.get(asked, user=user)
    assert len(await listed(talk)) == 1


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"approved": "true"},
        {"approved": 1},
        {"approved": None},
        {"approved": True, "reason": 5},
        {"approved": True, "reason": "x" * 2_001},
        {"approved": True, "edits": [1]},
        {"approved": True, "edits": {"n": "two"}},
        {"approved": True, "remember": "always"},
        {"approved": True, "remember": {"where": ["m"]}},
        {"approved": True, "remember": {"where": ["n"]}, "edits": {}},
        {"approved": True, "remember": {"ttl": 86401}},
    ],
)
async def test_an_ambiguous_decision_changes_nothing(
    open_stage: Open, counted: Counted, said: dict[str, Any]
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay")
    with pytest.raises(Malformed):
        await decide(talk, said)
    assert (len(await listed(talk)), counted.runs) == (1, [])


async def test_an_approval_is_closed_when_the_chat_has_continued_without_it(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay", message_id="u1")
    [superseded] = talk.asks()
    await talk.say("something else", message_id="u2")
    [rewound] = [card["approvalId"] for card in await listed(talk)]
    await read(await talk.start({"message": talk.messages[-2], "messageId": "u2"}))
    [deleted] = [card["approvalId"] for card in await listed(talk)]
    await talk.engine.delete_chat(talk.chat_id, user="ann")
    assert len({superseded, rewound, deleted}) == 3
    for asked in (superseded, rewound, deleted):
        with pytest.raises(Superseded):
            await talk.engine.approvals.decide(asked, YES, user="ann", via="test")
    assert (await listed(talk), counted.runs) == ([], [])


async def test_a_late_decision_is_reported_as_expired(open_stage: Open, counted: Counted) -> None:
    ahead = 0.0
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()]), clock=lambda: ahead))
    await talk.say("pay")
    ahead = 86_401.0
    assert await listed(talk) == []
    assert (await decide(talk, YES))["state"] == "expired"
    assert counted.runs == []


async def test_an_approval_of_a_workflow_is_decided_outside_the_chat(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(flow("flow", counted.tool())))
    await talk.say('{"n": 1}')
    [card] = await listed(talk)
    assert (card["tool"], card["arguments"], card["rememberable"]) == ("pay", {"n": 1}, False)
    await decide(talk, YES)
    await settled(talk)
    assert counted.runs == [1]


async def test_a_subscribed_page_receives_the_continued_turn(open_stage: Open) -> None:
    held = HeldTool()
    script = [calls(("hold", {"n": 1})), says("done")]
    talk = Talk(await open_stage(scripted(script, [held.tool(require_confirmation=True)])))
    await talk.say("hold")
    await decide(talk, YES)
    await held.began.wait()
    reader = await talk.engine.resume(talk.chat_id, user="ann", client=talk.client)
    held.may_end.set()
    assert reader is not None
    chunks = await read(reader)
    assert kinds(chunks)[-1] == "finish"
    assert comparable(reduce_chunks(chunks)) == comparable(await talk.history())


async def test_a_turn_continued_without_readers_is_not_stopped(open_stage: Open) -> None:
    steps = Steps()
    steps.go(1)
    script = [calls(("pay", {"n": 1})), says("one two three", delta_chars=4)]
    agent = scripted(script, [Counted().tool()], sleep=steps)
    talk = Talk(await open_stage(agent, linger=0.01, abort_grace=0.01))
    await talk.say("pay")
    await decide(talk, YES)
    await steps.reached(2)
    settling = asyncio.create_task(settled(talk))
    assert await stays_pending(settling)
    steps.go()
    assert (await settling)["parts"][-1]["text"] == "one two three"


@dataclass(frozen=True, slots=True)
class WaitingDecision:
    """A decision that is recorded while another call of its turn runs."""

    talk: Talk
    approval_id: str
    loop_time: LoopTime
    held: HeldTool
    counted: Counted

    async def post(self, said: dict[str, Any]) -> dict[str, Any]:
        """Make a decision, which waits for the turn as long as it may."""
        started = asyncio.Event()

        async def start(*args: Any, **options: Any) -> TurnReader:
            started.set()
            return await self.talk.engine.start_from_log(*args, **options)

        approvals = replace(self.talk.engine.approvals, start_from_log=start)
        deciding = asyncio.create_task(
            approvals.decide(self.approval_id, said, user="ann", via="test")
        )
        await within_limit(started)
        while "approved" not in await self.shown():
            pass
        self.loop_time.advance(PATIENCE)
        return await deciding

    async def shown(self) -> dict[str, Any]:
        return await self.talk.engine.approvals.get(self.approval_id, user="ann")


@pytest.fixture
async def waiting(open_stage: Open, loop_time: LoopTime) -> AsyncIterator[WaitingDecision]:
    held, counted = HeldTool(), Counted()
    slow = scripted([calls(("hold", {"n": 1})), says("held")], [held.tool()])
    asking = scripted(PAY, [counted.tool()])
    slow.name, asking.name = "slow", "asking"
    both = ParallelAgent(name="both", sub_agents=[slow, asking])
    talk = Talk(await open_stage(both, timings={"decision": PATIENCE}))
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "both"}]}
    reader = await talk.start({"message": question})
    await held.began.wait()
    while not (cards := await listed(talk)):
        pass
    yield WaitingDecision(talk, cards[0]["approvalId"], loop_time, held, counted)
    held.may_end.set()
    await read(reader)
    while not counted.runs:
        await talk.history()
    await settled(talk)
    assert counted.runs == [1]


async def test_a_decision_does_not_wait_for_the_running_turn(waiting: WaitingDecision) -> None:
    shown = await waiting.post(YES)
    assert (shown["approved"], waiting.held.ended) == (True, 0)


async def test_a_repeated_decision_does_not_wait_for_the_running_turn(
    waiting: WaitingDecision,
) -> None:
    first = await waiting.post(YES)
    assert await waiting.post(YES) == first


@pytest.mark.parametrize(
    "other",
    [{"approved": False}, {**YES, "edits": {"n": 2}}, {**YES, "remember": "chat"}],
    ids=["a denial", "edits", "a grant"],
)
async def test_a_contradicting_decision_is_refused_while_the_turn_runs(
    waiting: WaitingDecision, other: dict[str, Any]
) -> None:
    first = await waiting.post(YES)
    with pytest.raises(AlreadyDecided):
        await waiting.post(other)
    assert await waiting.shown() == first


async def test_a_decision_that_cannot_run_now_is_stored_and_runs_with_the_next_one(
    open_stage: Open, counted: Counted
) -> None:
    held = HeldTool()
    script = {"hold": [calls(("hold", {"n": 1})), says("held")], "pay": PAY}
    tools: list[Any] = [held.tool(), counted.tool()]
    engine = await open_stage(scripted(script, tools), max_turns_per_user=1)
    busy, talk = Talk(engine), Talk(engine)
    await talk.say("pay")
    question = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hold"}]}
    reader = await busy.start({"message": question})
    await held.began.wait()
    with pytest.raises(TooManyRequests):
        await decide(talk, YES)
    assert (await listed(talk), counted.runs) == ([], [])
    held.may_end.set()
    await read(reader)
    await settled(talk)
    await decide(talk, YES)
    await settled(talk)
    assert counted.runs == [1]
