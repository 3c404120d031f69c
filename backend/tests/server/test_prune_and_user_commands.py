"""``sluicegate prune`` and ``sluicegate user`` over chats of a served agent."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from sluicegate.core.approvals import Decision
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.server.cli import main
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import Database
from tests.server.exchange import chat_body, chunks
from tests.server.test_serving import serve_and
from tests.stores.builders import request

DATABASE = "sqlite+aiosqlite:///.sluicegate/sluicegate.db"
DAY = 86_400.0


@pytest.fixture
def chats(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two chats of the local user, one of them with a file, served and ended."""

    def use(url: str) -> None:
        for chat in ("c1", "c2"):
            sent = httpx.post(f"{url}api/chat", json=chat_body("Hi there", chat=chat), timeout=30)
            assert chunks(sent.text)[-1]["type"] == "finish"
        file = {"content-type": "text/plain"}
        files = f"{url}api/chats/c2/files"
        stored = httpx.post(files, content=b"my file", headers=file, timeout=30)
        assert stored.status_code == 201
        os.kill(os.getpid(), signal.SIGTERM)

    assert serve_and(use, monkeypatch) == 0
    return folder


def run(*arguments: str) -> int:
    return main([*arguments, "--model-script", "script.yaml"])


def change(statement: str, **values: object) -> list[object]:
    async def execute() -> list[object]:
        database = await Database.open(DATABASE)
        try:
            return await database.write(
                lambda connection: [
                    row
                    for result in [connection.execute(text(statement), values)]
                    if result.returns_rows
                    for row in result.scalars()
                ]
            )
        finally:
            await database.close()

    return asyncio.run(execute())


def listed() -> list[object]:
    return change("SELECT chat FROM sluicegate_chats ORDER BY chat")


def test_prune_deletes_the_chats_that_nobody_has_used_for_so_long(
    chats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert listed() == ["c1", "c2"]
    change("UPDATE sluicegate_chats SET updated_at = updated_at - :d WHERE chat = 'c1'", d=31 * DAY)
    old, new = chats / "kept" / "old.jsonl", chats / "kept" / "new.jsonl"
    old.parent.mkdir()
    for each in (old, new):
        each.write_text("{}")
    os.utime(old, (0, 0))
    capsys.readouterr()
    assert run("prune", "payer.py", "--older-than", "30", "--record", "kept") == 0
    assert capsys.readouterr().out == "1 recordings deleted\n1 chat deleted\n"
    assert listed() == ["c2"]
    assert change("SELECT count(*) FROM events WHERE session_id = 'c1'") == [0]
    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.parametrize("days", ["0", "-1", "soon", "nan", "inf"])
def test_a_time_that_is_none_is_refused_in_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], days: str
) -> None:
    assert run("prune", "payer.py", f"--older-than={days}") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (folder / ".sluicegate").exists()


def test_a_user_is_exported_with_messages_decisions_and_files(
    chats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run("user", "export", "payer.py", "local", "taken") == 0
    assert capsys.readouterr().out == "2 chats exported to taken\n"
    document = json.loads((chats / "taken" / "user.json").read_text("utf-8"))
    assert sorted(each["id"] for each in document["chats"]) == ["c1", "c2"]
    texts = [part["text"] for part in document["chats"][0]["messages"][0]["parts"]]
    assert texts == ["Hi there"]
    assert document["decisions"] == []
    [file] = (chats / "taken" / "files" / "c2").iterdir()
    assert file.read_bytes() == b"my file"
    assert (chats / "taken").stat().st_mode & 0o077 == 0
    assert run("user", "export", "payer.py", "local", "taken") == 2
    assert "exists already" in capsys.readouterr().err


def test_a_user_is_deleted_and_nobody_else(chats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    insert = "INSERT INTO sluicegate_cookie_sessions VALUES (:digest, :user, 't', 1, 9e9)"
    for user in ("local", "ann"):
        change(insert, digest=user, user=user)
    state = "INSERT INTO user_states VALUES ('payer', :user, '{}', '2026-01-01 00:00:00.000000')"
    change(state, user="ann")
    change("UPDATE sluicegate_chats SET \"user\" = 'ann' WHERE chat = 'c1'")
    capsys.readouterr()
    assert run("user", "delete", "payer.py", "local") == 0
    assert capsys.readouterr().out == "1 chat deleted\n"
    assert listed() == ["c1"]
    assert change("SELECT count(*) FROM events WHERE session_id = 'c2'") == [0]
    assert change("SELECT user_id FROM user_states") == ["ann"]
    assert change('SELECT "user" FROM sluicegate_cookie_sessions') == ["ann"]
    files = [each for each in (chats / ".sluicegate").rglob("*") if each.is_file()]
    assert not any(b"my file" in each.read_bytes() for each in files if each.suffix != ".db")


def record_decisions() -> None:
    """Ann asks for two payments and Ben denies one; Ben asks for one."""

    async def record() -> None:
        database = await Database.open(DATABASE)
        ledger = Ledger(database)
        ann, ben = ChatKey("payer", "ann", "c1"), ChatKey("payer", "ben", "c3")
        await ledger.request([request("a", ann), request("b", ann), request("c", ben)])
        denial = Decision(request("a", ann), approved=False, reason="Not for Ann.")
        await ledger.record_decisions([denial], by="ben", via="http")
        await database.close()

    asyncio.run(record())


def trail() -> str:
    columns = " || ".join(
        f"coalesce({name}, '')" for name in ('"user"', "chat", '"by"', "reason", "approval_id")
    )
    return str(change(f"SELECT {columns} FROM sluicegate_audit"))


def test_a_deleted_user_is_erased_from_the_audit_trail_and_the_chain_stays_valid(
    chats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record_decisions()
    capsys.readouterr()
    assert run("user", "delete", "payer.py", "ann") == 0
    assert capsys.readouterr().out == "3 lines of the audit trail erased\n0 chats deleted\n"
    assert "ann" not in trail().lower()
    assert change('SELECT DISTINCT "user" FROM sluicegate_approvals') == ["ben"]
    assert main(["audit", "--sessions", DATABASE, "--verify"]) == 0
    assert "the content of 3 of them was erased\n" in capsys.readouterr().out
    assert run("user", "delete", "payer.py", "ann") == 0
    assert capsys.readouterr().out == "0 chats deleted\n"


def test_prune_erases_old_lines_and_leaves_a_checkpoint(
    chats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record_decisions()
    capsys.readouterr()
    command = ("prune", "payer.py", "--older-than", "1e-9", "--audit-checkpoint", "end.txt")
    assert run(*command) == 0
    assert capsys.readouterr().out.startswith("4 lines of the audit trail erased\n")
    assert "ann" not in trail().lower()
    assert main(["audit", "--sessions", DATABASE, "--against", "end.txt"]) == 0
    assert "they contain the checkpoint of line 4\n" in capsys.readouterr().out
    assert run(*command) == 2
    assert capsys.readouterr().err == "The checkpoint end.txt cannot be written: File exists.\n"
