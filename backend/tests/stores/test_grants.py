"""Grants on every database (A8)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sluicegate.core.approvals import Grant
from sluicegate.core.keys import ChatKey
from sluicegate.stores.approvals.audit import AuditFilter, read_audit
from tests.stores.builders import CHAT, TTL, key, no, request, yes

if TYPE_CHECKING:
    from sluicegate.stores.approvals.grants import Grants
    from sluicegate.stores.approvals.ledger import Ledger
    from tests.stores.builders import Clock

OTHER = ChatKey("app", "ann", "chat-2")


async def remember(ledger: Ledger, call: str = "call-1") -> None:
    await ledger.record_decisions([replace(yes(call), is_remembered=True)], by="ann", via="sse")


async def test_an_approval_can_give_a_grant(ledger: Ledger, grants: Grants) -> None:
    await remember(ledger)
    [row] = await ledger.rows(CHAT)
    assert row.decided_at is not None
    assert await grants.all(CHAT) == [Grant("pay", "ask-call-1", "ann", row.decided_at)]
    assert await grants.all(OTHER) == []


async def test_the_first_grant_of_a_tool_stays(ledger: Ledger, grants: Grants) -> None:
    await remember(ledger)
    await remember(ledger, "call-2")
    assert [grant.approval_id for grant in await grants.all(CHAT)] == ["ask-call-1"]


async def test_only_an_approval_in_time_gives_a_grant(
    ledger: Ledger, grants: Grants, clock: Clock
) -> None:
    await ledger.record_decisions([replace(no("no"), is_remembered=True)], by="ann")
    await ledger.record_decisions([yes("plain")], by="ann")
    await ledger.request([request("late")])
    clock.ahead = TTL + 1
    await remember(ledger, "late")
    assert await grants.all(CHAT) == []


async def test_a_call_of_a_tool_with_a_grant_is_approved(ledger: Ledger) -> None:
    await remember(ledger)
    row = await ledger.approve_by_grant(request("call-2"))
    assert row is not None
    assert (row.state, row.answer, row.decided_by) == ("approved", True, "ann")
    assert (row.grant_id, row.via, row.is_automatic) == ("ask-call-1", "remembered", True)
    assert await ledger.claim(key("call-2"), owner="me", args_hash="hash") is None
    assert await ledger.approve_by_grant(request("call-2")) == (await ledger.rows(CHAT))[-1]


@pytest.mark.parametrize("case", ["another tool", "another chat", "another user"])
async def test_any_other_call_needs_an_approval(ledger: Ledger, case: str) -> None:
    await remember(ledger)
    new = {
        "another tool": replace(request("call-2"), tool="ask"),
        "another chat": request("call-2", OTHER),
        "another user": request("call-2", ChatKey("app", "bob", "chat-1")),
    }[case]
    assert await ledger.approve_by_grant(new) is None
    assert await ledger.rows(new.key.chat_key) == [
        row for row in await ledger.rows(CHAT) if new.key.chat_key == CHAT
    ]


async def test_a_call_with_an_approval_request_is_not_approved_by_a_grant(ledger: Ledger) -> None:
    await ledger.request([request("call-2")])
    await remember(ledger)
    assert await ledger.approve_by_grant(request("call-2")) is None
    [asked] = [row for row in await ledger.rows(CHAT) if row.key.call == "call-2"]
    assert asked.state == "requested"


async def test_a_revoked_tool_needs_approvals_again(ledger: Ledger, grants: Grants) -> None:
    await remember(ledger)
    assert await grants.revoke(CHAT, "pay", by="ann", via="http")
    assert await grants.all(CHAT) == []
    assert await ledger.approve_by_grant(request("call-2")) is None
    assert not await grants.revoke(CHAT, "pay", by="ann")


async def test_a_revocation_refuses_only_calls_that_have_not_begun(
    ledger: Ledger, grants: Grants
) -> None:
    await remember(ledger)
    for call in ("waits", "runs"):
        await ledger.approve_by_grant(request(call))
    await ledger.claim(key("runs"), owner="me", args_hash="hash")
    await grants.revoke(CHAT, "pay", by="ann")
    states = {row.key.call: (row.state, row.outcome) for row in await ledger.rows(CHAT)}
    assert states["call-1"] == ("approved", None)
    assert states["waits"] == ("refused", {"error": "the remembered approval was taken back."})
    assert states["runs"] == ("executing", None)
    # A run that continues after a crash finds its row and needs no approval.
    row = await ledger.approve_by_grant(request("waits"))
    assert row is not None
    assert row.state == "refused"


async def test_a_deleted_chat_has_no_grants(ledger: Ledger, grants: Grants) -> None:
    await remember(ledger)
    await grants.delete_all(CHAT)
    assert await grants.all(CHAT) == []


async def test_no_call_is_approved_during_a_revocation(ledger: Ledger, grants: Grants) -> None:
    await remember(ledger)
    calls = [f"n-{number}" for number in range(12)]
    approving = [ledger.approve_by_grant(request(call)) for call in calls]
    approving.insert(6, grants.revoke(CHAT, "pay", by="ann"))  # type: ignore[arg-type]
    await asyncio.gather(*approving)
    states = {row.state for row in await ledger.rows(CHAT) if row.key.call in calls}
    assert states <= {"refused"}


async def test_grants_and_revocations_are_audited(
    ledger: Ledger, grants: Grants, database_url: str
) -> None:
    await remember(ledger)
    await ledger.approve_by_grant(request("call-2"))
    await grants.revoke(CHAT, "pay", by="ann", via="http")
    trail = [
        (entry.action, entry.approval_id, entry.by, entry.via)
        async for entry in read_audit(database_url, AuditFilter())
    ]
    assert trail == [
        ("requested", "ask-call-1", None, None),
        ("approved", "ask-call-1", "ann", "sse"),
        ("granted", "ask-call-1", "ann", "sse"),
        ("requested", "ask-call-2", None, None),
        ("approved", "ask-call-2", "ann", "remembered"),
        ("revoked", "ask-call-1", "ann", "http"),
        ("refused", "ask-call-2", "ann", "remembered"),
    ]
