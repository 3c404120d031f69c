"""The command that prints and exports the audit trail."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluicegate.core.approvals import Decision, NewApproval
from sluicegate.core.call_keys import CallKey
from sluicegate.server.audit_command import audit
from sluicegate.server.cli import main
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import Database

pytestmark = pytest.mark.usefixtures("folder")
URL = "sqlite+aiosqlite:///chats.db"
REASON = '=HYPERLINK("x")\u202e\nyes'


@pytest.fixture(autouse=True)
def trail(folder: Path) -> None:
    """An audit log with one approved request."""

    async def write() -> None:
        database = await Database.open(URL)
        key = CallKey("app", "ann", "chat-1", "inv-1", "call-1")
        new = NewApproval(key, "ask-1", "pay", "0123456789abcdef", 60.0)
        await Ledger(database).record_decisions(
            [Decision(new, approved=True, reason=REASON)], by="ann", via="sse"
        )
        await database.close()

    asyncio.run(write())


def printed(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["audit", "--sessions", URL, *options]) == 0
    written = capsys.readouterr()
    assert written.err == ""
    return written.out


def test_a_text_line_contains_user_action_time_and_means(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked, approved = printed(capsys).splitlines()
    assert " requested pay by=- via=- user=ann chat=chat-1 approval=ask-1 " in asked
    assert " approved pay by=ann via=sse user=ann chat=chat-1 approval=ask-1 " in approved
    assert "args=0123456789ab" in approved
    assert approved.endswith(r'reason="=HYPERLINK(\"x\")\u202e\nyes"')


def test_json_lines_contain_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    _, line = printed(capsys, "--format", "jsonl").splitlines()
    entry = json.loads(line)
    assert entry.pop("at").endswith("+00:00")
    assert entry == {
        "id": 2,
        "app": "app",
        "user": "ann",
        "chat": "chat-1",
        "invocation": "inv-1",
        "call": "call-1",
        "approval_id": "ask-1",
        "tool": "pay",
        "action": "approved",
        "by": "ann",
        "via": "sse",
        "reason": REASON,
        "args_hash": "0123456789abcdef",
    }


def test_user_text_is_not_a_formula_in_a_spreadsheet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = list(csv.DictReader(io.StringIO(printed(capsys, "--format", "csv"))))
    assert [row["action"] for row in rows] == ["requested", "approved"]
    assert rows[1]["reason"] == f"'{REASON}"
    assert rows[0]["by"] == ""


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (["--chat", "chat-1"], 2),
        (["--chat", "chat-2"], 0),
        (["--user", "ann", "--since", "2026-01-01"], 2),
        (["--user", "bob"], 0),
        (["--until", "2026-01-01T00:00:00Z"], 0),
        (["--since", "2026-01-01T00:00:00+02:00", "--until", "2999-01-01"], 2),
    ],
)
def test_options_filter_the_lines(
    capsys: pytest.CaptureFixture[str], options: list[str], lines: int
) -> None:
    assert len(printed(capsys, *options).splitlines()) == lines


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--since", "yesterday"], "--since"),
        (["--until", "2026-13-01"], "--until"),
        (["--until", "2026-02-30"], "--until"),
        (["--format", "xml"], "--format"),
        (["--sessions", "sqlite+aiosqlite:///none.db"], "none.db"),
        (["--sessions", "x"], "not the URL"),
        (["--port", "1"], "--port"),
        (["--verify", "--chat", "chat-1"], "--chat"),
        (["--checkpoint", "--since", "2026-01-01"], "--since"),
        (["--checkpoint", "--verify"], "--checkpoint"),
        (["--against", "missing.txt"], "missing.txt"),
        (["--against", "chats.db"], "checkpoint"),
    ],
)
def test_a_failure_is_one_sentence(
    capsys: pytest.CaptureFixture[str], options: list[str], named: str
) -> None:
    assert main(["audit", "--sessions", URL, *options]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert (written.err.count("\n"), named in written.err) == (1, True)


def test_the_chain_is_verified_against_a_checkpoint(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    checkpoint = printed(capsys, "--checkpoint")
    assert checkpoint.startswith("sluicegate audit: line 2, entry 2, sha256 ")
    assert printed(capsys, "--verify").splitlines() == [
        "2 lines are in the chain and unchanged",
        checkpoint.rstrip(),
    ]
    (folder / "signed.txt").write_text(checkpoint)
    against = printed(capsys, "--against", str(folder / "signed.txt"))
    assert "they contain the checkpoint of line 2" in against


def test_a_broken_chain_is_a_failure_that_names_the_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with sqlite3.connect("chats.db") as connection:
        connection.execute("DROP TRIGGER sluicegate_audit_update")
        connection.execute("UPDATE sluicegate_audit SET tool = 'refund' WHERE id = 2")
    connection.close()
    assert main(["audit", "--sessions", URL, "--verify"]) == 1
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", "The audit trail is broken. Line 2 was changed.\n")


def test_the_database_url_can_come_from_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICEGATE_SESSIONS", URL)
    assert main(["audit"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_closed_output_pipe_is_not_a_failure(capfd: pytest.CaptureFixture[str]) -> None:
    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    wishes: Any = SimpleNamespace(
        chat=None,
        user=None,
        since=None,
        until=None,
        format="text",
        checkpoint=False,
        verify=False,
        against=None,
    )
    assert audit(URL, wishes, Closed()) == 0
    assert capfd.readouterr().err == ""
