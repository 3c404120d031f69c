"""Processes that are killed between the commit of an approval's change and its delivery."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.engine.options import EngineOptions
from sluicegate.engine.timeouts_and_intervals import EngineTimings
from sluicegate.engine.webhooks.delivery_attempt import WebhookSender
from sluicegate.stores.approvals.audit_reading import AuditFilter, read_audit
from sluicegate.stores.approvals.execute_ledger_transitions import LedgerTransitions
from sluicegate.stores.approvals.outbox import Outbox, list_entries
from tests.engine.talk import Talk, decide
from tests.faults.kill_points import die
from tests.faults.promises import LostDecision
from tests.faults.soak.child import Child, ChildError
from tests.faults.soak.paying import Effects, payer
from tests.faults.soak.stores import LEFT, Databases
from tests.faults.soak.tally import Tally, failure
from tests.patience import LEASE
from tests.server.webhook_receiver import Receiver, new_secret, settings_of
from tests.stores.builders import PATIENT, end_leases

PATIENCE: Final = 120.0
SILENT: Final = ("executing", "asked_again")


def _nth(owner: type, name: str, number: int, *, is_after: bool) -> None:
    """Die before or after the call of a method with that number."""
    original: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def is_the_one() -> bool:
        nonlocal calls
        calls += 1
        return calls == number

    @functools.wraps(original)
    async def dying(*args: Any, **kwargs: Any) -> Any:
        the_one = is_the_one()
        if the_one and not is_after:
            die()
        result = await original(*args, **kwargs)
        if the_one:
            die()
        return result

    @functools.wraps(original)
    def dying_at_once(*args: Any, **kwargs: Any) -> Any:
        if is_the_one():
            die()
        return original(*args, **kwargs)

    setattr(owner, name, dying if asyncio.iscoroutinefunction(original) else dying_at_once)


POINTS: Final[tuple[tuple[str, Callable[[int], None]], ...]] = (
    ("committed", lambda n: _nth(LedgerTransitions, "_publish", n, is_after=False)),
    ("unsent", lambda n: _nth(WebhookSender, "send", n, is_after=False)),
    ("accepted", lambda n: _nth(Outbox, "delivered", n, is_after=False)),
    ("removed", lambda n: _nth(Outbox, "delivered", n, is_after=True)),
)
"""Where a process dies: the commit is done, before the request, before and after its removal."""

NUMBERS: Final = (1, 2, 3)
"""Of which event: the request, the decision, the outcome."""


@dataclass(frozen=True)
class Run:
    """One process that dies, and its chat."""

    point: int
    number: int
    chat: str
    url: str
    folder: Path
    settings: dict[str, Any]

    @property
    def page(self) -> Path:
        """The file with the client's messages when the process dies."""
        return self.folder / f"{self.chat}.json"


def kill(databases: Databases, count: int) -> Tally:
    """Kill so many processes, one after the other, and continue after each of them."""
    tally = Tally(f"kill with webhooks, {databases.kind}")
    places = [(point, number) for number in NUMBERS for point in range(len(POINTS))]
    with _receiving(databases.folder) as (received, settings):
        for index in range(count):
            name = f"chat-{secrets.token_hex(6)}"
            place = places[index % len(places)]
            run = Run(*place, name, databases.url(name), databases.folder, settings)
            tally.add(_die_and_continue(run, received), runs=1)
            if databases.is_alone:
                databases.drop(name)
    return tally


@contextlib.contextmanager
def _receiving(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A receiver in a process of its own; yields its file and the settings of a server."""
    received = folder / "received"
    with socket.create_server(("127.0.0.1", 0)) as free:
        receiver = Receiver(secret=new_secret(), port=free.getsockname()[1])
    settings = settings_of(receiver, folder)
    child = Child(_receive, receiver, received)
    try:
        yield received, settings
    finally:
        child.kill()


def _receive(receiver: Receiver, file: Path) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def accept(event: dict[str, Any]) -> tuple[int, dict[str, str]]:
        os.write(descriptor, f"{json.dumps(event['data'])}\n".encode())
        return 204, {}

    receiver.answer = accept
    address = ("127.0.0.1", receiver.port)
    with ThreadingHTTPServer(address, receiver.handler()) as server:
        server.serve_forever()


def _die_and_continue(run: Run, received: Path) -> list[tuple[str, str]]:
    where = f"{POINTS[run.point][0]} {run.number} in {run.chat}"
    try:
        Child(_die, run).wait_for_death(PATIENCE)
        Child(_continue, run).result(PATIENCE)
        _check(run, received)
    except (ChildError, AssertionError, LostDecision) as error:
        return [failure(error, where)]
    return []


@contextlib.asynccontextmanager
async def _opened(run: Run) -> AsyncIterator[Talk]:
    options = EngineOptions(
        sessions=run.url,
        artifacts=f"file:{run.folder}/artifacts",
        lease_ttl=LEASE,
        **run.settings,
    )
    agent, timings = payer(Effects(run.folder / "effects")), EngineTimings(database=PATIENT)
    engine = await ChatEngine.open(agent, options, timings=timings)
    messages = json.loads(run.page.read_text()) if run.page.exists() else []
    try:
        yield Talk(engine, user=run.chat, chat_id=run.chat, messages=messages)
    finally:
        await engine.close()


async def _die(run: Run) -> None:
    POINTS[run.point][1](run.number + (run.number == 3 and run.point == 0))
    async with _opened(run) as talk:
        await talk.say("pay")
        decide(talk.pending()[0], approved=True)
        run.page.write_text(json.dumps(talk.messages))
        await talk.post_last()
        # The delivery follows; the process dies within it.
        await asyncio.sleep(PATIENCE)


async def _continue(run: Run) -> None:
    """Another process takes over: the client sends its decision again, the outbox is emptied."""
    async with _opened(run) as talk:
        await end_leases(talk.engine.resources.database, after=LEFT)
        if talk.messages:
            await talk.post_last()
        async with asyncio.timeout(PATIENCE):
            # The table of another process announces nothing.
            while await list_entries(run.url):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


def _check(run: Run, received: Path) -> None:
    """Each change of the audit trail has arrived, in the order of the trail."""
    changes = asyncio.run(_changes(run))
    lines = received.read_text().splitlines() if received.exists() else []
    events = [data for data in map(json.loads, lines) if data["chatId"] == run.chat]
    arrived = list(dict.fromkeys(data["state"] for data in events))
    if set(arrived) < set(changes):
        raise LostDecision(f"{arrived} arrived of {changes}")
    assert arrived == changes, f"{arrived} arrived instead of {changes}"


async def _changes(run: Run) -> list[str]:
    selection = AuditFilter(chat=run.chat)
    return [
        entry.action async for entry in read_audit(run.url, selection) if entry.action not in SILENT
    ]
