"""Approvals known only at run time: predicates and tools that request their own approval."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow

from sluicegate.errors import NotEntitled, ToolError
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import gated
from tests.engine.stage import Counted, Prompts, calls, part_of, says, scripted
from tests.engine.talk import Talk

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "progressive"]


@dataclass
class RequestingTool:
    """A tool that requests approval while it runs, hidden from detection by its name."""

    runs: list[Any] = field(default_factory=list)

    async def surprise(self, n: int, tool_context: ToolContext) -> dict[str, Any] | None:
        """Ask."""
        if tool_context.tool_confirmation is None:
            ask = getattr(tool_context, "_".join(("request", "confirmation")))
            ask(hint=f"Shall {n} be?", payload={"n": n})
            return None
        self.runs.append(tool_context.tool_confirmation.payload)
        return {"n": n}


@pytest.mark.parametrize("release", RELEASES)
async def test_a_predicate_is_called_for_each_call(
    open_stage: Open, release: ReleasePolicy
) -> None:
    runs: list[int] = []

    async def pay(n: int) -> dict[str, int]:
        """Pay."""
        runs.append(n)
        return {"paid": n}

    gated = FunctionTool(pay, require_confirmation=lambda n: n > 100)
    script = [calls(("pay", {"n": 5}), ("pay", {"n": 500})), says("done")]
    talk = Talk(await open_stage(scripted(script, [gated])), release)
    await talk.say("pay")
    assert [part["input"] for part in talk.pending()] == [{"n": 500}]
    assert runs == [5]
    turn = await talk.approve()
    assert runs == [5, 500]
    by_amount = {p["input"]["n"]: p for p in turn.message["parts"] if p["type"] == "tool-pay"}
    assert by_amount[5]["providerExecuted"] is True
    assert "providerExecuted" not in by_amount[500]
    assert comparable(await talk.history()) == comparable(turn.message)


@pytest.mark.parametrize("release", RELEASES)
async def test_a_predicate_that_raises_fails_its_call_and_the_turn_continues(
    open_stage: Open, release: ReleasePolicy
) -> None:
    def decide_wrongly(n: int) -> bool:
        raise LookupError("words-of-an-exception")

    counted = Counted()

    async def pay(n: int) -> dict[str, int]:
        """Pay."""
        counted.runs.append(n)
        return {"paid": n}

    gated = FunctionTool(pay, require_confirmation=decide_wrongly)
    talk = Talk(
        await open_stage(scripted([calls(("pay", {"n": 5})), says("done")], [gated])), release
    )
    turn = await talk.say("pay")
    assert turn.finish_reason == "stop"
    part = part_of(turn.message, "pay")
    assert part["state"] == "output-error"
    assert "words-of-an-exception" not in part["errorText"]
    assert counted.runs == []


@pytest.mark.parametrize("style", ["call", "confirmation"])
async def test_hint_and_payload_of_a_tool_reach_the_approval_request(
    open_stage: Open, style: str
) -> None:
    asking = RequestingTool()
    agent = scripted([calls(("surprise", {"n": 3})), says("done")], [asking.surprise])
    options = {"dynamic_gates": ("surprise",), "approval_style": style}
    talk = Talk(await open_stage(agent, **options))
    await talk.say("ask")
    [part] = talk.pending()
    assert part["approval"]["requestReason"] == "Shall 3 be?"
    assert part["approval"]["descriptor"]["payload"] == {"n": 3}
    if style == "confirmation":
        assert part["input"]["toolConfirmation"] == {"hint": "Shall 3 be?", "payload": {"n": 3}}
    turn = await talk.approve()
    assert turn.finish_reason == "stop"
    assert asking.runs == [{"n": 3}]
    assert comparable(await talk.history()) == comparable(turn.message)


@pytest.mark.parametrize("style", ["call", "confirmation"])
async def test_a_node_of_a_workflow_reads_the_approved_payload(
    open_stage: Open, style: str
) -> None:
    read: list[Any] = []

    def begin(node_input: str) -> dict[str, Any]:
        return {}

    def ask(tool_context: ToolContext) -> dict[str, Any]:
        """Ask."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="How many?", payload={"n": 0})
            return {}
        read.append(tool_context.tool_confirmation.payload)
        return {"asked": True}

    flow = Workflow(name="flow", edges=[(START, begin, FunctionTool(ask))])
    talk = Talk(await open_stage(flow, approval_style=style))
    await talk.say("ask")
    [part] = talk.pending()
    assert part["approval"]["descriptor"]["payload"] == {"n": 0}
    turn = await talk.approve(payload={part["approval"]["id"]: {"n": 4}})
    assert (turn.finish_reason, read) == ("stop", [{"n": 4}])


