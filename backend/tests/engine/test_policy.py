"""Policies that forbid calls, and the approval in a tool's context (A9)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.tool_context import ToolContext

from sluicegate.core.call_keys import CallKey, idempotency_key
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import Approval, GatedCall, approval_of, gated
from tests.engine.stage import Counted, Prompts, calls, part_of, says, scripted
from tests.engine.talk import Talk
from tests.engine.test_denials import RequestingTool

if TYPE_CHECKING:
    from sluicegate.core.release.policies import ReleasePolicy
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "preview", "progressive"]
PAY = [calls(("pay", {"n": 1})), says("done")]


@dataclass
class Rules:
    """A policy that records its calls and returns configured answers."""

    before: Any = True
    """The answer before the approval request; an exception is raised."""
    at_last: Any = True
    """The answer right before the call."""
    asked: list[tuple[GatedCall, str]] = field(default_factory=list)

    async def __call__(self, call: GatedCall, user: str) -> Any:
        self.asked.append((call, user))
        said = self.before if call.approval is None else self.at_last
        if isinstance(said, Exception):
            raise said
        return said


async def test_the_policy_is_called_before_the_request_and_again_before_the_call(
    open_stage: Open, counted: Counted
) -> None:
    rules = Rules()
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()]), policy=rules))
    await talk.say("pay")
    [(call, user)] = rules.asked
    assert (call.tool, call.arguments, call.approval, user) == ("pay", {"n": 1}, None, "ann")
    assert (call.user, call.chat) == ("ann", talk.chat_id)
    await talk.answer(approved=True, reason="go on", edits={talk.asks()[0]: {"n": 2}})
    call, user = rules.asked[1]
    assert (call.tool, call.arguments, user) == ("pay", {"n": 2}, "ann")
    assert call.approval is not None
    assert (call.approval.decided_by, call.approval.reason) == ("ann", "go on")
    assert (call.approval.is_edited, call.approval.is_automatic) == (True, False)
    assert (len(rules.asked), counted.runs) == (2, [2])


REFUSALS = [
    (False, "it is not allowed."),
    (None, "it is not allowed."),
    ("yes", "yes"),
    (1, "it is not allowed."),
    ("", "it is not allowed."),
    ("not on Sundays.", "not on Sundays."),
    (RuntimeError("sk-secret"), "could not be checked"),
]


@pytest.mark.parametrize(("said", "shown"), REFUSALS)
async def test_a_call_forbidden_by_the_policy_is_refused_without_a_request(
    open_stage: Open, counted: Counted, prompts: Prompts, said: Any, shown: str
) -> None:
    agent = scripted(PAY, [counted.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent, policy=Rules(before=said)))
    turn = await talk.say("pay")
    part = part_of(turn.message, "pay")
    assert (turn.finish_reason, part["state"], "approval" in part) == (
        "stop",
        "output-error",
        False,
    )
    assert part["errorText"].startswith("Not run: ")
    assert shown in part["errorText"]
    assert shown in prompts.results["pay"]["error"]
    assert "sk-secret" not in str(turn.message)
    assert comparable(await talk.history()) == comparable(turn.message)
    assert counted.runs == []


@pytest.mark.parametrize(("said", "shown"), REFUSALS)
async def test_a_call_forbidden_since_its_request_does_not_run_after_the_approval(
    open_stage: Open, counted: Counted, prompts: Prompts, said: Any, shown: str
) -> None:
    agent = scripted(PAY, [counted.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent, policy=Rules(at_last=said)))
    await talk.say("pay")
    turn = await talk.answer(approved=True, reason="please")
    part = part_of(turn.message, "pay")
    assert (turn.finish_reason, part["state"]) == ("stop", "output-error")
    assert part["approval"]["approved"] is True
    assert part["approval"]["reason"] == "please"
    assert shown in part["errorText"]
    assert shown in prompts.results["pay"]["error"]
    stored = await talk.history()
    assert comparable(stored) == comparable(turn.message)
    [approval] = stored["metadata"]["approvals"].values()
    assert (approval["state"], counted.runs) == ("refused", [])


@pytest.mark.parametrize("release", RELEASES)
async def test_the_policy_is_called_when_a_tool_requests_its_own_approval(
    open_stage: Open, release: ReleasePolicy
) -> None:
    asking, rules = RequestingTool(), Rules(before="no more.")
    script = [calls(("ask", {"n": 1})), says("done")]
    talk = Talk(await open_stage(scripted(script, [asking.ask]), policy=rules), release)
    turn = await talk.say("ask")
    assert part_of(turn.message, "ask")["errorText"] == "Not run: no more."
    assert (turn.finish_reason, asking.done) == ("stop", [])
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_the_policy_is_called_for_granted_calls(open_stage: Open, counted: Counted) -> None:
    asked: list[GatedCall] = []

    async def below_three(call: GatedCall, user: str) -> bool | str:
        asked.append(call)
        return call.arguments["n"] < 3 or "3 is too much."

    script = [calls(("pay", {"n": n})) for n in (1, 2, 3)]
    agent = scripted([*script, says("done")], [counted.tool()])
    talk = Talk(await open_stage(agent, policy=below_three))
    await talk.say("pay")
    turn = await talk.approve(remember={talk.asks()[0]: "chat"})
    parts = [part for part in turn.message["parts"] if part["type"] == "tool-pay"]
    assert counted.runs == [1, 2]
    assert parts[2]["errorText"] == "Not run: 3 is too much."
    approvals = [call.approval for call in asked]
    assert [a and a.is_automatic for a in approvals] == [None, False, True, True]
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_a_policy_cannot_change_what_runs(open_stage: Open, counted: Counted) -> None:
    async def meddling(call: GatedCall, user: str) -> bool:
        call.arguments["n"] = 99  # type: ignore[index]
        return True

    talk = Talk(await open_stage(scripted(PAY, [counted.tool()]), policy=meddling))
    await talk.say("pay")
    await talk.approve()
    assert counted.runs == [1]


async def test_the_policy_is_not_called_for_tools_without_approval(
    open_stage: Open, counted: Counted
) -> None:
    rules = Rules(before=False)
    talk = Talk(await open_stage(scripted(PAY, [counted.tool(gated=False)]), policy=rules))
    await talk.say("pay")
    assert (rules.asked, counted.runs) == ([], [1])


@dataclass
class ApprovalRecordingTool:
    """A tool that records its approval."""

    seen: list[Approval | None] = field(default_factory=list)

    async def pay(self, n: int, tool_context: ToolContext) -> dict[str, int]:
        """Pay."""
        self.seen.append(approval_of(tool_context))
        return {"paid": n}

    def pay_in_a_thread(self, n: int, tool_context: ToolContext) -> dict[str, int]:
        """Pay, away from the event loop."""
        self.seen.append(approval_of(tool_context))
        return {"paid": n}


@pytest.mark.parametrize("name", ["pay", "pay_in_a_thread"])
async def test_a_tool_receives_its_approver_and_its_idempotency_key(
    open_stage: Open, name: str
) -> None:
    knowing = ApprovalRecordingTool()
    script = [calls((name, {"n": 1}), (name, {"n": 2})), says("done")]
    talk = Talk(await open_stage(scripted(script, [gated(getattr(knowing, name))])))
    await talk.say("pay")
    await talk.answer(approved=True, reason="go on", edits={talk.asks()[0]: {"n": 3}})
    first, second = knowing.seen
    assert first is not None
    assert second is not None
    assert (first.decided_by, first.reason) == ("ann", "go on")
    assert first.decided_at > 1_700_000_000
    assert sorted([first.is_edited, second.is_edited]) == [False, True]
    assert (first.is_automatic, first.is_repeated) == (False, False)
    assert all(re.fullmatch(r"[0-9a-f]{64}", each.key) for each in (first, second))
    assert first.key != second.key


async def test_a_granted_call_is_marked_in_its_context(open_stage: Open) -> None:
    knowing = ApprovalRecordingTool()
    script = [calls(("pay", {"n": 1})), calls(("pay", {"n": 2})), says("done")]
    talk = Talk(await open_stage(scripted(script, [gated(knowing.pay)])))
    await talk.say("pay")
    await talk.approve(remember={talk.asks()[0]: "chat"})
    assert [seen.is_automatic for seen in knowing.seen if seen] == [False, True]


async def test_a_call_without_a_request_has_no_approval_context(open_stage: Open) -> None:
    knowing = ApprovalRecordingTool()
    talk = Talk(await open_stage(scripted(PAY, [knowing.pay])))
    await talk.say("pay")
    assert knowing.seen == [None]


def test_the_idempotency_key_depends_on_every_part_of_a_call() -> None:
    base = CallKey("app", "ann", "chat", "inv", "call")
    others = [base._replace(**{name: "other"}) for name in base._fields]
    shifted = CallKey("appa", "nn", "chat", "inv", "call")
    keys = {idempotency_key(key) for key in (base, *others, shifted)}
    assert len(keys) == 7
    assert idempotency_key(base) == idempotency_key(CallKey(*base))
