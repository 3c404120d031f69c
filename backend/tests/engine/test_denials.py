"""Denials and the limits of approval requests (A6, S2-R26, S2-R43)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.tool_context import ToolContext

from sluicegate.testing.message_comparison import comparable
from tests.engine.stage import Counted, Prompts, calls, part_of, says, scripted
from tests.engine.talk import Talk, decide

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.core.release.policies import ReleasePolicy
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "progressive"]


@dataclass
class RequestingTool:
    """A tool that requests approval while it runs."""

    asked: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)

    async def ask(self, n: int, tool_context: ToolContext) -> dict[str, int] | None:
        """Ask."""
        self.asked.append(n)
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Shall it be?")
            return None
        self.done.append(n)
        return {"n": n}


@pytest.mark.parametrize("reason", ["too dear", None])
async def test_a_denial_reaches_the_model_with_its_reason(
    open_stage: Open, counted: Counted, prompts: Prompts, reason: str | None
) -> None:
    script = [calls(("pay", {"n": 1})), says("Then not.")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()], before_model_callback=prompts)))
    await talk.say("pay")
    turn = await talk.answer(approved=False, reason=reason)
    result = prompts.results["pay"]
    assert result["status"] == "denied"
    assert result.get("reason") == reason
    approval = part_of(turn.message, "pay")["approval"]
    assert (approval["approved"], approval.get("reason")) == (False, reason)
    assert counted.runs == []


async def test_the_callbacks_of_a_denied_call_do_not_run_again(
    open_stage: Open, counted: Counted
) -> None:
    seen: list[str] = []

    def before(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
        seen.append(tool.name)

    script = [calls(("pay", {"n": 1})), says("Then not.")]
    agent = scripted(script, [counted.tool()], before_tool_callback=before)
    talk = Talk(await open_stage(agent))
    await talk.say("pay")
    assert seen == ["pay"]
    await talk.answer(approved=False)
    assert seen == ["pay"]


@pytest.mark.parametrize("release", RELEASES)
async def test_the_same_call_after_a_denial_is_refused_without_a_request(
    open_stage: Open, counted: Counted, prompts: Prompts, release: ReleasePolicy
) -> None:
    script = [
        calls(("pay", {"n": 1})),
        calls(("pay", {"n": 1})),
        calls(("pay", {"n": 2})),
        says("done"),
    ]
    agent = scripted(script, [counted.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent), release)
    await talk.say("pay")
    await talk.answer(approved=False)
    assert [part["input"] for part in talk.pending()] == [{"n": 2}]
    assert "denied the same call" in str(prompts.results["pay"])
    turn = await talk.approve()
    states = [part["state"] for part in turn.message["parts"] if part["type"] == "tool-pay"]
    assert states == ["output-denied", "output-error", "output-available"]
    assert comparable(await talk.history()) == comparable(turn.message)
    assert counted.runs == [2]


async def test_the_same_call_is_requested_again_after_an_approval_and_in_another_exchange(
    open_stage: Open, counted: Counted
) -> None:
    script = {
        "twice": [calls(("pay", {"n": 1})), calls(("pay", {"n": 1})), says("done")],
        "once": [calls(("pay", {"n": 1})), says("done")],
    }
    talk = Talk(await open_stage(scripted(script, [counted.tool()])))
    await talk.say("once")
    await talk.answer(approved=False)
    await talk.say("twice")
    await talk.approve()
    assert len(talk.pending()) == 1
    await talk.answer(approved=False)
    assert counted.runs == [1]


async def test_a_tool_that_requests_its_own_approval_is_not_requested_again_after_a_denial(
    open_stage: Open, prompts: Prompts
) -> None:
    asking = RequestingTool()
    script = [calls(("ask", {"n": 1})), calls(("ask", {"n": 1})), says("done")]
    talk = Talk(await open_stage(scripted(script, [asking.ask], before_model_callback=prompts)))
    await talk.say("ask")
    assert (await talk.answer(approved=False)).finish_reason == "stop"
    assert asking.asked == [1]


@pytest.mark.parametrize(
    ("setting", "per_step", "steps"),
    [
        ("max_requests_per_turn", 3, 1),
        ("max_requests_per_exchange", 1, 3),
        ("max_pending_per_chat", 3, 1),
    ],
)
async def test_the_number_of_approval_requests_is_limited(
    open_stage: Open,
    counted: Counted,
    prompts: Prompts,
    setting: str,
    per_step: int,
    steps: int,
) -> None:
    numbers = iter(range(100))
    script = [
        calls(*(("pay", {"n": next(numbers)}) for _ in range(per_step))) for _ in range(steps)
    ]
    agent = scripted([*script, says("done")], [counted.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent, **{setting: 2}))
    turn = await talk.say("pay")
    asked = len(talk.pending())
    while turn.finish_reason == "tool-calls":
        turn = await talk.approve()
        asked += len(talk.pending())
    assert asked == 2
    assert counted.runs == [0, 1]
    states = [part["state"] for part in turn.message["parts"] if part["type"] == "tool-pay"]
    assert sorted(states) == ["output-available", "output-available", "output-error"]
    assert comparable(await talk.history()) == comparable(turn.message)
    assert "too many approvals" in str(prompts.contents[-1])


async def test_a_tool_that_requests_its_own_approval_is_limited_by_the_settings(
    open_stage: Open,
) -> None:
    asking = RequestingTool()
    script = [calls(("ask", {"n": 1}), ("ask", {"n": 2})), says("done")]
    talk = Talk(await open_stage(scripted(script, [asking.ask]), max_requests_per_turn=1))
    await talk.say("ask")
    assert len(talk.pending()) == 1
    turn = await talk.approve()
    states = [part["state"] for part in turn.message["parts"] if part["type"] == "tool-ask"]
    assert sorted(states) == ["output-available", "output-error"]
    assert comparable(await talk.history()) == comparable(turn.message)
    assert len(asking.done) == 1


async def test_approvals_superseded_by_a_new_message_do_not_count_as_open(
    open_stage: Open, counted: Counted
) -> None:
    script = [calls(("pay", {"n": 1}), ("pay", {"n": 2})), says("done")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()]), max_pending_per_chat=2))
    for text in ("one", "two", "three"):
        await talk.say(text)
        assert len(talk.pending()) == 2
    for part in talk.pending():
        decide(part, approved=True)
    assert (await talk.post_last()).finish_reason == "stop"
    assert counted.runs == [1, 2]
