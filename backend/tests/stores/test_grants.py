"""Grants on every database (A8)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.core.approvals import Grant, GrantScope, NewApproval
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.core.tool_definition_changes import define
from sluicegate.stores.approvals.audit_reading import AuditFilter, read_audit
from tests.stores.builders import CHAT, TTL, key, request, yes

if TYPE_CHECKING:
    from sluicegate.stores.approvals.grants import Grants
    from sluicegate.stores.approvals.ledger import Ledger
    from tests.stores.builders import Clock

OTHER = ChatKey("app", "ann", "chat-2")
PAY = define("pay", "Pay.", {"type": "object"})
CHANGED = define("pay", "Pay twice.", {"type": "object"})


def call(name: str, chat: ChatKey = CHAT, **arguments: Any) -> NewApproval:
    """A call of the tool pay of the agent shop."""
    new = request(name, chat)
    return replace(new, agent="shop", definition=PAY, arguments=arguments)


async def remember(
    ledger: Ledger, name: str = "call-1", *, ttl: float = TTL, **where: Any
) -> Grant | None:
    """Approve a call and claim it with the grant of its decision, if the claim wins."""
    decision = replace(yes(name), request=call(name, **where), remember=GrantScope(ttl))
    [row] = await ledger.record_decisions([decision], by="ann", via="sse")
    given = Grant(
        tool="pay",
        agent="shop",
        definition=PAY,
        where=where,
        approval_id=row.approval_id,
        granted_by="ann",
        granted_at=row.decided_at or 0.0,
        expires_at=(row.decided_at or 0.0) + ttl,
    )
    lost = await ledger.claim(key(name), owner="me", args_hash="hash", grant=given)
    return given if lost is None else None


async def test_a_claim_writes_the_grant_of_its_decision(ledger: Ledger, grants: Grants) -> None:
    given = await remember(ledger, recipient="bob")
    assert given is not None
    assert await grants.all(CHAT) == [given]
    assert await grants.all(OTHER) == []


@pytest.mark.parametrize("closed_by", ["a message", "a policy", "the deadline", "another process"])
async def test_a_decision_that_does_not_take_effect_leaves_no_grant(
    ledger: Ledger, grants: Grants, clock: Clock, closed_by: str
) -> None:
    await ledger.request([call("call-1")])
    if closed_by == "the deadline":
        clock.ahead = TTL + 1
        assert await remember(ledger) is None
        return
    decision = replace(yes(), request=call("call-1"), remember=GrantScope(TTL))
    await ledger.record_decisions([decision], by="ann")
    match closed_by:
        case "a message":
            await ledger.supersede([key()])
        case "a policy":
            await ledger.refuse(key(), "no.")
        case _:
            await ledger.claim(key(), owner="another", args_hash="hash")
    assert await remember(ledger) is None
    assert await grants.all(CHAT) == []


async def test_the_newest_decision_of_a_scope_replaces_the_one_before(
    ledger: Ledger, grants: Grants
) -> None:
    await remember(ledger, n=1)
    await remember(ledger, "call-2", n=2)
    newest = await remember(ledger, "call-3", ttl=60.0, n=1)
    assert newest is not None
    found = {grant.where["n"]: grant for grant in await grants.all(CHAT)}
    assert found.keys() == {1, 2}
    assert found[1] == newest


async def test_an_expired_grant_approves_nothing_and_is_deleted(
    ledger: Ledger, grants: Grants, clock: Clock
) -> None:
    await remember(ledger, ttl=60.0)
    clock.ahead = 61.0
    found = await ledger.approve_by_grant(call("call-2"))
    assert (found.row, found.definition) == (None, None)
    assert await grants.all(CHAT) == []
    clock.ahead = 0.0
    assert len(await grants.all(CHAT)) == 1
    clock.ahead = 61.0
    await remember(ledger, "call-3", n=3)
    clock.ahead = 0.0
    assert [grant.where for grant in await grants.all(CHAT)] == [{"n": 3}]


async def test_a_call_of_a_tool_with_a_grant_is_approved(ledger: Ledger) -> None:
    given = await remember(ledger)
    assert given is not None
    row = (await ledger.approve_by_grant(call("call-2"))).row
    assert row is not None
    assert (row.state, row.answer, row.decided_by) == ("approved", True, "ann")
    assert (row.grant_id, row.via, row.is_automatic) == (given.id, "remembered", True)
    assert await ledger.claim(key("call-2"), owner="me", args_hash="hash") is None
    again = (await ledger.approve_by_grant(call("call-2"))).row
    assert again == (await ledger.rows(CHAT))[-1]


@pytest.mark.parametrize(
    "other",
    [
        replace(call("call-2", n=1), tool="ask"),
        replace(call("call-2", n=1), agent="shop/billing"),
        replace(call("call-2", n=1), definition=CHANGED),
        replace(call("call-2", n=1), definition=None),
        call("call-2", OTHER, n=1),
        call("call-2", ChatKey("app", "bob", "chat-1"), n=1),
        call("call-2", n=2),
        call("call-2", n=True),
        call("call-2", n="1"),
        call("call-2", m=1),
    ],
    ids=lambda new: f"{new.tool} {new.agent} {new.arguments}",
)
async def test_any_other_call_needs_an_approval(ledger: Ledger, other: NewApproval) -> None:
    await remember(ledger, n=1)
    assert (await ledger.approve_by_grant(other)).row is None
    assert other.key not in [row.key for row in await ledger.rows(other.key.chat_key)]


async def test_equal_numbers_are_the_same_value(ledger: Ledger) -> None:
    await remember(ledger, n=1)
    assert (await ledger.approve_by_grant(call("call-2", n=1.0, more="x"))).row is not None


async def test_the_definition_of_the_newest_grant_is_returned(ledger: Ledger) -> None:
    await remember(ledger, n=1)
    found = await ledger.approve_by_grant(replace(call("call-2", n=1), definition=CHANGED))
    assert (found.row, found.definition) == (None, PAY)
    elsewhere = await ledger.approve_by_grant(replace(call("call-2", n=1), agent="other"))
    assert elsewhere.definition is None


async def test_a_call_with_an_approval_request_is_not_approved_by_a_grant(ledger: Ledger) -> None:
    await ledger.request([call("call-2")])
    await remember(ledger)
    assert (await ledger.approve_by_grant(call("call-2"))).row is None
    [asked] = [row for row in await ledger.rows(CHAT) if row.key.call == "call-2"]
    assert asked.state == "requested"


async def test_a_revoked_grant_approves_nothing(ledger: Ledger, grants: Grants) -> None:
    one, other = await remember(ledger, n=1), await remember(ledger, "call-2", n=2)
    assert one is not None
    assert await grants.revoke(CHAT, one.id, by="ann", via="http")
    assert await grants.all(CHAT) == [other]
    assert (await ledger.approve_by_grant(call("call-3", n=1))).row is None
    assert (await ledger.approve_by_grant(call("call-4", n=2))).row is not None
    assert not await grants.revoke(CHAT, one.id, by="ann")
    assert not await grants.revoke(OTHER, "pay", by="ann")


async def test_a_revocation_refuses_only_calls_that_have_not_begun(
    ledger: Ledger, grants: Grants
) -> None:
    one, other = await remember(ledger, n=1), await remember(ledger, "call-2", n=2)
    assert one is not None
    assert other is not None
    for name, number in (("waits", 1), ("runs", 1), ("other", 2)):
        await ledger.approve_by_grant(call(name, n=number))
    await ledger.claim(key("runs"), owner="me", args_hash="hash")
    await grants.revoke(CHAT, one.id, by="ann")
    states = {row.key.call: (row.state, row.outcome) for row in await ledger.rows(CHAT)}
    assert states["call-1"] == ("executing", None)
    assert states["waits"] == ("refused", {"error": "the remembered approval was taken back."})
    assert states["runs"] == ("executing", None)
    assert states["other"] == ("approved", None)
    # A run that continues after a crash finds its row and needs no approval.
    row = (await ledger.approve_by_grant(call("waits", n=1))).row
    assert row is not None
    assert row.state == "refused"


async def test_a_deleted_chat_has_no_grants(ledger: Ledger, grants: Grants) -> None:
    await remember(ledger)
    await grants.delete_all(CHAT)
    assert await grants.all(CHAT) == []


async def test_no_call_is_approved_during_a_revocation(ledger: Ledger, grants: Grants) -> None:
    given = await remember(ledger)
    assert given is not None
    calls = [f"n-{number}" for number in range(12)]
    approving = [ledger.approve_by_grant(call(name)) for name in calls]
    approving.insert(6, grants.revoke(CHAT, given.id, by="ann"))  # type: ignore[arg-type]
    await asyncio.gather(*approving)
    states = {row.state for row in await ledger.rows(CHAT) if row.key.call in calls}
    assert states <= {"refused"}


async def test_grants_and_revocations_are_audited(
    ledger: Ledger, grants: Grants, database_url: str
) -> None:
    given = await remember(ledger)
    assert given is not None
    await ledger.approve_by_grant(call("call-2"))
    await grants.revoke(CHAT, given.id, by="ann", via="http")
    trail = [
        (entry.action, entry.approval_id, entry.by, entry.via)
        async for entry in read_audit(database_url, AuditFilter())
    ]
    assert trail == [
        ("requested", "ask-call-1", None, None),
        ("approved", "ask-call-1", "ann", "sse"),
        ("executing", "ask-call-1", "ann", "sse"),
        ("granted", "ask-call-1", "ann", "sse"),
        ("requested", "ask-call-2", None, None),
        ("approved", "ask-call-2", "ann", "remembered"),
        ("revoked", "ask-call-1", "ann", "http"),
        ("refused", "ask-call-2", "ann", "remembered"),
    ]
