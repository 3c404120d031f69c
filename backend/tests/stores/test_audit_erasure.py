"""What the audit trail says of a person is erased, and its chain stays valid."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import delete, func, literal, select, text, update

from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.errors import StoreError
from sluicegate.stores.approvals.audit_erasure import Erased, erase_before, erase_person
from sluicegate.stores.approvals.audit_verification import read_checkpoint, verify_audit
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database_clock import DatabaseSeconds
from sluicegate.stores.sql.schema import AUDIT, AUDIT_CHAIN, AUDIT_KEYS
from tests.stores.builders import CHAT, LIMIT, no, request, yes
from tests.stores.test_audit_chain_triggers import tamper

if TYPE_CHECKING:
    from sluicegate.stores.sql.database import Database

BEN = ChatKey("app", "ben", "chat-2")


@pytest.fixture
async def trail(ledger: Ledger, database: Database) -> Database:
    """Three lines of Ann's chat, decided by Ann and by Ben, and one of Ben's."""
    await ledger.request([request("a"), request("b")])
    await ledger.record_decisions([yes("a", reason="Größe ✓, Ann")], by="ann", via="sse")
    await clock_passed(database)
    await ledger.record_decisions([no("b")], by="ben", via="http")
    await ledger.request([request("c", BEN)])
    return database


async def clock_passed(database: Database) -> None:
    """Wait for a time of the database that is later than that of the last line."""
    is_later = select(DatabaseSeconds() > func.max(AUDIT.c.at)).select_from(AUDIT)
    async with asyncio.timeout(LIMIT):
        while not await database.read(lambda connection: connection.scalar(is_later)):
            pass


async def lines(database: Database) -> list[dict[str, Any]]:
    statement = select(AUDIT).order_by(AUDIT.c.id)
    return await database.read(
        lambda connection: [dict(row._mapping) for row in connection.execute(statement)]
    )


async def keys(database: Database) -> int:
    statement = select(func.count()).select_from(AUDIT_KEYS)
    return await database.read(lambda connection: connection.scalar(statement) or 0)


async def test_a_person_is_erased_with_the_keys_and_the_chain_still_verifies(
    trail: Database, database_url: str
) -> None:
    signed = await read_checkpoint(database_url)
    erased = await trail.write(lambda connection: erase_person(connection, "app", "ann"))
    assert erased == Erased(4, 0)
    found = await verify_audit(database_url, signed)
    assert (found.broken, found.chained, found.erased) == (None, 6, 4)
    after = await lines(trail)
    assert "ann" not in str(after).lower()
    assert CHAT.chat not in str(after)
    # When something happened, with which tool, and what became of it, stays.
    assert [line["action"] for line in after] == [
        *("requested", "requested", "approved", "denied", "requested"),
        "erased",
    ]
    assert {line["tool"] for line in after[:4]} == {"pay"}
    assert (after[4]["user"], after[5]["reason"]) == ("ben", "4 lines")
    # Of Ben's line, and of the line of the erasure.
    assert await keys(trail) == 3


async def test_a_person_who_decided_about_others_is_erased_there_alone(
    trail: Database, database_url: str
) -> None:
    await trail.write(lambda connection: erase_person(connection, "app", "ben"))
    after = await lines(trail)
    assert "ben" not in str(after)
    denied = after[3]
    assert (denied["user"], denied["by"], denied["via"]) == ("ann", None, None)
    assert after[2]["by"] == "ann"
    found = await verify_audit(database_url)
    assert (found.broken, found.erased) == (None, 1)
    assert await trail.write(lambda connection: erase_person(connection, "app", "ben")) == (0, 0)
    assert await trail.write(lambda connection: erase_person(connection, "other", "ann")) == (0, 0)


async def test_old_lines_are_erased_and_newer_ones_are_not(
    trail: Database, database_url: str
) -> None:
    moment = literal((await lines(trail))[3]["at"])
    erased = await trail.write(lambda connection: erase_before(connection, "app", moment))
    after = await lines(trail)
    assert [line["user"] for line in after] == ["", "", "", "ann", "ben", ""]
    assert erased == Erased(3, 0)
    found = await verify_audit(database_url)
    assert (found.broken, found.erased) == (None, 3)


@pytest.mark.parametrize(
    "change",
    [
        update(AUDIT).values(reason="another"),
        update(AUDIT).values(user="", chat="", invocation="", call="", approval_id=""),
        update(AUDIT).values(by=None, via=None, reason=None).where(AUDIT.c.by == "ann"),
        update(AUDIT).values(action="denied"),
        delete(AUDIT),
        update(AUDIT_KEYS).values(key="0"),
    ],
    ids=["reason", "blanked", "person blanked", "action", "deleted", "key"],
)
async def test_a_line_that_has_its_keys_cannot_be_changed(trail: Database, change: Any) -> None:
    before = await lines(trail)
    with pytest.raises(StoreError):
        await trail.write(lambda connection: connection.execute(change))
    assert await lines(trail) == before


@pytest.mark.parametrize("change", ["user = 'eve'", "at = 0", "tool = 'refund'", "by = 'eve'"])
async def test_a_line_without_keys_can_be_blanked_and_nothing_else(
    trail: Database, change: str
) -> None:
    await trail.write(lambda connection: connection.execute(delete(AUDIT_KEYS)))
    column, _, value = change.partition(" = ")
    statement = text(f'UPDATE sluicegate_audit SET "{column}" = {value}')
    with pytest.raises(StoreError):
        await trail.write(lambda connection: connection.execute(statement))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("UPDATE sluicegate_audit SET reason = 'another' WHERE id = 3", "Line 3 was changed."),
        ("UPDATE sluicegate_audit SET \"user\" = 'eve' WHERE id = 2", "Line 2 was changed."),
        ("UPDATE sluicegate_audit SET tool = 'refund' WHERE id = 1", "Line 1 was changed."),
        ("UPDATE sluicegate_audit SET \"by\" = 'eve' WHERE id = 1", "Line 1 was changed."),
        (
            "DELETE FROM sluicegate_audit_keys WHERE line = 2",
            "The key of line 2 was removed, but not its content.",
        ),
        ("UPDATE sluicegate_audit_keys SET key = '0' WHERE line = 2", "Line 2 was changed."),
        (
            "UPDATE sluicegate_audit_chain SET content = NULL, person = NULL WHERE line = 2",
            "Line 2 was changed.",
        ),
    ],
)
async def test_every_change_by_a_person_with_all_rights_is_found(
    trail: Database, database_url: str, change: str, sentence: str
) -> None:
    await trail.close()
    await tamper(database_url, change)
    assert (await verify_audit(database_url)).broken == sentence


async def test_the_commitments_are_the_documented_ones(trail: Database) -> None:
    line = (await lines(trail))[2]
    entry_of = select(AUDIT_CHAIN).where(AUDIT_CHAIN.c.line == line["id"])
    keys_of = select(AUDIT_KEYS).where(AUDIT_KEYS.c.line == line["id"])
    entry = await trail.read(lambda connection: connection.execute(entry_of).one())
    found = await trail.read(lambda connection: connection.execute(keys_of).all())
    parts = {
        "content": ("user", "chat", "invocation", "call", "approval_id", "args_hash"),
        "person": ("by", "via", "reason"),
    }
    for row in found:
        assert len(row.key) == 64
        assert row.owner == "ann"
        said = "".join(
            f"{name}={len(line[name].encode())}:{line[name]}\n" for name in parts[row.part]
        )
        digest = hashlib.sha256(f"{row.key}\n{said}".encode()).hexdigest()
        assert digest == entry._mapping[row.part]
    assert len({row.key for row in found}) == 2
