"""Gated calls in a live run: requests, decisions and outcomes, as over any transport."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from sluicegate.errors import AlreadyDecided, NotEntitled, Unknown
from sluicegate.replay import ScriptedModel
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import Role, client_tool, gated
from sluicegate.wire.chunks import ToolApprovalRequestChunk
from sluicegate.wire.live_frames import ApprovalFrame, TurnCompleteFrame, TurnFrame
from tests.engine.loop_time import EVENT_TIMEOUT, within_limit
from tests.engine.stage import Counted, calls, part_of, says, scripted, words
from tests.engine.talk import Talk, decide
from tests.live.caller import Caller, agree, calling, spoken_response

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from tests.engine.loop_time import LoopTime
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "progressive"]
MODELS = ["scripted", "gemini-3.1-flash-live-preview"]


@dataclass
class Payments:
    """The tool ``pay``, gated in one of three ways."""

    runs: list[int] = field(default_factory=list)

    def static(self) -> FunctionTool:
        return FunctionTool(self._pay(), require_confirmation=True)

    def predicate(self) -> FunctionTool:
        return FunctionTool(self._pay(), require_confirmation=lambda n: n > 2)

    def dynamic(self) -> FunctionTool:
        async def pay(n: int, tool_context: ToolContext) -> dict[str, Any]:
            """Pay."""
            if tool_context.tool_confirmation is None:
                tool_context.request_confirmation(hint=f"Pay {n}?", payload={"n": n})
                return {"status": "asked"}
            assert tool_context.tool_confirmation.payload == {"n": n}
            self.runs.append(n)
            return {"paid": n}

        return FunctionTool(pay)

    def _pay(self) -> Callable[..., Any]:
        async def pay(n: int) -> dict[str, int]:
            """Pay."""
            self.runs.append(n)
            return {"paid": n}

        return pay


KINDS = ["static", "predicate", "dynamic"]
SCRIPT = [calls(("pay", {"n": 3}), text="Let me pay."), says("Done.")]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("approved", [True, False], ids=["yes", "no"])
async def test_a_gated_call_waits_for_its_decision(
    open_stage: Open, kind: str, release: ReleasePolicy, model: str, *, approved: bool
) -> None:
    pay = Payments()
    engine = await open_stage(scripted(SCRIPT, [getattr(pay, kind)()], model=model))
    async with calling(Caller(engine, release)) as caller:
        turn = await caller.say("pay")
        assert turn.finish_reason == "tool-calls"
        assert [part["input"] for part in caller.pending()] == [{"n": 3}]
        assert pay.runs == []
        await agree(caller)
        turn = await caller.answer(approved=approved, reason=None if approved else "Too much.")
        assert turn.finish_reason == "stop"
        assert pay.runs == ([3] if approved else [])
        part = part_of(turn.message, "pay")
        assert part["state"] == ("output-available" if approved else "output-denied")
        assert words(turn.message) == "Let me pay.Done."
        [frame] = [f for f in caller.frames if isinstance(f, ApprovalFrame)]
        assert frame.state == ("approved" if approved else "denied")
        assert frame.reason == (None if approved else "Too much.")
        await agree(caller)
    await agree(caller)


@pytest.mark.parametrize("release", RELEASES)
async def test_a_spoken_message_leads_to_an_approval_request(
    open_stage: Open, release: ReleasePolicy
) -> None:
    pay = Payments()
    script = [
        {**SCRIPT[0], "parts": [*spoken_response("I will.")["parts"], *SCRIPT[0]["parts"][1:]]}
    ]
    script.append(spoken_response("It is paid."))
    engine = await open_stage(scripted(script, [pay.static()]))
    async with calling(Caller(engine, release)) as caller:
        caller.speak()
        asked = await caller.spoken_turn()
        assert asked.finish_reason == "tool-calls"
        said = [] if release == "deferred" else ["I will."]
        assert [p["text"] for p in asked.message["parts"] if p["type"] == "text"] == said
        turn = await caller.approve()
        assert pay.runs == [3]
        assert words(turn.message) == "I will.It is paid."
        assert len(caller.audio) == 2 * 4800
        await agree(caller)
        frame = await caller.frame(TurnFrame)
        assert caller.said(frame.message_id) == "I will.\nIt is paid."
        [question, _] = (await caller.chats())["messages"]
        assert question["id"] == frame.user_message_id


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("release", RELEASES)
async def test_parallel_calls_request_approval_at_once_and_continue_together(
    open_stage: Open, release: ReleasePolicy, model: str
) -> None:
    pay, look = Payments(), Counted()
    script = [
        calls(("pay", {"n": 1}), ("look", {"n": 7}), ("pay", {"n": 2})),
        says("Both."),
    ]

    async def look_tool(n: int) -> dict[str, int]:
        """Look."""
        look.runs.append(n)
        return {"seen": n}

    look_tool.__name__ = "look"
    engine = await open_stage(scripted(script, [pay.static(), look_tool], model=model))
    async with calling(Caller(engine, release)) as caller:
        await caller.say("pay")
        assert [part["input"] for part in caller.pending()] == [{"n": 1}, {"n": 2}]
        assert look.runs == [7]
        decide(caller.pending()[0], approved=True)
        turn = await caller.post_last()
        assert turn.failed
        assert "still waiting for: pay" in str(turn.chunks[-1])
        assert pay.runs == []
        decide(caller.pending()[0], approved=False)
        turn = await caller.post_last()
        assert pay.runs == [1]
        assert words(turn.message) == "Both."
        await agree(caller)
    await agree(caller)


async def test_gated_calls_in_sequence_take_one_decision_each(open_stage: Open) -> None:
    pay = Payments()
    script = [calls(("pay", {"n": n})) for n in (1, 2, 3)] + [says("All paid.")]
    engine = await open_stage(scripted(script, [pay.static()]))
    async with calling(Caller(engine)) as caller:
        turn = await caller.say("pay")
        for n in (1, 2, 3):
            assert turn.finish_reason == "tool-calls"
            assert len(pay.runs) == n - 1
            turn = await caller.approve()
        assert pay.runs == [1, 2, 3]
        assert words(turn.message) == "All paid."
        assert turn.finish_reason == "stop"
        await agree(caller)


async def test_a_denied_call_is_refused_without_a_request_in_the_same_exchange_only(
    open_stage: Open,
) -> None:
    pay = Payments()
    script = [calls(("pay", {"n": 3})), calls(("pay", {"n": 3})), says("As you like.")]
    engine = await open_stage(scripted(script, [pay.static()]))
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        turn = await caller.answer(approved=False)
        assert turn.finish_reason == "stop"
        assert pay.runs == []
        await agree(caller)
        await caller.say("pay after all")
        assert len(caller.pending()) == 1
        await caller.approve()
        assert pay.runs == [3]


async def test_requests_above_the_limits_are_refused(open_stage: Open) -> None:
    pay = Payments()
    script = [calls(*(("pay", {"n": n}) for n in (1, 2, 3))), says("Done.")]
    options = {"max_requests_per_turn": 2, "max_requests_per_exchange": 2}
    engine = await open_stage(scripted(script, [pay.static()]), **options)
    async with calling(Caller(engine)) as caller:
        for _ in range(2):
            # The bounds count anew for each exchange, though the run is one.
            await caller.say("pay")
            assert len(caller.pending()) == 2
            await caller.approve()
        assert pay.runs == [1, 2, 1, 2]
        await agree(caller)


async def test_an_approval_without_a_decision_expires_and_the_model_continues(
    open_stage: Open,
) -> None:
    pay, ahead = Payments(), [0.0]
    script = [calls(("pay", {"n": 3})), spoken_response("Then not.")]
    engine = await open_stage(scripted(script, [pay.static()]), clock=lambda: ahead[0])
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        [part] = caller.pending()
        ahead[0] = 119.0
        assert len(caller.pending()) == 1
        ahead[0] = 121.0
        frame = await caller.frame(ApprovalFrame)
        assert (frame.approval_id, frame.state) == (part["approval"]["id"], "expired")
        turn = await caller.spoken_turn()
        assert words(turn.message) == "Then not."
        part = part_of(turn.message, "pay")
        assert part["state"] == "output-denied"
        assert "expired" in part["approval"]["reason"]
        assert pay.runs == []
        await agree(caller)


async def test_a_decision_over_another_transport_continues_at_once(open_stage: Open) -> None:
    pay = Payments()
    engine = await open_stage(
        scripted([calls(("pay", {"n": 3})), spoken_response("Paid.")], [pay.static()])
    )
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        page = Talk(engine, chat_id=caller.chat_id, messages=(await caller.chats())["messages"])
        turn = await page.approve()
        assert words(turn.message) == "Paid."
        assert pay.runs == [3]
        assert (await caller.frame(ApprovalFrame)).state == "approved"
        own = await caller.spoken_turn()
        assert comparable(own.message) == comparable(turn.message)
        assert caller.audio
        again = await page.post_last()
        assert again.failed
        assert pay.runs == [3]
        decide_again = (await caller.chats())["messages"][-1]
        part = part_of(decide_again, "pay")
        part.update(state="approval-responded", approval={**part["approval"], "approved": False})
        with pytest.raises(AlreadyDecided):
            await page.post({"message": decide_again, "messageId": decide_again["id"]})
        await agree(caller)


async def test_a_decision_of_another_user_is_unknown(open_stage: Open) -> None:
    pay = Payments()
    engine = await open_stage(scripted(SCRIPT, [pay.static()]))
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        thief = Talk(engine, user="eve", chat_id=caller.chat_id, messages=caller.messages)
        with pytest.raises(Unknown):
            await thief.approve()
        assert pay.runs == []


@pytest.mark.parametrize("release", RELEASES)
async def test_a_client_side_tool_waits_for_its_output(
    open_stage: Open, release: ReleasePolicy
) -> None:
    schema = {"type": "object", "properties": {}}
    script = [calls(("locate", {})), says("There you are.")]
    engine = await open_stage(scripted(script, [client_tool("locate", "Where?", schema)]))
    async with calling(Caller(engine, release)) as caller:
        turn = await caller.say("where am I?")
        assert turn.finish_reason == "tool-calls"
        part = part_of(turn.message, "locate")
        part.update(state="output-available", output={"city": "Graz"})
        turn = await caller.post_last()
        assert words(turn.message) == "There you are."
        await agree(caller)
    await agree(caller)


async def test_a_gated_client_side_tool_runs_after_its_approval(open_stage: Open) -> None:
    schema = {"type": "object", "properties": {}}
    tool = client_tool("locate", "Where?", schema, require_confirmation=True)
    engine = await open_stage(scripted([calls(("locate", {})), says("There you are.")], [tool]))
    async with calling(Caller(engine)) as caller:
        await caller.say("where am I?")
        turn = await caller.approve()
        assert turn.finish_reason == "tool-calls"
        part = part_of(turn.message, "locate")
        assert part["state"] == "input-available"
        part.update(state="output-available", output={"city": "Graz"})
        turn = await caller.post_last()
        assert words(turn.message) == "There you are."
        assert turn.finish_reason == "stop"
        await agree(caller)


async def test_a_grant_holds_for_the_rest_of_the_chat(open_stage: Open) -> None:
    pay = Payments()
    engine = await open_stage(scripted(SCRIPT, [pay.static()]))
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        [part] = caller.pending()
        decide(part, approved=True)
        last = caller.messages[-1]
        body = {"message": last, "messageId": last["id"]}
        await caller.post({**body, "remember": {part["approval"]["id"]: "chat"}})
        turn = await caller.say("pay again")
        assert turn.finish_reason == "stop"
        assert pay.runs == [3, 3]
        await agree(caller)
    await agree(caller)


async def test_a_claimed_call_completes_after_a_disconnect(open_stage: Open) -> None:
    began, may_end, ended = asyncio.Event(), asyncio.Event(), []

    async def pay(n: int) -> dict[str, int]:
        """Pay, slowly."""
        began.set()
        await may_end.wait()
        ended.append(n)
        return {"paid": n}

    tool = FunctionTool(pay, require_confirmation=True)
    engine = await open_stage(scripted(SCRIPT, [tool]))
    caller = Caller(engine)
    async with calling(caller):
        await caller.say("pay")
        answering = asyncio.create_task(caller.approve())
        await began.wait()
        asyncio.get_running_loop().call_later(0.05, may_end.set)
    assert ended == [3]
    await answering
    stored = await caller.history()
    assert part_of(stored, "pay")["state"] == "output-available"
    assert comparable(stored) == comparable(caller.messages[-1])


async def test_a_tool_that_takes_too_long_ends_the_turn_and_its_outcome_is_unknown(
    open_stage: Open, loop_time: LoopTime
) -> None:
    began = asyncio.Event()

    async def pay(n: int) -> None:
        """Pay, never."""
        began.set()
        await asyncio.Event().wait()

    tool = FunctionTool(pay, require_confirmation=True)
    engine = await open_stage(scripted(SCRIPT, [tool]), tool_timeout=20.0)
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        answering = asyncio.create_task(caller.approve())
        await within_limit(began)
        loop_time.advance(20.0)
        turn = await asyncio.wait_for(answering, EVENT_TIMEOUT)
        assert turn.failed
        stored = await caller.history()
        assert "unknown" in part_of(stored, "pay")["errorText"]
        assert comparable(stored) == comparable(turn.message)


async def test_a_model_that_does_not_answer_a_result_ends_the_turn(open_stage: Open) -> None:
    pay = Payments()
    engine = await open_stage(scripted([calls(("pay", {"n": 1})), {"parts": []}], [pay.static()]))
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        turn = await caller.approve()
        assert turn.finish_reason == "stop"
        assert pay.runs == [1]
        await caller.frame(TurnCompleteFrame, 2)
        await agree(caller)


async def test_a_call_runs_with_the_approved_arguments(open_stage: Open) -> None:
    pay = Payments()
    engine = await open_stage(scripted(SCRIPT, [pay.static()]))
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        [part] = caller.pending()
        decide(part, approved=True)
        last = caller.messages[-1]
        edits = {part["approval"]["id"]: {"n": 2}}
        turn = await caller.post({"message": last, "messageId": last["id"], "edits": edits})
        assert pay.runs == [2]
        assert part_of(turn.message, "pay")["state"] == "output-available"
        await agree(caller)


async def test_a_request_of_a_tool_has_its_hint_and_payload(open_stage: Open) -> None:
    pay = Payments()
    engine = await open_stage(scripted(SCRIPT, [pay.dynamic()]))
    async with calling(Caller(engine)) as caller:
        turn = await caller.say("pay")
        [request] = [c for c in turn.chunks if isinstance(c, ToolApprovalRequestChunk)]
        assert request.reason == "Pay 3?"
        assert request.approval_descriptor is not None
        deadline = datetime.fromisoformat(str(request.approval_descriptor["expiresAt"]))
        assert 100 < deadline.timestamp() - time.time() <= 120


@pytest.mark.parametrize("approved", [True, False])
async def test_the_error_of_a_tool_that_requested_approval_is_redacted(
    open_stage: Open, *, approved: bool
) -> None:
    async def pay(n: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pay."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="?")
            return {}
        raise LookupError("words-of-an-exception")

    engine = await open_stage(scripted(SCRIPT, [pay]))
    async with calling(Caller(engine)) as caller:
        await caller.say("pay")
        turn = await caller.answer(approved=approved)
        state = part_of(turn.message, "pay")["state"]
        assert state == ("output-error" if approved else "output-denied")
        assert "words-of-an-exception" not in str(await caller.chats())
        assert words(turn.message) == "Let me pay.Done."
        await agree(caller)


async def test_a_sub_agent_requests_approval_and_continues(open_stage: Open) -> None:
    pay = Payments()
    script = {
        "scenarios": [
            {
                "match": ".",
                "agent": "front",
                "responses": [calls(("transfer_to_agent", {"agent_name": "back"}))],
            },
            {"match": ".", "agent": "back", "responses": SCRIPT},
        ]
    }
    model = ScriptedModel.from_data(script, root="front")
    back = LlmAgent(name="back", model=model, tools=[pay.static()])
    engine = await open_stage(LlmAgent(name="front", model=model, sub_agents=[back]))
    async with calling(Caller(engine)) as caller:
        turn = await caller.say("pay")
        assert turn.finish_reason == "tool-calls"
        turn = await caller.approve()
        assert pay.runs == [3]
        assert words(turn.message) == "Let me pay.Done."
        await agree(caller)


async def test_other_people_decide_a_call_in_a_live_chat_and_a_voice_does_not(
    open_stage: Open,
) -> None:
    pay = Payments()
    tool = gated(pay.static(), approvers=[Role("finance"), "ada"], quorum=2)
    engine = await open_stage(scripted(SCRIPT, [tool]))
    engine.ask_roles(lambda user: ["finance"] if user == "bob" else [])
    async with calling(Caller(engine, user="ada")) as caller:
        await caller.say("pay")
        [part] = caller.pending()
        approval = part["approval"]["id"]
        with pytest.raises(NotEntitled):
            await engine.approvals.decide(
                approval, {"approved": True}, user="ada", via="voice", is_identified=False
            )
        turn = await caller.answer(approved=True)
        assert turn.failed
        assert pay.runs == []
        await engine.approvals.decide(approval, {"approved": True}, user="bob", via="http")
        frame = await caller.frame(ApprovalFrame)
        assert frame.state == "approved"
        await caller.frame(TurnCompleteFrame, 2)
    assert pay.runs == [3]
