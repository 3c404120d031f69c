"""Previews in the ledger: what a claim and a decision must have seen."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.core.approval_previews import digest_of, failed_preview
from sluicegate.core.approvals import ClaimBasis
from tests.stores.builders import CHAT, key, request, yes

if TYPE_CHECKING:
    from sluicegate.core.approvals import ApprovalRow
    from sluicegate.stores.approvals.ledger import Ledger

SHOWN: dict[str, Any] = {"kind": "text", "text": "two files"}
OTHER: dict[str, Any] = {"kind": "text", "text": "three files"}


async def ask(ledger: Ledger, preview: dict[str, Any] = SHOWN) -> ApprovalRow:
    await ledger.request([replace(request(), arguments={"n": 1}, preview=preview)])
    return await row_of(ledger)


async def row_of(ledger: Ledger) -> ApprovalRow:
    [row] = await ledger.rows(CHAT)
    return row


async def test_a_claim_wins_only_with_the_preview_that_was_approved(ledger: Ledger) -> None:
    await ask(ledger)
    await ledger.record_decisions([yes()], by="ann")
    for preview in (None, digest_of(OTHER)):
        basis = ClaimBasis(preview=preview)
        lost = await ledger.claim(key(), owner="me", args_hash="hash", basis=basis)
        assert lost is not None
        assert lost.state == "approved"
    basis = ClaimBasis(preview=digest_of(SHOWN))
    assert await ledger.claim(key(), owner="me", args_hash="hash", basis=basis) is None


async def test_an_edit_waits_for_a_yes_that_has_seen_it(ledger: Ledger) -> None:
    before = await ask(ledger)
    edit = replace(yes(), edits={"n": 2})
    stored = await ledger.personal.propose_edit(edit, OTHER, by="ann", via="http")
    row = await row_of(ledger)
    assert stored
    assert (row.state, row.edits, row.preview) == ("requested", {"n": 2}, OTHER)
    for digest in (None, before.digest):
        await ledger.record_decisions([replace(yes(), digest=digest)], by="ann")
        assert (await row_of(ledger)).answer is None
    # An edit of what another tab has changed is refused too.
    assert not await ledger.personal.propose_edit(edit, SHOWN, by="ann", via="http")
    await ledger.record_decisions([replace(yes(), digest=row.digest)], by="ann")
    row = await row_of(ledger)
    assert (row.state, row.edits, row.preview) == ("approved", {"n": 2}, OTHER)
    assert not await ledger.personal.propose_edit(
        replace(edit, digest=row.digest), SHOWN, by="ann", via="http"
    )


async def test_a_yes_to_a_preview_that_has_failed_is_not_recorded(ledger: Ledger) -> None:
    await ask(ledger, failed_preview("The preview failed."))
    await ledger.record_decisions([yes()], by="ann")
    assert (await row_of(ledger)).state == "requested"


@pytest.mark.parametrize("number", range(3))
async def test_a_yes_and_an_edit_at_once_never_approve_what_was_not_shown(
    ledger: Ledger, number: int
) -> None:
    row = await ask(ledger)
    edit, approval = replace(yes(), edits={"n": 2}), replace(yes(), digest=row.digest)
    propose = ledger.personal.propose_edit(edit, OTHER, by="ann", via="http")
    approve = ledger.record_decisions([approval], by="ann")
    await asyncio.gather(*([propose, approve] if number % 2 else [approve, propose]))
    row = await row_of(ledger)
    if row.state == "approved":
        assert (row.edits, row.preview) == (None, SHOWN)
    else:
        assert (row.state, row.edits, row.preview) == ("requested", {"n": 2}, OTHER)


async def test_details_of_a_deleted_chat_include_the_preview(ledger: Ledger) -> None:
    await ask(ledger)
    await ledger.erase_details(CHAT)
    assert (await row_of(ledger)).preview is None
