"""The inbox over many waiting approvals, and how soon people and webhooks hear of a change.

Everything goes over HTTP, to a server on either database: the first page of a person who may decide
every approval, and of one of the users; the event of a new request and of a decision at the other
person; and the webhooks of both.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import socket
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from bench.client import BenchError, get_json, post
from bench.large_request_flood import percentile
from bench.peers import chat_body, chunks
from bench.script import ASK
from bench.server_process import ServerProcess, sluicegate
from sluicegate.core.approvals import NewApproval
from sluicegate.core.approvers import ApproverRule
from sluicegate.core.call_keys import CallKey
from sluicegate.stores.approvals.ledger import Ledger
from sluicegate.stores.sql.database import Database
from tests.real_stores.postgres import Postgres
from tests.server.webhook_receiver import Receiver, write_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.client import Address

PAGE: Final = 0.1
"""Seconds for the first page, at most."""

LIVE: Final = 1.0
"""Seconds until another person, or a webhook, has a change, at most."""

USERS_OF: Final = 10
"""Waiting approvals of each user."""

_APP: Final = "shared"
_HOLDER: Final = {"x-user": "bob", "x-groups": "finance"}
_PATIENCE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Inbox:
    """Seconds on one store: of first pages, and of changes until others have them.

    ``of_holder`` is the page of a person who may decide all ``waiting`` approvals, ``of_user`` that
    of a user with `USERS_OF`. ``requested`` and ``decided`` begin with the request that causes the
    change, ``webhooks`` with its commit.
    """

    store: str
    waiting: int
    of_holder: tuple[float, ...]
    of_user: tuple[float, ...]
    requested: tuple[float, ...]
    decided: tuple[float, ...]
    webhooks: tuple[float, ...]


def measure_inbox(folder: Path, *, waiting: int, rounds: int, changes: int) -> list[Inbox]:
    """Measure on SQLite and on PostgreSQL.

    Raises:
        BenchError: A page is not complete, or an event is missing.
    """
    folder.mkdir()
    url = f"sqlite+aiosqlite:///{folder}/inbox.db"
    found = [_measure("SQLite", url, folder, (waiting, rounds, changes))]
    server = Postgres(folder / "postgres", is_durable=True)
    server.create()
    server.start()
    try:
        found.append(_measure("PostgreSQL", server.url(), folder, (waiting, rounds, changes)))
    finally:
        server.stop()
    return found


def _measure(store: str, url: str, folder: Path, amounts: tuple[int, int, int]) -> Inbox:
    waiting, rounds, changes = amounts
    asyncio.run(_fill(url, waiting))
    place = folder / store
    place.mkdir()
    with Receiver().running() as receiver:
        options = [
            *("--sessions", url, "--auth", "header:x-user", "--role-header", "x-groups"),
            *("--webhook", f"ops={receiver.url}", "--webhook-host", "127.0.0.1"),
            *("--webhook-secrets", write_secrets(place / "secrets", ops=receiver.secret)),
        ]
        with ServerProcess(
            [*sluicegate("shared"), *options], place, {"BENCH_DELTAS": "1"}
        ) as server:
            address = server.address()
            pages = [
                tuple(_pages(address, user, expected=min(count, 50), rounds=rounds))
                for user, count in ((_HOLDER, waiting), ({"x-user": "user-0"}, USERS_OF))
            ]
            requested, decided = _changes(address, changes)
            webhooks = [_since_commit(receiver) for _ in range(3 * changes)]
    return Inbox(store, waiting, *map(tuple, (*pages, requested, decided, webhooks)))


async def _fill(url: str, waiting: int) -> None:
    """Request approvals, each in a chat of its own, of many users."""
    rule = ApproverRule(users=(), roles=("finance",))
    database = await Database.open(url)
    ledger = Ledger(database)
    for user in range(max(1, waiting // USERS_OF)):
        await ledger.request(
            [
                NewApproval(
                    key=CallKey(_APP, f"user-{user}", f"chat-{user}-{number}", "inv", "call"),
                    approval_id=f"waiting-{user}-{number}",
                    tool="transfer",
                    args_hash="0" * 64,
                    ttl=86_400,
                    arguments={"amount": 5},
                    agent=_APP,
                    approvers=rule,
                )
                for number in range(USERS_OF)
            ]
        )
    await database.close()


def _pages(
    address: Address, user: dict[str, str], *, expected: int, rounds: int
) -> Iterator[float]:
    for _ in range(rounds):
        began = time.perf_counter()
        page = get_json(address, "/api/approvals?limit=50", user)
        seconds = time.perf_counter() - began
        if len(page["approvals"]) != expected:
            raise BenchError(
                f"The first page has {len(page['approvals'])} of {expected} approvals."
            )
        yield seconds


def _changes(address: Address, count: int) -> tuple[list[float], list[float]]:
    """Request and approve; until the holder of the role, and then the user, has the event."""
    requested, decided = [], []
    user = {"x-user": "asking", "x-ai-sdk": "7"}
    with _events(address, _HOLDER) as of_holder, _events(address, user) as of_user:
        for number in range(count):
            began = time.perf_counter()
            answer = post(address, "/api/chat", chat_body(f"asked-{number}", ASK), user)
            [approval] = [
                chunk["approvalId"]
                for chunk in chunks(answer.body)
                if chunk["type"] == "tool-approval-request"
            ]
            requested.append(_arrival(of_holder, approval, "requested") - began)
            began = time.perf_counter()
            post(address, f"/api/approvals/{approval}", {"approved": True}, _HOLDER)
            decided.append(_arrival(of_user, approval, "approved") - began)
            _arrival(of_user, approval, "executed")
    return requested, decided


Arrivals = queue.Queue[tuple[float, dict[str, Any]]]


@contextlib.contextmanager
def _events(address: Address, user: dict[str, str]) -> Iterator[Arrivals]:
    """The events of a user with the moments at which they arrive."""
    arrived: Arrivals = queue.Queue()
    fields = {"host": f"{address.host}:{address.port}", **user}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    connection = socket.create_connection(address, timeout=_PATIENCE)

    def read() -> None:
        with contextlib.suppress(OSError), connection.makefile("rb") as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    arrived.put((time.perf_counter(), json.loads(line[6:])))

    connection.sendall(f"GET /api/events HTTP/1.1\r\n{lines}\r\n".encode())
    thread = threading.Thread(target=read)
    thread.start()
    try:
        _, first = arrived.get(timeout=_PATIENCE)
        if first["type"] != "ready":
            raise BenchError(f"The first event is {first}.")
        yield arrived
    finally:
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()
        thread.join()


def _arrival(arrived: Arrivals, approval: str, state: str) -> float:
    while True:
        try:
            moment, event = arrived.get(timeout=_PATIENCE)
        except queue.Empty:
            raise BenchError(f"No event says that an approval is {state}.") from None
        if event.get("approvalId") == approval and event["state"] == state:
            return moment


def _since_commit(receiver: Receiver) -> float:
    try:
        received = receiver.received.get(timeout=_PATIENCE)
    except queue.Empty:
        raise BenchError(f"A webhook is missing: {receiver.refused}") from None
    return received.at - datetime.fromisoformat(received.event["timestamp"]).timestamp()


def summary(seconds: tuple[float, ...], most: float) -> str:
    """Return the median and the 99th percentile in ms, with the limit."""
    p50, p99 = (percentile(seconds, share) * 1e3 for share in (0.5, 0.99))
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} (at most {most * 1e3:.0f})"
