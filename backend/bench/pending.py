"""Memory cost of pending approvals."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.client import BenchError, get_json, post
from bench.peers import chat_body, chunks
from bench.script import ASK

if TYPE_CHECKING:
    from bench.client import Address
    from bench.server_process import ServerProcess

SETTLE_SECONDS: Final = 30.0
"""Seconds within which the tasks of finished requests end, also on a busy machine."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Cost of ``count`` pending approvals: KiB of resident memory, tasks, sockets."""

    count: int
    resident_kib: int
    tasks: int
    sockets: int

    @property
    def kib_per_thousand(self) -> float:
        """KiB of resident memory per 1,000 approvals."""
        return self.resident_kib * 1000 / self.count


def measure_pending(server: ServerProcess, *, count: int) -> Pending:
    """Open approvals, each in a chat of its own, and compare the server before and after.

    As many chats again warm the server up first, so that caches are full on both sides.

    Raises:
        BenchError: A chat does not wait for an answer.
    """
    address = server.address()
    for number in range(count):
        ask(server, f"warm-{number}")
    before, resident = get_json(address, "/held"), server.resident_kib()
    for number in range(count):
        ask(server, f"chat-{number}")
    after = _settled(address, at_most=before["tasks"])
    grown = server.resident_kib() - resident
    for number in (0, count - 1):
        status = get_json(address, f"/api/chats/chat-{number}")["status"]
        if status != "waiting":
            raise BenchError(f"The chat of a pending approval is {status}, not waiting.")
    return Pending(
        count, grown, after["tasks"] - before["tasks"], after["sockets"] - before["sockets"]
    )


def _settled(address: Address, *, at_most: int) -> dict[str, int]:
    """What the server holds once the tasks of finished requests have ended.

    A response ends before the tasks that release its lease and close its stream. More than
    ``at_most`` tasks after `SETTLE_SECONDS` are a result, not an error.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        held: dict[str, int] = get_json(address, "/held")
        if held["tasks"] <= at_most or time.monotonic() > deadline:
            return held
        time.sleep(0.02)


def ask(server: ServerProcess, chat: str) -> None:
    """Create a pending approval in a new chat."""
    answer = post(server.address(), "/api/chat", chat_body(chat, ASK))
    if not any(chunk["type"] == "tool-approval-request" for chunk in chunks(answer.body)):
        raise BenchError(f"The gated tool did not ask: {answer.body[-500:]!r}.")
