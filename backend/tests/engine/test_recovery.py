"""Calls that a crash cut off between claim and outcome: looked up, run again, or unknown (A9)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.tool_context import ToolContext
from sqlalchemy import delete

from sluicegate.core.approvals import ClaimBasis, Decision, NewApproval
from sluicegate.core.call_keys import idempotency_key
from sluicegate.engine.continue_turn import ContinueTurn
from sluicegate.engine.guard.outcome_lookup import look_up
from sluicegate.engine.turn.builder import TurnBuilder, TurnSetup
from sluicegate.stores.sql.schema import APPROVALS
from sluicegate.testing.message_comparison import comparable
from sluicegate.tools import approval_of, gated
from tests.engine.stage import Prompts, calls, part_of, says, scripted
from tests.engine.stores import on_every_store
from tests.engine.talk import Talk, decide

if TYPE_CHECKING:
    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.engine.turn.running_turn import RunningTurn
    from tests.engine.stage import Open

pytestmark = on_every_store

PAY = {"pay": [calls(("pay", {"n": 1})), says("done")], "else": [says("Something else.")]}


@dataclass
class Bank:
    """Makes payments and records them by key."""

    paid: dict[str, dict[str, int]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    repeats: list[bool] = field(default_factory=list)

    async def pay(self, n: int, tool_context: ToolContext) -> dict[str, int]:
        """Pay."""
        approval = approval_of(tool_context)
        assert approval is not None
        self.repeats.append(approval.is_repeated)
        return self.paid.setdefault(approval.key, {"paid": n})

    async def find(self, key: str) -> dict[str, int] | None:
        self.asked.append(key)
        return self.paid.get(key)

    def find_in_a_thread(self, key: str) -> dict[str, int] | None:
        self.asked.append(key)
        return self.paid.get(key)


@pytest.fixture
def bank() -> Bank:
    return Bank()


async def rows(talk: Talk) -> list[ApprovalRow]:
    return await talk.engine.resources.ledger.rows(talk.key)


async def die(talk: Talk, bank: Bank, *, paid: bool, edits: Any = None, by: str = "ann") -> None:
    """Leave the state of a process that died after its claim, before or after the effect."""
    ledger = talk.engine.resources.ledger
    [row] = await rows(talk)
    new = NewApproval(row.key, row.approval_id, row.tool, row.args_hash, 60.0)
    await ledger.record_decisions([Decision(new, approved=True, reason=None, edits=edits)], by=by)
    basis = ClaimBasis(None if row.approvers is None else [by])
    lost = await ledger.claim(row.key, owner="gone", args_hash=row.args_hash, basis=basis)
    assert lost is None
    if paid:
        bank.paid[idempotency_key(row.key)] = {"paid": 1}
    decide(talk.pending()[0], approved=True)
    if edits is not None:
        # A plain yes would approve the requested arguments; the loaded chat names the edits.
        talk.messages[-1] = await talk.history()


async def test_a_plain_tool_is_not_run_again_and_the_outcome_is_unknown(
    open_stage: Open, bank: Bank, prompts: Prompts
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [gated(bank.pay)], before_model_callback=prompts)))
    await talk.say("pay")
    await die(talk, bank, paid=False)
    turn = await talk.post_last()
    assert "outcome is unknown" in part_of(turn.message, "pay")["errorText"]
    assert "outcome is unknown" in prompts.results["pay"]["error"]
    assert comparable(await talk.history()) == comparable(turn.message)
    assert bank.repeats == []


@pytest.mark.parametrize("find", ["find", "find_in_a_thread"])
async def test_a_call_found_by_look_up_is_not_run_again(
    open_stage: Open, bank: Bank, prompts: Prompts, find: str
) -> None:
    tool = gated(bank.pay, find=getattr(bank, find))
    talk = Talk(await open_stage(scripted(PAY, [tool], before_model_callback=prompts)))
    await talk.say("pay")
    await die(talk, bank, paid=True)
    turn = await talk.post_last()
    assert (part_of(turn.message, "pay")["output"], bank.repeats) == ({"paid": 1}, [])
    assert prompts.results["pay"] == {"paid": 1}
    [row] = await rows(talk)
    assert (row.state, bank.asked) == ("executed", [idempotency_key(row.key)])
    assert comparable(await talk.history()) == comparable(turn.message)


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_call_not_found_by_look_up_runs_again_only_if_that_is_allowed(
    open_stage: Open, bank: Bank, idempotent: bool
) -> None:
    tool = gated(bank.pay, find=bank.find, idempotent=idempotent)
    talk = Talk(await open_stage(scripted(PAY, [tool])))
    await talk.say("pay")
    await die(talk, bank, paid=False)
    turn = await talk.post_last()
    part = part_of(turn.message, "pay")
    assert part["state"] == ("output-available" if idempotent else "output-error")
    assert (len(bank.asked), bank.repeats) == (1, [True] if idempotent else [])


@pytest.mark.parametrize("paid", [False, True])
async def test_an_idempotent_tool_runs_again_with_the_same_key(
    open_stage: Open, bank: Bank, paid: bool
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [gated(bank.pay, idempotent=True)])))
    await talk.say("pay")
    await die(talk, bank, paid=paid)
    turn = await talk.post_last()
    assert part_of(turn.message, "pay")["output"] == {"paid": 1}
    [row] = await rows(talk)
    assert (row.state, bank.repeats) == ("executed", [True])
    assert bank.paid == {idempotency_key(row.key): {"paid": 1}}
    assert comparable(await talk.history()) == comparable(turn.message)


async def test_a_call_runs_again_with_its_edited_arguments(open_stage: Open, bank: Bank) -> None:
    talk = Talk(await open_stage(scripted(PAY, [gated(bank.pay, idempotent=True)])))
    await talk.say("pay")
    await die(talk, bank, paid=False, edits={"n": 5})
    output = part_of((await talk.post_last()).message, "pay")["output"]
    assert (output["paid"], output["edited_by_user"]["arguments"]) == (5, {"n": 5})


async def test_a_result_found_by_look_up_mentions_the_edited_arguments(
    open_stage: Open, bank: Bank
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [gated(bank.pay, find=bank.find)])))
    await talk.say("pay")
    await die(talk, bank, paid=True, edits={"n": 5})
    output = part_of((await talk.post_last()).message, "pay")["output"]
    assert output["edited_by_user"]["arguments"] == {"n": 5}


async def test_a_call_forbidden_in_the_meantime_is_not_run_again(
    open_stage: Open, bank: Bank
) -> None:
    allowed = True

    async def policy(call: Any, user: str) -> bool:
        return allowed

    tool = gated(bank.pay, idempotent=True)
    talk = Talk(await open_stage(scripted(PAY, [tool]), policy=policy))
    await talk.say("pay")
    await die(talk, bank, paid=False)
    allowed = False
    turn = await talk.post_last()
    assert "outcome is unknown" in part_of(turn.message, "pay")["errorText"]
    assert bank.repeats == []


async def test_a_look_up_that_fails_leaves_the_outcome_unknown(
    open_stage: Open, bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    async def find(key: str) -> None:
        raise RuntimeError("sk-secret")

    talk = Talk(await open_stage(scripted(PAY, [gated(bank.pay, find=find)])))
    await talk.say("pay")
    await die(talk, bank, paid=True)
    turn = await talk.post_last()
    assert "outcome is unknown" in part_of(turn.message, "pay")["errorText"]
    assert "sk-secret" not in caplog.text
    assert "Error" in caplog.text


async def test_a_look_up_that_takes_too_long_leaves_the_outcome_unknown(
    open_stage: Open, bank: Bank
) -> None:
    cancelled, reported = asyncio.Event(), list[BaseException]()

    async def find(key: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    def report(error: BaseException) -> str:
        reported.append(error)
        return "id"

    talk = Talk(await open_stage(scripted(PAY, [gated(bank.pay, find=find)])))
    await talk.say("pay")
    await die(talk, bank, paid=True)
    [row] = await rows(talk)
    ledger = talk.engine.resources.ledger

    known = await look_up(ledger, find, row, owner="me", report=report, seconds=0.0)

    assert known is None
    assert cancelled.is_set()
    assert [type(error) for error in reported] == [TimeoutError]
    assert await rows(talk) == [row]


@pytest.mark.parametrize("paid", [False, True])
async def test_a_new_message_closes_an_interrupted_call_with_the_result_of_its_look_up(
    open_stage: Open, bank: Bank, prompts: Prompts, paid: bool
) -> None:
    tool = gated(bank.pay, find=bank.find, idempotent=True)
    talk = Talk(await open_stage(scripted(PAY, [tool], before_model_callback=prompts)))
    await talk.say("pay")
    await die(talk, bank, paid=paid)
    await talk.say("else")
    chat = await talk.engine.get_chat(talk.chat_id, user=talk.user)
    part = part_of(chat["messages"][1], "pay")
    assert part["state"] == ("output-available" if paid else "output-error")
    assert bank.repeats == []
    [row] = await rows(talk)
    assert row.state == ("executed" if paid else "unknown")
    assert ("paid" in prompts.results["pay"]) == paid


async def test_an_approval_deleted_before_its_claim_runs_nothing(
    open_stage: Open, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [gated(bank.pay)])))
    await talk.say("pay")
    run = ContinueTurn.run

    async def forgotten(self: ContinueTurn, *args: Any) -> Any:
        await talk.engine.resources.database.write(
            lambda connection: connection.execute(delete(APPROVALS)).rowcount
        )
        return await run(self, *args)

    monkeypatch.setattr(ContinueTurn, "run", forgotten)
    turn = await talk.approve()
    assert turn.failed
    assert bank.repeats == []


async def test_an_approval_without_a_ledger_row_is_refused(
    open_stage: Open, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(await open_stage(scripted(PAY, [gated(bank.pay)])))
    await talk.say("pay")

    build = TurnBuilder.build

    async def without_rows(self: TurnBuilder, setup: TurnSetup) -> RunningTurn:
        return await build(self, replace(setup, rows=()))

    monkeypatch.setattr(TurnBuilder, "build", without_rows)
    turn = await talk.approve()
    assert "no approval of this call is known" in part_of(turn.message, "pay")["errorText"]
    assert bank.repeats == []
