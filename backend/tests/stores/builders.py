"""Small words for the tests of the stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.core.approvals import Decision, NewApproval
from sluicegate.core.keys import CallKey, ChatKey

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from sluicegate.stores.approvals.ledger import Ledger
    from sluicegate.stores.leases.base import Leases

CHAT = ChatKey("app", "ann", "chat-1")
TTL = 60.0


class Clock:
    """The seconds by which the store's clock runs ahead."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return self.ahead


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
    """Let SQLite write nothing of ours any more, as on a disk that is full."""
    connection.exec_driver_sql("PRAGMA query_only=ON")
