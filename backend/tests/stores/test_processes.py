"""Several processes on one database, and one that is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sluicegate
from sluicegate.errors import ConfigurationError
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.leases.database_leases import DatabaseLeases
from tests.stores.builders import CHAT, approve, key, open_database, owner_of

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from asyncio.subprocess import Process

SOURCE = Path(sluicegate.__path__[0]).parent
SCRIPT = Path(__file__).with_name("second_process.py")
RACES = 50


async def start(task: str, url: str, owner: str) -> tuple[Process, StreamWriter, StreamReader]:
    """Start a process and wait until it has opened the database."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(SCRIPT), task, url, owner),
        stdin=PIPE,
        stdout=PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process, process.stdin, process.stdout


async def test_two_processes_never_win_the_same_lease_or_claim(database_url: str) -> None:
    database = await open_database(database_url, exclusive=False)
    ledger, leases = Ledger(database), DatabaseLeases(database)
    calls = [f"call-{n}" for n in range(RACES)]
    for call in calls:
        await approve(ledger, call)
    owners = ("left", "right")
    racers = await asyncio.gather(*(start("race", database_url, owner) for owner in owners))
    winners: list[dict[str, str]] = []
    for call in calls:
        for _, to_racer, _ in racers:
            to_racer.write(f"{call}\n".encode())
        results = [json.loads(await from_racer.readline()) for _, _, from_racer in racers]
        leased, claimed = zip(*results, strict=True)
        assert sorted(leased) == sorted(claimed) == [False, True]
        winners.append({"lease": owners[leased.index(True)], "claim": owners[claimed.index(True)]})
    for process, to_racer, _ in racers:
        to_racer.close()
        assert await process.wait() == 0
    stored = {row.key.call: row.owner for row in await ledger.rows(CHAT)}
    assert [stored[call] for call in calls] == [winner["claim"] for winner in winners]
    for call, winner in zip(calls, winners, strict=True):
        assert await owner_of(leases, CHAT._replace(chat=call)) == winner["lease"]
    await database.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("finished", [1, 4, 9])
async def test_a_killed_process_loses_no_stored_outcome(tmp_path: Path, finished: int) -> None:
    path = tmp_path / "chats.db"
    url = f"sqlite+aiosqlite:///{path}"
    process, _, output = await start("write", url, "dead")
    with pytest.raises(ConfigurationError, match="in use by another process"):
        await open_database(url)
    printed = [int(await output.readline()) for _ in range(finished)]
    process.send_signal(signal.SIGKILL)
    # Outcomes that it printed after the last line read count as well.
    printed += [int(line) for line in (await output.read()).splitlines()]
    assert await process.wait() == -signal.SIGKILL

    database = await open_database(url)
    ledger = Ledger(database)
    await ledger.mark_unknown(CHAT, owners_alive=())
    states = {int(row.key.call): row.state for row in await ledger.rows(CHAT)}
    assert [states.pop(number) for number in printed] == ["executed"] * len(printed)
    assert list(states) in ([], [len(printed)])
    assert set(states.values()) <= {"requested", "approved", "unknown", "executed"}
    assert await ledger.claim(key(str(printed[-1])), owner="new", args_hash="h") is not None
    await database.close()
    plain = sqlite3.connect(path)
    assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    plain.close()
