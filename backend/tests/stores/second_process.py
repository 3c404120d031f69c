"""A process of its own on a shared database, for races and for being killed.

Run as ``python second_process.py race|write URL OWNER``. It prints ``ready``; then

* ``race``: for each call id on standard input it acquires the lease of the chat of that name
  and claims that call if it can, and prints the successes as a JSON list of two booleans;
* ``write``: it requests, approves, claims and finishes calls one by one, and prints each
  call id once its outcome is stored.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys

from sluicegate.core.approvals import Decision, NewApproval
from sluicegate.core.call_keys import CallKey
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.leases.database_leases import DatabaseLeases
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.time_limits import DatabaseTimings

CHAT = ChatKey("app", "ann", "chat-1")
PATIENT = DatabaseTimings(busy=30, connect=30, pool=30, command=30, response=30)


def write_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def race(database: Database, owner: str) -> None:
    leases, ledger = DatabaseLeases(database), Ledger(database)
    while call := (await asyncio.to_thread(sys.stdin.readline)).strip():
        fence, row = await asyncio.gather(
            leases.acquire(CHAT._replace(chat=call), owner=owner, ttl=3600.0),
            ledger.claim(CallKey(*CHAT, "inv-1", call), owner=owner, args_hash="hash"),
        )
        write_line(json.dumps([fence is not None, row is None]))


async def write(database: Database, owner: str) -> None:
    ledger = Ledger(database)
    for number in itertools.count():
        key = CallKey(*CHAT, "inv-1", str(number))
        new = NewApproval(key, approval_id=f"ask-{number}", tool="pay", args_hash="h", ttl=3600.0)
        await ledger.request([new])
        await ledger.record_decisions([Decision(new, approved=True, reason=None)], by="ann")
        await ledger.claim(key, owner=owner, args_hash="h")
        await ledger.store_outcome(key, owner=owner, state="executed", outcome="x" * 2_000)
        write_line(str(number))


async def main(task: str, url: str, owner: str) -> None:
    database = await Database.open(url, exclusive=task == "write", timings=PATIENT)
    write_line("ready")
    await (race if task == "race" else write)(database, owner)
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
