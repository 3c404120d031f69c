"""Unknown outcomes that a person resolves, on every store (A5)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.tool_context import ToolContext

from sluicegate.core.call_keys import idempotency_key
from sluicegate.errors import (
    AlreadyDecided,
    Malformed,
    NotEntitled,
    NotIdempotent,
    ToolError,
    Unknown,
)
from sluicegate.stores.approvals.audit_reading import AuditTrail, HistoryFilter
from sluicegate.tools import GatedCall, Role, gated
from tests.engine.stage import Prompts, part_of, scripted
from tests.engine.stores import on_every_store
from tests.engine.talk import Talk
from tests.engine.test_recovery import PAY, Bank, die, rows

if TYPE_CHECKING:
    from tests.engine.stage import Open

pytestmark = on_every_store


@pytest.fixture
def bank() -> Bank:
    return Bank()


async def cut_off(open_stage: Open, bank: Bank, tool: Any, **more: Any) -> Talk:
    """A chat whose process died during a payment."""
    talk = Talk(await open_stage(scripted(PAY, [tool], **more)))
    await talk.say("pay")
    await die(talk, bank, paid=False, by="boss")
    return talk


async def unknown(talk: Talk) -> list[dict[str, Any]]:
    approvals = talk.engine.approvals
    page = await approvals.unknown_outcomes(user=talk.user, limit=10, after=None)
    listed: list[dict[str, Any]] = page["approvals"]
    return listed


async def resolve(talk: Talk, outcome: Any, reason: Any = "I looked at the account.") -> Any:
    [row] = await rows(talk)
    said = {"outcome": outcome, "reason": reason}
    return await talk.engine.approvals.resolve(row.approval_id, said, user=talk.user, via="http")


async def trail(talk: Talk) -> list[tuple[str, str | None, str | None]]:
    entries = AuditTrail(talk.engine.resources.database)
    page = await entries.page(talk.key.app, talk.user, HistoryFilter(), limit=100, before=None)
    return [(entry.action, entry.by, entry.reason) for entry in reversed(page)]


async def test_a_call_whose_process_died_is_listed_before_its_chat_is_opened(
    open_stage: Open, bank: Bank
) -> None:
    talk = await cut_off(open_stage, bank, gated(bank.pay, find=bank.find))
    [listed] = await unknown(talk)
    [row] = await rows(talk)
    assert (listed["state"], listed["tool"], listed["arguments"]) == ("unknown", "pay", {"n": 1})
    assert listed["unknown"] == {
        "key": idempotency_key(row.key),
        "hasLookUp": True,
        "isIdempotent": False,
    }
    assert (await talk.engine.approvals.waiting(user=talk.user, limit=9, after=None))[
        "approvals"
    ] == []


async def test_who_may_decide_a_call_may_resolve_it(open_stage: Open, bank: Bank) -> None:
    tool = gated(bank.pay, approvers=("boss", "deputy"))
    talk = await cut_off(open_stage, bank, tool)
    await unknown(talk)
    [row] = await rows(talk)
    said = {"outcome": "executed", "reason": "I looked at the account."}
    approvals = talk.engine.approvals
    for user, refusal in ((talk.user, NotEntitled), ("somebody", Unknown)):
        with pytest.raises(refusal):
            await approvals.resolve(row.approval_id, said, user=user, via="http")
    resolved = await approvals.resolve(row.approval_id, said, user="deputy", via="http")
    assert resolved["state"] == "executed"


async def test_a_call_runs_again_only_while_its_approvals_count(
    open_stage: Open, bank: Bank
) -> None:
    tool = gated(bank.pay, approvers=Role("finance"), idempotent=True)
    talk = Talk(await open_stage(scripted(PAY, [tool])))
    roles = {"boss": ["finance"], "deputy": ["finance"]}
    talk.engine.ask_roles(lambda user: roles.get(user, []))
    await talk.say("pay")
    await die(talk, bank, paid=False, by="boss")
    await unknown(talk)
    [row] = await rows(talk)
    said = {"outcome": "run-again", "reason": "It is not in the account."}
    approvals = talk.engine.approvals
    roles["boss"] = []
    with pytest.raises(NotIdempotent, match="only 0 may still do so"):
        await approvals.resolve(row.approval_id, said, user="deputy", via="http")
    assert [each.state for each in await rows(talk)] == ["unknown"]
    roles["boss"] = ["finance"]
    resolved = await approvals.resolve(row.approval_id, said, user="deputy", via="http")
    assert resolved["state"] == "executed"


async def test_a_role_that_is_revoked_while_a_call_is_about_to_run_again_refuses_it(
    open_stage: Open, bank: Bank
) -> None:
    roles = {"boss": ["finance"], "deputy": ["finance"]}

    async def policy(_call: GatedCall, user: str) -> bool:
        # The last code of the author before the claim.
        if user == "deputy":
            roles["boss"] = []
        return True

    tool = gated(bank.pay, approvers=Role("finance"), idempotent=True)
    talk = Talk(await open_stage(scripted(PAY, [tool]), policy=policy))
    talk.engine.ask_roles(lambda user: roles.get(user, []))
    await talk.say("pay")
    await die(talk, bank, paid=False, by="boss")
    await unknown(talk)
    [row] = await rows(talk)
    said = {"outcome": "run-again", "reason": "It is not in the account."}
    with pytest.raises(NotIdempotent, match="only 0 may still do so"):
        await talk.engine.approvals.resolve(row.approval_id, said, user="deputy", via="http")
    assert bank.repeats == []
    assert [each.state for each in await rows(talk)] == ["unknown"]


async def test_a_call_that_runs_is_not_unknown(open_stage: Open) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def pay(n: int) -> dict[str, int]:
        """Pay."""
        started.set()
        await go_on.wait()
        return {"paid": n}

    talk = Talk(await open_stage(scripted(PAY, [gated(pay)])))
    await talk.say("pay")
    answering = asyncio.create_task(talk.answer(approved=True))
    await started.wait()
    assert await unknown(talk) == []
    with pytest.raises(AlreadyDecided):
        await resolve(talk, "failed")
    go_on.set()
    turn = await answering
    assert part_of(turn.message, "pay")["output"] == {"paid": 1}


@pytest.mark.parametrize(
    ("outcome", "state", "words"),
    [("executed", "output-available", "took effect"), ("failed", "output-error", "did not take")],
)
async def test_a_chat_that_goes_on_after_that_reads_what_the_person_found(
    open_stage: Open, bank: Bank, prompts: Prompts, outcome: str, state: str, words: str
) -> None:
    talk = await cut_off(open_stage, bank, gated(bank.pay), before_model_callback=prompts)
    await unknown(talk)
    resolved = await resolve(talk, outcome)
    said = {"outcome": outcome, "reason": "I looked at the account."}
    assert (resolved["state"], resolved["resolution"]) == (outcome, said)
    turn = await talk.post_last()
    part = part_of(turn.message, "pay")
    assert part["state"] == state
    assert words in str(prompts.results["pay"])
    assert talk.user not in str(prompts.results["pay"])
    assert bank.repeats == []
    assert (await trail(talk))[-1] == (outcome, talk.user, "I looked at the account.")
    stored = await talk.history()
    [trace] = stored["metadata"]["approvals"].values()
    assert (trace["state"], trace["resolution"]) == (outcome, said)


async def test_what_the_model_was_told_stays_told(
    open_stage: Open, bank: Bank, prompts: Prompts
) -> None:
    talk = await cut_off(open_stage, bank, gated(bank.pay), before_model_callback=prompts)
    turn = await talk.post_last()
    told = part_of(turn.message, "pay")["errorText"]
    assert "outcome is unknown" in told
    await resolve(talk, "executed")
    stored = await talk.history()
    [trace] = stored["metadata"]["approvals"].values()
    assert part_of(stored, "pay")["errorText"] == told
    assert trace["state"] == "executed"
    assert trace["resolution"]["outcome"] == "executed"


async def test_an_outcome_is_resolved_once(open_stage: Open, bank: Bank) -> None:
    talk = await cut_off(open_stage, bank, gated(bank.pay))
    await unknown(talk)
    outcomes = ["executed", "failed"] * 4
    results = await asyncio.gather(
        *(resolve(talk, outcome) for outcome in outcomes), return_exceptions=True
    )
    won = [result for result in results if not isinstance(result, BaseException)]
    assert len(won) == 1
    assert sum(isinstance(result, AlreadyDecided) for result in results) == 7
    assert await unknown(talk) == []
    ends = [action for action, *_ in await trail(talk) if action in ("executed", "failed")]
    assert ends == [won[0]["state"]]


async def test_a_call_that_asks_or_has_run_cannot_be_resolved(open_stage: Open, bank: Bank) -> None:
    talk = Talk(await open_stage(scripted(PAY, [gated(bank.pay)])))
    await talk.say("pay")
    with pytest.raises(AlreadyDecided):
        await resolve(talk, "executed")
    await talk.answer(approved=True)
    with pytest.raises(AlreadyDecided):
        await resolve(talk, "failed")
    assert [row.state for row in await rows(talk)] == ["executed"]


@pytest.mark.parametrize("outcome", ["unknown", "", None, 1, True, ["executed"], {"executed": 1}])
async def test_an_outcome_that_is_none_is_refused(
    open_stage: Open, bank: Bank, outcome: object
) -> None:
    talk = await cut_off(open_stage, bank, gated(bank.pay))
    await unknown(talk)
    with pytest.raises(Malformed):
        await resolve(talk, outcome)
    assert len(await unknown(talk)) == 1


@pytest.mark.parametrize("reason", [None, "", " \n", 5, "x" * 2_001])
async def test_a_resolution_needs_a_reason(open_stage: Open, bank: Bank, reason: object) -> None:
    talk = await cut_off(open_stage, bank, gated(bank.pay))
    await unknown(talk)
    with pytest.raises(Malformed, match="reason"):
        await resolve(talk, "executed", reason)
    assert len(await unknown(talk)) == 1


async def test_an_approval_of_somebody_else_is_unknown(open_stage: Open, bank: Bank) -> None:
    talk = await cut_off(open_stage, bank, gated(bank.pay))
    [row] = await rows(talk)
    said = {"outcome": "executed", "reason": "mine"}
    for approval_id, user in ((row.approval_id, "eve"), ("none", talk.user)):
        with pytest.raises(Unknown, match="no such approval"):
            await talk.engine.approvals.resolve(approval_id, said, user=user, via="http")
    assert (await talk.engine.approvals.unknown_outcomes(user="eve", limit=9, after=None))[
        "approvals"
    ] == []


async def test_only_an_idempotent_tool_runs_again(open_stage: Open, bank: Bank) -> None:
    talk = await cut_off(open_stage, bank, gated(bank.pay))
    await unknown(talk)
    with pytest.raises(NotIdempotent):
        await resolve(talk, "run-again")
    assert bank.repeats == []
    assert len(await unknown(talk)) == 1


async def test_an_idempotent_call_runs_again_with_its_key_and_is_recorded(
    open_stage: Open, bank: Bank
) -> None:
    talk = await cut_off(open_stage, bank, gated(bank.pay, idempotent=True))
    [row] = await rows(talk)
    await unknown(talk)
    resolved = await resolve(talk, "run-again", "The bank knows nothing of it.")
    assert resolved["state"] == "executed"
    assert bank.paid == {idempotency_key(row.key): {"paid": 1}}
    assert bank.repeats == [True]
    assert (await trail(talk))[-2:] == [
        ("executing", talk.user, "The bank knows nothing of it."),
        ("executed", "boss", None),
    ]
    # The chat goes on with the result, and nothing runs a second time.
    turn = await talk.post_last()
    assert part_of(turn.message, "pay")["output"] == {"paid": 1}
    assert bank.repeats == [True]


async def test_a_call_that_fails_again_has_failed(open_stage: Open, bank: Bank) -> None:
    async def pay(n: int) -> dict[str, int]:
        """Pay."""
        raise ToolError(f"The account has no {n} left.")

    talk = await cut_off(open_stage, bank, gated(pay, idempotent=True))
    await unknown(talk)
    assert (await resolve(talk, "run-again"))["state"] == "failed"
    turn = await talk.post_last()
    assert part_of(turn.message, "pay")["errorText"] == "The account has no 1 left."


async def test_a_call_that_asks_again_when_it_runs_again_has_failed(
    open_stage: Open, bank: Bank
) -> None:
    async def pay(n: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pay, after a second question."""
        if tool_context.tool_confirmation and tool_context.tool_confirmation.payload:
            return await bank.pay(n, tool_context)
        tool_context.request_confirmation(hint="To whom?", payload={"payee": "Ada"})
        return {"status": "waiting"}

    talk = await cut_off(open_stage, bank, gated(pay, idempotent=True))
    await unknown(talk)
    assert (await resolve(talk, "run-again"))["state"] == "failed"
    turn = await talk.post_last()
    assert "asked for another approval" in part_of(turn.message, "pay")["errorText"]
    assert bank.paid == {}


async def test_a_call_that_runs_again_at_once_runs_once(open_stage: Open, bank: Bank) -> None:
    talk = await cut_off(open_stage, bank, gated(bank.pay, idempotent=True))
    await unknown(talk)
    results = await asyncio.gather(
        *(resolve(talk, "run-again") for _ in range(5)), return_exceptions=True
    )
    assert sum(isinstance(result, dict) for result in results) == 1
    assert bank.repeats == [True]


async def test_the_policy_is_asked_before_a_call_runs_again(open_stage: Open, bank: Bank) -> None:
    allowed = True

    async def policy(_call: object, _user: str) -> bool | str:
        return allowed or "Payments are closed."

    tool = gated(bank.pay, idempotent=True)
    talk = Talk(await open_stage(scripted(PAY, [tool]), policy=policy))
    await talk.say("pay")
    await die(talk, bank, paid=False)
    await unknown(talk)
    allowed = False
    with pytest.raises(NotIdempotent, match="Payments are closed"):
        await resolve(talk, "run-again")
    assert bank.repeats == []
    assert len(await unknown(talk)) == 1
