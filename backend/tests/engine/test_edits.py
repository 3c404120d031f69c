"""Approvals with edited arguments: validated, recorded, executed and reported to the model (A7)."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from pydantic import BaseModel

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.core.json_values import hash_arguments
from sluicegate.errors import AlreadyDecided, Malformed, TooLarge, ToolError
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import client_tool, gated
from tests.engine.stage import Counted, Prompts, calls, part_of, says, scripted
from tests.engine.talk import Talk, decide
from tests.engine.test_denials import RequestingTool
from tests.engine.topologies import flow

if TYPE_CHECKING:
    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.core.release.policies import ReleasePolicy
    from tests.engine.stage import Open

RELEASES: list[ReleasePolicy] = ["deferred", "preview", "progressive"]
PAY = [calls(("pay", {"n": 1})), says("done")]


def edited(talk: Talk, **arguments: Any) -> dict[str, Any]:
    """The same changed arguments for everything that waits."""
    return {"edits": dict.fromkeys(talk.asks(), arguments)}


async def row_of(talk: Talk) -> ApprovalRow:
    chat = ChatKey(talk.engine.resources.app, talk.user, talk.chat_id)
    [row] = await talk.engine.resources.ledger.rows(chat)
    return row


@pytest.mark.parametrize("style", ["call", "confirmation"])
@pytest.mark.parametrize(
    ("release", "major"),
    [("deferred", 6), ("deferred", 7), ("preview", 7), ("progressive", 6), ("progressive", 7)],
)
async def test_a_call_runs_with_its_edited_arguments_and_the_model_is_informed(
    open_stage: Open,
    counted: Counted,
    prompts: Prompts,
    release: ReleasePolicy,
    major: Any,
    style: str,
) -> None:
    agent = scripted(PAY, [counted.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent, approval_style=style), release, major)
    await talk.say("pay")
    turn = await talk.approve(**edited(talk, n=2))
    assert (turn.finish_reason, counted.runs) == ("stop", [2])
    part = part_of(turn.message, "pay")
    result = prompts.results["pay"]
    assert part["input"] == {"n": 1}
    assert part["output"] == result
    assert result["paid"] == 2
    assert result["edited_by_user"]["arguments"] == {"n": 2}
    assert "changed the arguments" in result["edited_by_user"]["note"]
    stored = await talk.history()
    assert comparable(stored, major=major) == comparable(turn.message, major=major)
    assert turn.message["metadata"] == stored["metadata"]
    [approval] = stored["metadata"]["approvals"].values()
    assert (approval["state"], approval["edits"]) == ("executed", {"n": 2})


async def test_requested_and_approved_arguments_are_both_recorded(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay")
    await talk.approve(**edited(talk, n=2))
    row = await row_of(talk)
    assert (row.arguments, row.edits) == ({"n": 1}, {"n": 2})
    assert row.args_hash == hash_arguments({"n": 1})


async def test_unchanged_arguments_are_no_edit(
    open_stage: Open, counted: Counted, prompts: Prompts
) -> None:
    agent = scripted(PAY, [counted.tool()], before_model_callback=prompts)
    talk = Talk(await open_stage(agent))
    await talk.say("pay")
    await talk.approve(**edited(talk, n=1.0))
    assert (prompts.results["pay"], (await row_of(talk)).edits) == ({"paid": 1}, None)


@pytest.mark.parametrize("release", RELEASES)
async def test_each_of_two_calls_runs_with_its_own_approved_arguments(
    open_stage: Open, counted: Counted, release: ReleasePolicy
) -> None:
    script = [calls(("pay", {"n": 1}), ("pay", {"n": 2})), says("done")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])), release)
    await talk.say("pay")
    turn = await talk.approve(edits={talk.asks()[1]: {"n": 20}})
    assert sorted(counted.runs) == [1, 20]
    outputs = [part["output"] for part in turn.message["parts"] if part["type"] == "tool-pay"]
    assert ["edited_by_user" in output for output in outputs] == [False, True]


async def test_the_model_is_informed_of_the_edit_when_the_edited_call_fails(
    open_stage: Open, prompts: Prompts
) -> None:
    async def pay(n: int) -> None:
        """Pay."""
        raise ToolError(f"No money for {n}.")

    agent = scripted(PAY, [gated(pay)], before_model_callback=prompts)
    talk = Talk(await open_stage(agent))
    await talk.say("pay")
    turn = await talk.approve(**edited(talk, n=2))
    assert part_of(turn.message, "pay")["errorText"] == "No money for 2."
    assert prompts.results["pay"]["edited_by_user"]["arguments"] == {"n": 2}
    assert comparable(await talk.history()) == comparable(turn.message)


class Receipt(BaseModel):
    """The result of a tool with pydantic models."""

    paid: int


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (None, None),
        ("fine", "fine"),
        ([1, 2], [1, 2]),
        (Receipt(paid=2), {"paid": 2}),
        ({"edited_by_user": "mine"}, {"edited_by_user": "mine"}),
    ],
    ids=["nothing", "text", "list", "model", "the same key"],
)
async def test_the_note_is_added_to_any_result(open_stage: Open, result: Any, shown: Any) -> None:
    async def pay(n: int) -> Any:
        """Pay."""
        return result

    talk = Talk(await open_stage(scripted(PAY, [gated(pay)])))
    await talk.say("pay")
    turn = await talk.approve(**edited(talk, n=2))
    output = part_of(turn.message, "pay")["output"]
    assert output["result"] == shown
    assert output["edited_by_user"]["arguments"] == {"n": 2}
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_a_tool_that_requests_its_own_approval_runs_with_the_edited_arguments(
    open_stage: Open,
) -> None:
    asking = RequestingTool()
    script = [calls(("ask", {"n": 1})), says("done")]
    talk = Talk(await open_stage(scripted(script, [asking.ask])))
    await talk.say("ask")
    await talk.approve(**edited(talk, n=2))
    assert (asking.asked, asking.done) == ([1, 2], [2])


async def test_a_node_of_a_workflow_runs_with_the_edited_arguments(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(flow("flow", counted.tool())))
    await talk.say('{"n": 1}')
    turn = await talk.approve(**edited(talk, n=2))
    assert counted.runs == [2]
    assert comparable(await talk.history()) == comparable(turn.message)


def uneditable_tool(kind: str, counted: Counted) -> BaseTool:
    """Tools whose arguments must not be edited."""
    if kind == "declared":
        return gated(counted.tool(), editable=False)
    if kind == "metadata":
        tool = counted.tool()
        tool.custom_metadata = {"editable": False}
        return tool
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    return client_tool("pay", "Pay.", schema, require_confirmation=True)


@pytest.mark.parametrize("kind", ["declared", "metadata", "browser"])
async def test_a_tool_may_forbid_edits(open_stage: Open, counted: Counted, kind: str) -> None:
    talk = Talk(await open_stage(scripted(PAY, [uneditable_tool(kind, counted)])))
    turn = await talk.say("pay")
    [request] = [chunk for chunk in turn.chunks if hasattr(chunk, "approval_descriptor")]
    assert request.approval_descriptor["editable"] is False
    with pytest.raises(Malformed, match="The arguments of pay cannot be changed"):
        await talk.approve(**edited(talk, n=2))
    assert (await talk.history())["parts"][-1]["state"] == "approval-requested"
    assert (await row_of(talk)).state == "requested"


class Order(BaseModel):
    """Nested arguments."""

    item: str
    count: int


async def order(order: Order, note: str = "", *, gift: bool = False) -> dict[str, str]:
    """Order."""
    return {"ordered": str(order)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "'order' is a required property"),
        ({"order": {"item": "cup", "count": "two"}}, "order.count: 'two' is not of type 'integer'"),
        ({"order": {"item": "cup"}}, "order: 'count' is a required property"),
        ({"order": "cup"}, "order"),
        ({"order": {"item": "cup", "count": 1}, "sudo": True}, "'sudo' was unexpected"),
        ({"order": {"item": "cup", "count": 1}, "gift": 1}, "gift: 1 is not of type 'boolean'"),
        ({"order": {"item": "cup", "count": 1}, "note": "x" * 999 + "\u202e", "gift": "y"}, "gift"),
    ],
)
async def test_arguments_that_do_not_match_the_schema_are_refused_and_the_approval_stays_open(
    open_stage: Open, arguments: dict[str, Any], said: str
) -> None:
    script = [calls(("order", {"order": {"item": "cup", "count": 1}})), says("done")]
    talk = Talk(await open_stage(scripted(script, [gated(order)])))
    await talk.say("order")
    with pytest.raises(Malformed) as refused:
        await talk.approve(**edited(talk, **arguments))
    assert said in refused.value.message
    assert refused.value.message.startswith("The changed arguments of order do not fit: ")
    assert len(refused.value.message) < 300
    assert refused.value.message.isprintable()
    assert (await row_of(talk)).state == "requested"
    turn = await talk.post_last(edits=dict.fromkeys(approval_ids(talk), GOOD))
    assert part_of(turn.message, "order")["output"]["ordered"] == "item='pen' count=3"


GOOD = {"order": {"item": "pen", "count": 3}, "gift": True}


def approval_ids(talk: Talk) -> list[str]:
    parts = talk.messages[-1]["parts"]
    return [part["approval"]["id"] for part in parts if "approval" in part]


async def test_arguments_above_the_limits_are_refused(open_stage: Open, counted: Counted) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()]), max_output_values=10))
    await talk.say("pay")
    with pytest.raises(TooLarge):
        await talk.approve(**edited(talk, n=list(range(11))))
    assert (await row_of(talk)).state == "requested"


async def test_one_invalid_edit_refuses_the_whole_request(
    open_stage: Open, counted: Counted
) -> None:
    script = [calls(("pay", {"n": 1}), ("pay", {"n": 2})), says("done")]
    talk = Talk(await open_stage(scripted(script, [counted.tool()])))
    await talk.say("pay")
    first, second = talk.asks()
    with pytest.raises(Malformed):
        await talk.approve(edits={first: {"n": 10}, second: {"n": "ten"}})
    stored = await talk.history()
    assert [part["state"] for part in stored["parts"][-2:]] == ["approval-requested"] * 2


async def test_an_edit_with_a_denial_is_ignored(open_stage: Open, counted: Counted) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay")
    await talk.answer(approved=False, **edited(talk, n=2))
    assert (counted.runs, (await row_of(talk)).edits) == ([], None)


async def test_a_second_approval_with_other_edits_is_a_conflict(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay")
    [asked] = talk.asks()
    decide(talk.pending()[0], approved=True)
    message = copy.deepcopy(talk.messages[-1])
    posted: dict[str, Any] = {"message": message, "messageId": message["id"]}
    await talk.post({**posted, "edits": {asked: {"n": 2}}})
    await talk.post({**posted, "edits": {asked: {"n": 2}}})
    for others in ({"n": 3}, {"n": 1}, {"n": "nonsense"}, {}):
        with pytest.raises(AlreadyDecided):
            await talk.post({**posted, "edits": {asked: others}})
    with pytest.raises(AlreadyDecided):
        await talk.post({**posted, "remember": {asked: "chat"}, "edits": {asked: {"n": 2}}})
    assert (counted.runs, (await row_of(talk)).edits) == ([2], {"n": 2})


async def test_a_second_approval_without_the_edits_is_a_repetition_if_the_page_knows_them(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay")
    [asked] = talk.asks()
    decide(talk.pending()[0], approved=True)
    message: Any = copy.deepcopy(talk.messages[-1])
    posted: dict[str, Any] = {"message": message, "messageId": message["id"]}
    await talk.post({**posted, "edits": {asked: {"n": 2}}})
    with pytest.raises(AlreadyDecided):
        await talk.post(posted)
    message["metadata"] = {"approvals": {asked: {"edits": {"n": 3}}}}
    with pytest.raises(AlreadyDecided):
        await talk.post(posted)
    message["metadata"] = (await talk.history())["metadata"]
    assert message["metadata"]["approvals"][asked]["edits"] == {"n": 2}
    await talk.post(posted)
    assert counted.runs == [2]


async def test_a_page_repeats_an_edited_approval_beside_the_next_one(
    open_stage: Open, counted: Counted
) -> None:
    two = [calls(("pay", {"n": 1}), ("ask", {"n": 5})), says("done")]
    asking = RequestingTool()
    talk = Talk(await open_stage(scripted(two, [counted.tool(), asking.ask])))
    await talk.say("pay")
    await talk.answer(approved=True, tools=["pay"], **edited(talk, n=2))
    assert counted.runs == []
    turn = await talk.answer(approved=True)
    assert (turn.finish_reason, counted.runs, asking.done) == ("stop", [2], [5])


async def test_a_second_approval_with_edits_of_an_unedited_one_is_a_conflict(
    open_stage: Open, counted: Counted
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [counted.tool()])))
    await talk.say("pay")
    [asked] = talk.asks()
    decide(talk.pending()[0], approved=True)
    posted = {"message": talk.messages[-1], "messageId": talk.messages[-1]["id"]}
    await talk.post(posted)
    with pytest.raises(AlreadyDecided):
        await talk.post({**posted, "edits": {asked: {"n": 2}}})
    await talk.post({**posted, "edits": {asked: {"n": 1}}})
    assert (counted.runs, (await row_of(talk)).edits) == ([1], None)


async def test_of_two_tabs_that_approve_different_arguments_one_receives_a_conflict(
    open_stage: Open, counted: Counted
) -> None:
    engine = await open_stage(scripted(PAY, [counted.tool()]))
    talk = Talk(engine)
    await talk.say("pay")
    [asked] = talk.asks()
    decide(talk.pending()[0], approved=True)
    posted = {"message": talk.messages[-1], "messageId": talk.messages[-1]["id"]}
    tabs = [asyncio.create_task(talk.start({**posted, "edits": {asked: {"n": n}}})) for n in (2, 3)]
    done = await asyncio.gather(*tabs, return_exceptions=True)
    for each in done:
        if not isinstance(each, BaseException):
            await talk.read(each)
    # One waits for the other, and so finds its own answer given already.
    row = await row_of(talk)
    assert counted.runs == [row.edits["n"]]  # type: ignore[index, call-overload]


async def test_a_lost_race_against_other_arguments_is_reported(
    open_stage: Open, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await open_stage(scripted(PAY, [counted.tool()]))
    talk = Talk(engine)
    await talk.say("pay")
    ledger = engine.resources.ledger
    decide_first = ledger.record_decisions

    async def overtaken(decisions: Any, **how: Any) -> Any:
        """Another server records a plain yes between the plan and the decision."""
        plain = [type(d)(d.request, approved=True, reason=None) for d in decisions]
        await decide_first(plain, **how)
        return await decide_first(decisions, **how)

    monkeypatch.setattr(ledger, "record_decisions", overtaken)
    with pytest.raises(AlreadyDecided):
        await talk.approve(**edited(talk, n=2))
    assert (await row_of(talk)).edits is None
    assert counted.runs == []


async def test_an_unusable_schema_allows_no_edits(open_stage: Open) -> None:
    class Odd(FunctionTool):
        """A tool with a schema that refers to nothing."""

        def _get_declaration(self) -> Any:
            declaration = super()._get_declaration()
            assert declaration is not None
            schema = {"type": "object", "properties": {"n": {"$ref": "https://evil.example/n"}}}
            declaration.parameters_json_schema = schema
            return declaration

    async def pay(n: int) -> dict[str, int]:
        """Pay."""
        return {"paid": n}

    talk = Talk(await open_stage(scripted(PAY, [Odd(pay, require_confirmation=True)])))
    await talk.say("pay")
    with pytest.raises(Malformed, match="the tool's own schema cannot be used"):
        await talk.approve(**edited(talk, n=2))
