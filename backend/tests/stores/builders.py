"""What the tests of the stores share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import update

from sluicegate.core.approvals import Decision, NewApproval
from sluicegate.core.call_keys import CallKey
from sluicegate.core.chat_and_turn_keys import ChatKey
from sluicegate.stores.sql.database import Database
from sluicegate.stores.sql.database_clock import DatabaseSeconds
from sluicegate.stores.sql.schema import LEASES
from sluicegate.stores.sql.time_limits import DatabaseTimings
from sluicegate.stores.streams.time_limits import ValkeyTimings

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.stores.leases.base import Leases

CHAT = ChatKey("app", "ann", "chat-1")
TTL = 3600.0
"""Longer than any test takes, however busy the machine is."""

LIMIT = 30.0
"""Seconds for an event of another process or thread; only a defect takes so long."""

PATIENT = DatabaseTimings(busy=LIMIT, connect=LIMIT, pool=LIMIT, command=LIMIT, response=LIMIT)
PATIENT_STREAMS = ValkeyTimings(
    command=LIMIT, unavailable=LIMIT, close=LIMIT, delivery=LIMIT, retry_pause=0.01
)


class Clock:
    """A clock that a test advances: seconds ahead of the database's clock."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return self.ahead


async def open_database(
    url: str, *, timings: DatabaseTimings = PATIENT, **options: Any
) -> Database:
    """Open a database with limits that a busy machine does not reach."""
    return await Database.open(url, timings=timings, **options)


async def end_leases(database: Database, *, after: float = 0.0) -> None:
    """Let the time of every lease run out, after so many seconds at the latest."""
    ends = DatabaseSeconds() + after
    statement = update(LEASES).where(LEASES.c.until > ends).values(until=ends)
    await database.write(lambda connection: connection.execute(statement))


def key(call: str = "call-1", chat: ChatKey = CHAT) -> CallKey:
    return CallKey(*chat, invocation="inv-1", call=call)


def request(call: str = "call-1", chat: ChatKey = CHAT, *, ttl: float = TTL) -> NewApproval:
    return NewApproval(
        key=key(call, chat), approval_id=f"ask-{call}", tool="pay", args_hash="hash", ttl=ttl
    )


def yes(call: str = "call-1", reason: str | None = None) -> Decision:
    return Decision(request(call), approved=True, reason=reason)


def no(call: str = "call-1", reason: str | None = None) -> Decision:
    return Decision(request(call), approved=False, reason=reason)


async def approve(ledger: Ledger, call: str = "call-1") -> None:
    await ledger.record_decisions([yes(call)], by="ann")


async def claim(ledger: Ledger, call: str = "call-1", owner: str = "me") -> None:
    await approve(ledger, call)
    assert await ledger.claim(key(call), owner=owner, args_hash="hash") is None


async def owner_of(leases: Leases, chat: ChatKey = CHAT) -> str | None:
    return (await leases.state(chat)).owner


def unwritable(connection: Connection) -> None:
    """Make our connection read-only, as on a full disk."""
    connection.exec_driver_sql("PRAGMA query_only=ON")
