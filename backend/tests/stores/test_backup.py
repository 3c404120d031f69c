"""The documented backup: a copy made while the server runs, restored and served."""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text

from sluicegate.stores.approvals.audit_verification import read_checkpoint, verify_audit
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import Database
from tests.docs.markdown import DOCS, fences
from tests.real_stores.postgres import Postgres
from tests.stores.builders import CHAT, key, open_database, yes
from tests.stores.builders import request as approval_request

PAGE = (DOCS / "how-to" / "back-up.md").read_text("utf-8")


def copy_sqlite(url: str, folder: Path) -> str:
    """Run the command of the page; returns the URL of the copy."""
    found = re.search(r'^sqlite3 \S+ "(.*)"$', PAGE, re.MULTILINE)
    assert found is not None
    copy = folder / "copy.db"
    with sqlite3.connect(url.partition("///")[2]) as connection:
        connection.execute(found[1].replace("chats.backup.db", str(copy)))
    connection.close()
    return f"sqlite+aiosqlite:///{copy}"


def copy_postgresql(server: Postgres, url: str, folder: Path) -> str:
    """Run the commands of the page; returns the URL of the copy."""
    dump, restored = str(folder / "chats.dump"), f"restored_{secrets.token_hex(6)}"
    file = {"chats": url.rpartition("/")[2], "chats.dump": dump, "restored": restored}
    [commands] = [fence.code for fence in fences(PAGE) if "pg_dump" in fence.code]
    first, *programs = commands.splitlines()
    assert first == "umask 077"
    for command in programs:
        program, *words = command.replace(" > ", " --file ").split()
        server.run(program, *(file.get(word, word) for word in words))
    return server.url(restored)


@pytest.fixture
async def copied(
    request: pytest.FixtureRequest, database_url: str, database: Database, tmp_path: Path
) -> AsyncIterator[str]:
    """The URL of a copy of a database with a pending, an approved and an executed call."""
    ledger = Ledger(database)
    await ledger.request([approval_request("pending")])
    await ledger.record_decisions([yes("approved")], by="ann")
    await ledger.record_decisions([yes("executed")], by="ann")
    await ledger.claim(key("executed"), owner="one", args_hash="hash")
    await ledger.store_outcome(key("executed"), owner="one", state="executed", outcome={"n": 1})
    if database_url.startswith("sqlite"):
        yield copy_sqlite(database_url, tmp_path)
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = copy_postgresql(server, database_url, tmp_path)
    yield url
    server.run("dropdb", "--force", url.rpartition("/")[2])


async def test_a_restored_database_has_every_row_and_an_unbroken_chain(
    copied: str, database_url: str
) -> None:
    checkpoint = await read_checkpoint(database_url)
    assert checkpoint is not None
    found = await verify_audit(copied, checkpoint)
    assert (found.broken, found.unchained, found.last) == (None, 0, checkpoint)
    restored = await open_database(copied)
    ledger = Ledger(restored)
    states = {row.key.call: row.state for row in await ledger.rows(CHAT)}
    assert states == {"pending": "requested", "approved": "approved", "executed": "executed"}
    await ledger.record_decisions([yes("pending")], by="ann")
    await restored.close()
    found = await verify_audit(copied, checkpoint)
    assert (found.broken, found.chained) == (None, 8)


async def test_the_statements_of_the_page_close_what_a_second_approval_would_run(
    copied: str,
) -> None:
    [statements] = [fence.code for fence in fences(PAGE) if fence.language == "sql"]
    restored = await open_database(copied)
    for statement in statements.splitlines():
        await restored.write(lambda c, sql=statement: c.execute(text(sql)).rowcount)  # type: ignore[misc]
    ledger = Ledger(restored)
    [row] = await ledger.record_decisions([yes("pending")], by="ann")
    assert row.state == "expired"
    for call in ("pending", "approved"):
        row_after = await ledger.claim(key(call), owner="two", args_hash="hash")
        assert row_after is not None
    await restored.close()