async def test_an_undetected_approval_requirement_still_stops_its_call(
    open_stage: Open, caplog: pytest.LogCaptureFixture
) -> None:
    asking = RequestingTool()
    script = [calls(("surprise", {"n": 3}), text="Look: "), says("done")]
    talk = Talk(await open_stage(scripted(script, [asking.surprise])))
    assert not talk.engine.survey.may_gate
    with caplog.at_level(logging.WARNING, logger="sluicegate"):
        first = await talk.say("ask")
    assert "text-delta" in first.types
    assert asking.runs == []
    assert "dynamic_gates" in caplog.text
    turn = await talk.approve()
    assert turn.finish_reason == "stop"
    assert len(asking.runs) == 1
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_an_approval_requirement_denied_by_settings_still_stops_its_call(
    open_stage: Open,
) -> None:
    """ADK requests approval in any case: the setting only changes the detection."""
    counted = Counted()
    script = [calls(("pay", {"n": 1})), says("done")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()]), never_gates=("pay",)))
    await talk.say("pay")
    assert counted.runs == []
    assert len(talk.pending()) == 1
    turn = await talk.approve()
    assert counted.runs == [1]
    assert comparable(await talk.history()) == comparable(turn.message)


@pytest.mark.parametrize("gated", [True, False])
async def test_a_tool_may_report_its_own_error(open_stage: Open, gated: bool) -> None:
    prompts = Prompts()

    async def pay(n: int) -> dict[str, int]:
        """Pay."""
        raise ToolError("The account is empty.")

    tool = FunctionTool(pay, require_confirmation=gated)
    script = [calls(("pay", {"n": 1})), says("done")]
    talk = Talk(await open_stage(scripted(script, [tool], before_model_callback=prompts)))
    turn = await talk.say("pay")
    if gated:
        turn = await talk.approve()
    assert part_of(turn.message, "pay")["errorText"] == "The account is empty."
    assert prompts.results["pay"]["error"] == "The account is empty."
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_every_call_is_requested_when_a_provider_reuses_call_ids(
    open_stage: Open,
) -> None:
    counted = Counted()
    named = [
        {"parts": [{"call": {"id": "call_0", "name": "pay", "args": {"n": n}}}]} for n in (1, 2)
    ]
    talk = Talk(await open_stage(scripted([*named, says("done")], [counted.tool()])))
    await talk.say("pay")
    await talk.approve()
    assert counted.runs == [1]
    assert [part["input"] for part in talk.pending()] == [{"n": 2}]
    turn = await talk.answer(approved=False)
    assert counted.runs == [1]
    states = [part["state"] for part in turn.message["parts"] if part["type"] == "tool-pay"]
    assert states == ["output-available", "output-denied"]
    await talk.say("again")
    await talk.approve()
    assert counted.runs == [1, 1]


async def test_other_people_decide_a_node_of_a_workflow(open_stage: Open) -> None:
    paid: list[bool] = []

    def begin() -> dict[str, Any]:
        return {}

    def pay() -> dict[str, Any]:
        """Pay."""
        paid.append(True)
        return {"paid": True}

    flow = Workflow(name="flow", edges=[(START, begin, gated(pay, approvers="bob"))])
    engine = await open_stage(flow)
    talk = Talk(engine)
    await talk.say("pay")
    [part] = talk.pending()
    approval = part["approval"]["id"]
    assert part["approval"]["descriptor"]["approvers"]["users"] == ["bob"]
    with pytest.raises(NotEntitled):
        await talk.approve()
    await engine.approvals.decide(approval, {"approved": True}, user="bob", via="http")
    while (await engine.approvals.get(approval, user="bob"))["state"] != "executed":
        pass
    assert paid == [True]
