"""Claims and outcomes in the ledger, on every database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

from sluicegate.core.approvals import ApprovalRow, Decision
from sluicegate.core.call_keys import idempotency_key
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import StoreError
from sluicegate.stores.approvals.ledger import Ledger
from tests.stores.builders import CHAT, approve, claim, key, open_database, request, yes

if TYPE_CHECKING:
    from pydantic import JsonValue

    from sluicegate.stores.sql.database import Database


async def the_row(ledger: Ledger) -> ApprovalRow:
    (row,) = await ledger.rows(CHAT)
    return row


async def test_a_claim_is_stored_with_owner_and_time(ledger: Ledger) -> None:
    await claim(ledger, owner="me")
    row = await the_row(ledger)
    assert (row.state, row.owner) == ("executing", "me")
    assert row.claimed_at is not None
    assert row.decided_at is not None
    assert row.claimed_at >= row.decided_at


async def test_a_lost_claim_returns_the_row_as_it_is(ledger: Ledger) -> None:
    await claim(ledger, owner="me")
    row = await ledger.claim(key(), owner="you", args_hash="hash")
    assert row == await the_row(ledger)
    assert row is not None
    assert row.owner == "me"


async def test_other_arguments_never_win_a_claim(ledger: Ledger) -> None:
    await approve(ledger)
    row = await ledger.claim(key(), owner="me", args_hash="other")
    assert row is not None
    assert (row.state, row.args_hash, row.owner) == ("approved", "hash", None)


async def test_a_claim_without_a_request_is_an_error(ledger: Ledger) -> None:
    with pytest.raises(StoreError):
        await ledger.claim(key(), owner="me", args_hash="hash")


@pytest.mark.parametrize("contest", ["claim", "finish"])
async def test_one_of_twenty_contenders_wins(ledger: Ledger, contest: str) -> None:
    await approve(ledger)
    won: list[bool]
    if contest == "claim":
        attempts = (ledger.claim(key(), owner=f"o{n}", args_hash="hash") for n in range(20))
        won = [row is None for row in await asyncio.gather(*attempts)]
    else:
        await claim(ledger, owner="me")
        stored = await asyncio.gather(
            *(
                ledger.store_outcome(key(), owner="me", state="executed", outcome=n)
                for n in range(20)
            )
        )
        won = [row is not None for row in stored]
        assert (await the_row(ledger)).outcome == won.index(True)
    assert won.count(True) == 1


async def test_only_the_owner_of_a_claim_stores_its_outcome(ledger: Ledger) -> None:
    await claim(ledger, owner="me")
    assert not await ledger.store_outcome(key(), owner="you", state="executed", outcome=1)
    assert await ledger.store_outcome(key(), owner="me", state="failed", outcome={"error": "no"})
    row = await the_row(ledger)
    assert (row.state, row.owner, row.outcome) == ("failed", "me", {"error": "no"})


@pytest.mark.parametrize(
    ("owner", "state", "is_stored"),
    [
        ("me", "executed", True),
        ("me", "failed", True),
        ("you", "executed", True),
        ("you", "failed", False),
    ],
)
async def test_who_may_resolve_an_unknown_call(
    ledger: Ledger, owner: str, state: Literal["executed", "failed"], *, is_stored: bool
) -> None:
    await claim(ledger, owner="me")
    await ledger.mark_unknown(CHAT, owners_alive=())
    stored = await ledger.store_outcome(key(), owner=owner, state=state, outcome=1)
    row = await the_row(ledger)
    assert stored == (row if is_stored else None)
    assert (row.state, row.owner) == (state if is_stored else "unknown", "me")


async def test_only_calls_of_dead_owners_in_this_chat_become_unknown(ledger: Ledger) -> None:
    other = ChatKey("app", "ann", "chat-2")
    await claim(ledger, "a", owner="dead")
    await claim(ledger, "b", owner="alive")
    await approve(ledger, "c")
    await ledger.record_decisions(
        [Decision(request("d", other), approved=True, reason=None)], by="ann"
    )
    await ledger.claim(key("d", other), owner="dead", args_hash="hash")
    assert await ledger.mark_unknown(CHAT, owners_alive={"dead", "alive"}) == []
    (gone,) = await ledger.mark_unknown(CHAT, owners_alive={"alive"})
    assert (gone.key.call, gone.state, gone.owner) == ("a", "unknown", "dead")
    assert await ledger.mark_unknown(CHAT, owners_alive={"alive"}) == []
    assert [row.state for row in await ledger.rows(other)] == ["executing"]


async def test_a_refusal_is_stored_with_its_reason(ledger: Ledger) -> None:
    await ledger.record_decisions([yes(reason="please")], by="ann")
    assert await ledger.refuse(key(), "over the limit")
    row = await the_row(ledger)
    assert (row.state, row.answer, row.reason) == ("refused", True, "please")
    assert row.outcome == {"error": "over the limit"}


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        False,
        0,
        "",
        {"z": 1, "a": {"y": [1.5, None, "😀\0\ud800"]}},
        "x" * 1024 * 1024,
    ],
    ids=["null", "false", "zero", "empty", "nested", "1 MiB"],
)
async def test_an_outcome_is_stored_unchanged(ledger: Ledger, outcome: JsonValue) -> None:
    await claim(ledger)
    assert await ledger.store_outcome(key(), owner="me", state="executed", outcome=outcome)
    found = (await the_row(ledger)).outcome
    assert found == outcome
    assert type(found) is type(outcome)
    if isinstance(outcome, dict) and isinstance(found, dict):
        assert list(found) == list(outcome)


@pytest.mark.parametrize("outcome", [float("nan"), {"a": {1, 2}}])
async def test_an_outcome_that_is_not_json_is_refused(ledger: Ledger, outcome: JsonValue) -> None:
    await claim(ledger)
    with pytest.raises(StoreError):
        await ledger.store_outcome(key(), owner="me", state="executed", outcome=outcome)
    assert (await the_row(ledger)).state == "executing"


async def test_an_outcome_is_stored_when_the_caller_is_cancelled(
    ledger: Ledger, database: Database, database_url: str
) -> None:
    await claim(ledger)
    caller = asyncio.create_task(
        ledger.store_outcome(key(), owner="me", state="executed", outcome="paid")
    )
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    await ledger.request([request("next")])
    # A database that closes waits for it.
    await database.close()
    again = await open_database(database_url)
    try:
        assert [row.outcome for row in await Ledger(again).rows(CHAT)] == ["paid", None]
    finally:
        await again.close()


async def test_only_the_owner_of_a_claim_releases_it_for_another_question(ledger: Ledger) -> None:
    await claim(ledger, owner="me")
    assert not await ledger.ask_again(key(), owner="other")
    assert await ledger.ask_again(key(), owner="me")
    assert not await ledger.store_outcome(key(), owner="me", state="executed", outcome="late")
    assert (await the_row(ledger)).state == "asked_again"


async def test_a_call_that_asked_again_is_claimed_only_until_its_next_question_is_recorded(
    ledger: Ledger,
) -> None:
    await claim(ledger, owner="me")
    await ledger.ask_again(key(), owner="me")
    assert await ledger.claim(key(), owner="next", args_hash="hash") is None
    await ledger.ask_again(key(), owner="next")
    second = key().with_request_number(2)
    await ledger.request([replace(request(), key=second, approval_id="second")])
    lost = await ledger.claim(key(), owner="late", args_hash="hash")
    assert lost is not None
    assert lost.state == "asked_again"
    first, last = await ledger.rows(CHAT)
    assert (first.owner, last.key, last.state) == ("next", second, "requested")


def test_the_questions_of_a_call_have_keys_of_their_own_and_one_idempotency_key() -> None:
    keys = [key().with_request_number(number) for number in (1, 2, 12)]
    assert [each.request_number for each in keys] == [1, 2, 12]
    assert {each.call_id for each in keys} == {key().call}
    assert len(set(keys)) == 3
    assert {idempotency_key(each) for each in keys} == {idempotency_key(key())}
    assert keys[2].with_request_number(1) == key()
