"""Requests and decisions in the ledger, on every database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from sluicegate.core.approvals import ApprovalRow, Decision, NewApproval
from sluicegate.core.call_keys import CallKey
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import StoreError
from sluicegate.stores.sql.schema import AUDIT
from tests.stores.builders import CHAT, TTL, approve, claim, key, no, request, yes

if TYPE_CHECKING:
    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.stores.sql.database import Database
    from tests.stores.builders import Clock


async def the_row(ledger: Ledger) -> ApprovalRow:
    (row,) = await ledger.rows(CHAT)
    return row


async def test_a_request_is_stored_with_its_deadline(ledger: Ledger, clock: Clock) -> None:
    clock.ahead = 1_000.0
    await ledger.request([request()])
    row = await the_row(ledger)
    assert (row.key, row.approval_id, row.tool, row.args_hash) == (
        key(),
        "ask-call-1",
        "pay",
        "hash",
    )
    assert row.state == "requested"
    assert row.deadline - row.requested_at == pytest.approx(TTL, abs=1e-3)
    assert (row.answer, row.reason, row.decided_by, row.decided_at) == (None, None, None, None)
    assert (row.owner, row.claimed_at, row.outcome, row.finished_at) == (None, None, None, None)


async def test_a_repeated_request_changes_nothing(ledger: Ledger, clock: Clock) -> None:
    await ledger.request([request()])
    before = await the_row(ledger)
    clock.ahead = 30.0
    await ledger.request([replace(request(), tool="other", args_hash="other"), request()])
    assert await the_row(ledger) == before


async def test_rows_come_oldest_first_and_only_of_their_chat(ledger: Ledger, clock: Clock) -> None:
    await ledger.request([request("z")])
    clock.ahead = 1.0
    await ledger.request([request("b"), request("a")])
    await ledger.request([request("x", ChatKey("app", "bob", "chat-1"))])
    assert [row.key.call for row in await ledger.rows(CHAT)] == ["z", "a", "b"]


async def test_a_decision_is_stored_with_person_time_and_reason(
    ledger: Ledger, clock: Clock
) -> None:
    await ledger.request([request()])
    clock.ahead = 10.0
    (row,) = await ledger.record_decisions([no(reason="too much")], by="ann")
    assert row == await the_row(ledger)
    assert (row.state, row.answer, row.reason, row.decided_by) == (
        "denied",
        False,
        "too much",
        "ann",
    )
    assert row.decided_at is not None
    assert row.decided_at - row.requested_at >= 10.0 - 1e-3


async def test_a_decision_stores_an_unknown_request(ledger: Ledger) -> None:
    (row,) = await ledger.record_decisions([yes()], by="ann")
    assert (row.state, row.tool, row.answer) == ("approved", "pay", True)
    assert row.deadline - row.requested_at == pytest.approx(TTL, abs=1e-3)


async def test_rows_are_returned_in_the_order_of_the_decisions(ledger: Ledger) -> None:
    rows = await ledger.record_decisions([yes("b"), no("a"), yes("c")], by="ann")
    assert [(row.key.call, row.state) for row in rows] == [
        ("b", "approved"),
        ("a", "denied"),
        ("c", "approved"),
    ]


async def test_a_repeated_decision_changes_nothing(ledger: Ledger) -> None:
    (first,) = await ledger.record_decisions([yes(reason="fine")], by="ann")
    (again, new) = await ledger.record_decisions([yes(reason="again"), no("call-2")], by="eve")
    assert again == first
    assert new.state == "denied"


async def test_with_a_contradiction_no_decision_is_recorded(ledger: Ledger) -> None:
    await ledger.request([request("a"), request("b")])
    (first,) = await ledger.record_decisions([yes("a")], by="ann")
    rows = await ledger.record_decisions([no("b"), no("a")], by="eve")
    assert rows[1] == first
    assert (rows[0].state, rows[0].answer) == ("requested", None)


@pytest.mark.parametrize("is_approved_before", [False, True])
async def test_with_a_superseded_request_no_decision_is_recorded(
    ledger: Ledger, *, is_approved_before: bool
) -> None:
    await ledger.request([request("a"), request("b")])
    if is_approved_before:
        await approve(ledger, "a")
    await ledger.supersede([key("a")])
    rows = await ledger.record_decisions([yes("a"), yes("b")], by="ann")
    assert [row.state for row in rows] == ["superseded", "requested"]


async def test_only_a_pending_request_is_withdrawn(ledger: Ledger) -> None:
    await ledger.request([request("a"), request("b")])
    await approve(ledger, "a")
    await ledger.withdraw([key("a"), key("b"), key("none")])
    states = {row.key.call: row.state for row in await ledger.rows(CHAT)}
    assert states == {"a": "approved", "b": "superseded"}


async def test_two_decisions_on_one_request_must_be_equal(ledger: Ledger) -> None:
    with pytest.raises(StoreError):
        await ledger.record_decisions([yes(), no()], by="ann")
    assert await ledger.rows(CHAT) == []
    rows = await ledger.record_decisions([yes(), yes()], by="ann")
    assert [row.state for row in rows] == ["approved", "approved"]


async def test_a_decision_on_other_arguments_is_refused(ledger: Ledger) -> None:
    await ledger.request([request("a"), request("b")])
    other = Decision(replace(request("a"), args_hash="other"), approved=True, reason=None)
    with pytest.raises(StoreError):
        await ledger.record_decisions([yes("b"), other], by="ann")
    assert [row.state for row in await ledger.rows(CHAT)] == ["requested", "requested"]


async def test_the_first_of_twenty_decisions_wins(ledger: Ledger) -> None:
    decisions = [yes(reason=str(n)) if n % 2 else no(reason=str(n)) for n in range(20)]
    answers = await asyncio.gather(
        *(ledger.record_decisions([decision], by=f"p{n}") for n, decision in enumerate(decisions))
    )
    assert {row for (row,) in answers} == {await the_row(ledger)}


@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_at_the_deadline_is_stored_without_effect(
    ledger: Ledger, clock: Clock, *, approved: bool
) -> None:
    await ledger.request([request("late"), request("in-time", ttl=TTL + 3600)])
    clock.ahead = TTL + 1
    late = Decision(request("late"), approved=approved, reason="sorry")
    rows = await ledger.record_decisions([late, yes("in-time")], by="ann")
    assert [(row.state, row.answer) for row in rows] == [("expired", approved), ("approved", True)]
    assert (rows[0].reason, rows[0].decided_by) == ("sorry", "ann")


async def test_a_request_that_expired_undecided_stays_expired(ledger: Ledger, clock: Clock) -> None:
    await ledger.request([request()])
    clock.ahead = TTL + 1
    (closed,) = await ledger.expire(CHAT)
    assert (closed.state, closed.answer) == ("expired", None)
    assert await ledger.record_decisions([yes()], by="ann") == [closed]


@pytest.mark.parametrize("approved", [True, False])
async def test_a_decision_is_recorded_until_the_agent_learns_of_the_expiry(
    ledger: Ledger, clock: Clock, *, approved: bool
) -> None:
    await ledger.request([request("first", ttl=1.0), request("second", ttl=1.0)])
    clock.ahead = TTL + 1
    assert await ledger.expire_due(CHAT.app, limit=10) == 2
    rows = await ledger.rows(CHAT)
    assert [(row.state, row.is_expiry_unreported) for row in rows] == [("expired", True)] * 2
    decide = yes if approved else no
    (late,) = await ledger.record_decisions([decide("first")], by="ann")
    assert (late.state, late.answer, late.decided_by) == ("expired", approved, "ann")
    assert not late.is_expiry_unreported
    assert await ledger.expire(CHAT) == []
    (closed,) = await ledger.record_decisions([decide("second")], by="ann")
    assert (closed.state, closed.answer, closed.decided_by) == ("expired", None, None)
    assert not closed.is_expiry_unreported


async def test_only_requests_after_their_deadline_expire(ledger: Ledger, clock: Clock) -> None:
    other = ChatKey("app", "ann", "chat-2")
    await ledger.request([request("late"), request("answered"), request("late", other)])
    await approve(ledger, "answered")
    assert await ledger.expire(CHAT) == []
    clock.ahead = TTL + 1
    await ledger.request([request("new")])
    assert [row.key for row in await ledger.expire(CHAT)] == [key("late")]
    assert await ledger.expire(CHAT) == []
    states = {row.key.call: row.state for row in await ledger.rows(CHAT)}
    assert states == {"late": "expired", "answered": "approved", "new": "requested"}
    assert [row.state for row in await ledger.rows(other)] == ["requested"]


async def test_due_requests_of_any_chat_expire_once_although_several_processes_look(
    ledger: Ledger, database: Database, clock: Clock
) -> None:
    chats = [CHAT, CHAT._replace(chat="other"), CHAT._replace(user="bob")]
    for number, chat in enumerate(chats):
        await ledger.request([request("due", chat, ttl=10.0 + number)])
    await ledger.request([request("later", ttl=100.0)])
    assert await ledger.expire_due(CHAT.app, limit=2) == 0
    clock.ahead = 50.0
    assert await ledger.expire_due("another app", limit=2) == 0
    assert await ledger.expire_due(CHAT.app, limit=2) == 2
    states = [[row.state for row in await ledger.rows(chat)] for chat in chats]
    assert states == [["expired", "requested"], ["expired"], ["requested"]]
    await asyncio.gather(*(ledger.expire_due(CHAT.app, limit=2) for _ in range(3)))
    assert await ledger.expire_due(CHAT.app, limit=2) == 0
    lines = select(AUDIT.c.user, AUDIT.c.chat).where(AUDIT.c.action == "expired")
    found = await database.read(lambda connection: [*connection.execute(lines)])
    assert sorted(found) == sorted((chat.user, chat.chat) for chat in chats)


async def test_superseding_returns_known_rows_in_the_order_of_the_keys(ledger: Ledger) -> None:
    await ledger.request([request("open"), request("said-no")])
    await ledger.record_decisions([no("said-no")], by="ann")
    await claim(ledger, "runs")
    rows = await ledger.supersede([key(call) for call in ("runs", "none", "said-no", "open")])
    assert [(row.key.call, row.state) for row in rows] == [
        ("runs", "executing"),
        ("said-no", "denied"),
        ("open", "superseded"),
    ]


async def test_pending_requests_are_counted_by_chat(ledger: Ledger, clock: Clock) -> None:
    second = ChatKey("app", "ann", "chat-2")
    await ledger.request([request("a"), request("b"), request("c"), request("x", second)])
    await ledger.request([request("y", ChatKey("app", "bob", "chat-1"))])
    await ledger.request([request("z", ChatKey("other", "ann", "chat-1"))])
    await approve(ledger, "a")
    assert await ledger.count_pending("app", "ann") == {"chat-1": 2, "chat-2": 1}
    clock.ahead = TTL + 1
    await ledger.request([request("d")])
    assert await ledger.count_pending("app", "ann") == {"chat-1": 1}
    assert await ledger.count_pending("app", "nobody") == {}


async def test_empty_calls_change_nothing(ledger: Ledger) -> None:
    await ledger.request([])
    assert await ledger.record_decisions([], by="ann") == []
    await ledger.withdraw([])
    assert await ledger.supersede([]) == []
    assert await ledger.rows(CHAT) == []


async def test_long_ids_and_any_text_are_stored_unchanged(ledger: Ledger) -> None:
    long = CallKey("a" * 128, "u" * 128, "c" * 128, "i" * 128, "ü" * 128)
    text = "naïve 日本語 😀 '; DROP TABLE \\ % _ \n"
    new = NewApproval(key=long, approval_id="p" * 128, tool=text, args_hash="h" * 64, ttl=TTL)
    (row,) = await ledger.record_decisions(
        [Decision(new, approved=False, reason=text)], by="u" * 128
    )
    assert (row.key, row.tool, row.reason, row.decided_by) == (long, text, text, "u" * 128)
    assert await ledger.rows(long.chat_key) == [row]


async def test_a_text_that_cannot_be_stored_changes_nothing(ledger: Ledger) -> None:
    await ledger.request([request()])
    with pytest.raises(StoreError):
        await ledger.record_decisions([yes(reason="\ud800")], by="ann")
    assert (await the_row(ledger)).state == "requested"
