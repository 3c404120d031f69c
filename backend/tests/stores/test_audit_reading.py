"""The audit trail: an immutable entry for each transition of a call (A10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import ConfigurationError, StoreError
from sluicegate.stores.approvals.audit_reading import AuditEntry, AuditFilter, read_audit
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import Database
from tests.stores.builders import CHAT, TTL, claim, key, no, open_database, request, yes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stores.builders import Clock

ALL = AuditFilter()


async def trail(url: str, wanted: AuditFilter = ALL) -> list[AuditEntry]:
    return [entry async for entry in read_audit(url, wanted)]


async def actions(url: str, wanted: AuditFilter = ALL) -> list[str]:
    return [entry.action for entry in await trail(url, wanted)]


async def test_a_call_has_an_audit_entry_for_each_transition(
    ledger: Ledger, database_url: str
) -> None:
    await ledger.record_decisions([yes(reason="go on")], by="ann", via="sse")
    await ledger.claim(key(), owner="me", args_hash="hash")
    await ledger.store_outcome(key(), owner="me", state="failed", outcome={"error": "No money."})
    asked, approved, claimed, failed = await trail(database_url)
    assert (asked.action, asked.by, asked.via) == ("requested", None, None)
    assert (approved.action, approved.by, approved.via) == ("approved", "ann", "sse")
    assert (approved.reason, approved.tool, approved.args_hash) == ("go on", "pay", "hash")
    assert (approved.app, approved.user, approved.chat) == CHAT
    assert (approved.invocation, approved.call) == ("inv-1", "call-1")
    assert approved.approval_id == "ask-call-1"
    assert claimed.action == "executing"
    assert (failed.action, failed.by, failed.reason) == ("failed", "ann", "No money.")
    assert [asked.id, approved.id, claimed.id, failed.id] == [1, 2, 3, 4]
    assert asked.at <= approved.at <= claimed.at <= failed.at


async def test_transitions_without_a_decision_are_audited_too(
    ledger: Ledger, database_url: str, clock: Clock
) -> None:
    await ledger.record_decisions([no("a"), yes("b")], by="ann")
    await ledger.request([request("c"), request("d")])
    await ledger.refuse(key("b"), "not on Sundays")
    await ledger.supersede([key("c")])
    clock.ahead = TTL + 1
    await ledger.expire(CHAT)
    await claim_lost(ledger)
    found = {(entry.call, entry.action) for entry in await trail(database_url)}
    assert {("a", "denied"), ("b", "approved"), ("b", "refused")} <= found
    assert {("c", "superseded"), ("d", "expired"), ("e", "unknown")} <= found


async def claim_lost(ledger: Ledger) -> None:
    await claim(ledger, "e", owner="gone")
    await ledger.mark_unknown(CHAT, owners_alive=())


async def test_a_request_that_changes_nothing_is_not_audited(
    ledger: Ledger, database_url: str
) -> None:
    await claim(ledger)
    before = await actions(database_url)
    await ledger.request([request()])
    await ledger.record_decisions([no(), yes("other")], by="bob")
    await ledger.claim(key(), owner="another", args_hash="hash")
    await ledger.refuse(key(), "too late")
    await ledger.store_outcome(key(), owner="another", state="executed", outcome=None)
    # With the contradiction no decision was recorded, only the requests.
    assert await actions(database_url) == [*before, "requested"]


@pytest.mark.parametrize("change", ["UPDATE sluicegate_audit SET tool = ''", "DELETE FROM {}"])
async def test_the_audit_trail_cannot_be_changed(
    ledger: Ledger, database: Database, database_url: str, change: str
) -> None:
    await ledger.request([request()])
    statement = text(change.format("sluicegate_audit"))
    with pytest.raises(StoreError, match="the audit trail only grows"):
        await database.write(lambda connection: connection.execute(statement))
    assert await actions(database_url) == ["requested"]


async def test_entries_are_selected_by_chat_user_and_time(
    ledger: Ledger, database_url: str, clock: Clock
) -> None:
    await ledger.request([request(chat=ChatKey("app", "ann", "one"))])
    await ledger.request([request(chat=ChatKey("app", "bob", "two"))])
    clock.ahead = 1_000.0
    await ledger.request([request(chat=ChatKey("app", "bob", "one"))])
    first, second, third = await trail(database_url)
    chosen = {
        AuditFilter(chat="one"): [first, third],
        AuditFilter(user="bob"): [second, third],
        AuditFilter(chat="one", user="bob"): [third],
        AuditFilter(since=third.at): [third],
        AuditFilter(until=third.at): [first, second],
        AuditFilter(since=first.at, until=second.at + 1): [first, second],
        AuditFilter(user="eve"): [],
    }
    for wanted, expected in chosen.items():
        assert await trail(database_url, wanted) == expected


async def test_a_trail_of_many_entries_is_read_to_its_end(
    ledger: Ledger, database_url: str
) -> None:
    await ledger.request([request(f"call-{number:04}") for number in range(1_001)])
    assert [entry.id for entry in await trail(database_url)] == list(range(1, 1_002))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite+aiosqlite:///{folder}/none.db", "There is no database"),
        ("sqlite+aiosqlite:///{folder}/empty.db", "has no audit trail"),
        ("sqlite+aiosqlite:///{folder}/broken.db", "cannot be read: file is not a database;"),
        ("nonsense", "not the URL of a database"),
        ("magic://{folder}", "not the URL of a database"),
    ],
)
async def test_an_unreadable_trail_is_reported_in_one_sentence(
    folder: Path, url: str, said: str
) -> None:
    (folder / "empty.db").touch()
    (folder / "broken.db").write_text("This is no database." * 100)
    with pytest.raises(ConfigurationError, match=said):
        await trail(url.format(folder=folder))
    assert not (folder / "none.db").exists()


async def test_reading_writes_nothing(sqlite_url: str, folder: Path) -> None:
    database = await open_database(sqlite_url)
    await Ledger(database).request([request()])
    before = (folder / "chats.db").read_bytes()
    assert await actions(sqlite_url) == ["requested"]
    assert (folder / "chats.db").read_bytes() == before
    await database.close()
