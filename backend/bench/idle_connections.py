"""``python -m bench.idle_connections``: thousands of idle streams, sockets and approvals.

Takes about a minute. It stands beside ``make bench`` because it wants 20,000 open files.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import socket
import sqlite3
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.client import BenchError, get_json, post
from bench.crowd import MANY
from bench.idle_sockets import idle_socket, settled
from bench.peers import chat_body
from bench.pending import ask
from bench.script import ENDLESS
from bench.server_process import ServerProcess, own_server, sluicegate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.client import Address

EACH: Final = 5_000
"""Number of streams, and of sockets."""

TURNS: Final = 50
"""Number of running turns, each with many readers: a turn costs more than a reader."""

PENDING: Final = 10_000
ANSWERED: Final = 100
CONNECTION_KIB: Final = 40.0
PENDING_KIB: Final = 8.0
READY_SECONDS: Final = 5.0
OTHERS_SECONDS: Final = 0.1
"""Maximum values per connection, approval on disk, start, and concurrent request."""

_OTHERS: Final = 300
_PATIENCE: Final = 60.0
_PIECE: Final = 1 << 14
_OUR_TABLES: Final = ("sluicegate_approvals", "sluicegate_chats")
"""Copied with the sessions; to the audit trail only a server adds lines."""


@dataclass(frozen=True, slots=True)
class Connections:
    """KiB of resident memory per connection, and seconds of concurrent requests."""

    count: int
    stream_kib: float
    socket_kib: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """Cost of pending approvals: KiB on disk per approval, and seconds of a server start."""

    count: int
    disk_kib: float
    ready: float
    tasks: int
    answered: float


def measure_connections(
    server: ServerProcess, *, count: int, turns: int = TURNS, others: int = _OTHERS
) -> Connections:
    """Open ``count`` streams of ``turns`` and as many sockets, and time ``others`` meanwhile.

    Raises:
        BenchError: one is refused.
    """
    address = server.address()
    with contextlib.ExitStack() as opened:
        chats = [f"endless-{number}" for number in range(turns)]
        for chat in chats:
            opened.enter_context(_running_turn(address, chat))
        for number in range(count // 50):
            opened.enter_context(_stream(address, chats[number % turns]))
            opened.enter_context(idle_socket(address))
        before = settled(server)
        for number in range(count):
            opened.enter_context(_stream(address, chats[number % turns]))
        with_streams = settled(server)
        for _ in range(count):
            opened.enter_context(idle_socket(address))
        with_sockets = settled(server)
        took = sorted(_timed(address) for _ in range(others))
    return Connections(
        count,
        (with_streams - before) / count,
        (with_sockets - with_streams) / count,
        took[len(took) // 2],
        took[len(took) * 99 // 100],
    )


def measure_waiting(folder: Path, *, count: int, decided: int = ANSWERED) -> Waiting:
    """Start a server on a database with ``count`` pending approvals, and decide some of them.

    Raises:
        BenchError: an answer is not accepted.
    """
    place = folder / "waiting"
    with ServerProcess(own_server("approvals"), place, {}) as server:
        ask(server, "first")
        message = get_json(server.address(), "/api/chats/first")["messages"][-1]["id"]
    path = place / ".sluicegate" / "sluicegate.db"
    size = path.stat().st_size
    _multiply(path, count)
    disk = (path.stat().st_size - size) / 1024 / count
    with ServerProcess(own_server("approvals"), place, {}) as server:
        address = server.address()
        began = time.perf_counter()
        get_json(address, "/api/chats")
        ready = time.perf_counter() - began
        tasks = get_json(address, "/held")["tasks"]
        chosen = random.Random(1).sample(range(1, count), decided)
        began = time.perf_counter()
        for number in chosen:
            [approval] = _approvals(path, f"first-{number}")
            # The copies share approval ids, so decisions go through the chat endpoint.
            answer = post(address, "/api/chat", _decision(f"first-{number}", message, approval))
            if b'"tool-output-available"' not in answer.body:
                raise BenchError(f"An approval was not taken: {answer.body[-300:]!r}.")
        answered = (time.perf_counter() - began) / decided
    return Waiting(count, disk, ready, tasks, answered)


def _multiply(path: Path, count: int) -> None:
    """Copy every row of the pending chat under new ids."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        tables = {"sessions": "id", "events": "session_id", **dict.fromkeys(_OUR_TABLES, "chat")}
        for table, chat in tables.items():
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            kept = [f'"{name}"' for name in columns]
            taken = ["?1" if name == f'"{chat}"' else name for name in kept]
            first = f"""CREATE TEMP TABLE "of {table}" AS SELECT * FROM {table} """
            database.execute(f"""{first} WHERE "{chat}" = 'first'""")
            statement = (
                f"INSERT INTO {table} ({', '.join(kept)}) "
                f"""SELECT {", ".join(taken)} FROM "of {table}" """
            )
            names = ((f"first-{number}",) for number in range(1, count))
            database.executemany(statement, names)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _approvals(path: Path, chat: str) -> list[tuple[str, str]]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        query = "SELECT approval_id, call FROM sluicegate_approvals WHERE chat = ?"
        return list(database.execute(query, (chat,)))


def _decision(chat: str, message: str, approval: tuple[str, str]) -> dict[str, Any]:
    part = {
        "type": "tool-transfer",
        "toolCallId": approval[1],
        "state": "approval-responded",
        "approval": {"id": approval[0], "approved": True},
    }
    return {"id": chat, "message": {"id": message, "role": "assistant", "parts": [part]}}


@contextlib.contextmanager
def _running_turn(address: Address, chat: str) -> Iterator[None]:
    content = json.dumps(chat_body(chat, ENDLESS)).encode()
    head = f"POST /api/chat HTTP/1.1\r\nhost: {address.host}:{address.port}\r\n"
    more = f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    with _reading(address, (head + more).encode() + content):
        yield


@contextlib.contextmanager
def _stream(address: Address, chat: str) -> Iterator[None]:
    head = f"GET /api/chat/{chat}/stream HTTP/1.1\r\nhost: {address.host}:{address.port}\r\n\r\n"
    with _reading(address, head.encode()):
        yield


@contextlib.contextmanager
def _reading(address: Address, request: bytes) -> Iterator[None]:
    with socket.create_connection(address, timeout=_PATIENCE) as connection:
        connection.sendall(request)
        begun = b""
        while b'"start"' not in begun:
            piece = connection.recv(_PIECE)
            if not piece or b" 204 " in begun:
                raise BenchError(f"A stream was refused: {begun[:300]!r}.")
            begun += piece
        yield


def _timed(address: Address) -> float:
    began = time.perf_counter()
    get_json(address, "/api/chats")
    return time.perf_counter() - began


def main() -> int:
    """Measure and print; return 1 if a measurement failed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with ServerProcess(sluicegate("free", *MANY), folder / "idle", {}) as server:
                print(_of_connections(measure_connections(server, count=EACH)), flush=True)
            print(_of_waiting(measure_waiting(folder, count=PENDING)))
    except BenchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _of_connections(found: Connections) -> str:
    return (
        f"{found.count:,} streams {found.stream_kib:.1f} KiB each, {found.count:,} sockets "
        f"{found.socket_kib:.1f} KiB each (at most {CONNECTION_KIB:.0f}); beside them a request "
        f"takes {found.p50 * 1e3:.1f} ms, p99 {found.p99 * 1e3:.1f} (at most "
        f"{OTHERS_SECONDS * 1e3:.0f})"
    )


def _of_waiting(waiting: Waiting) -> str:
    return (
        f"{waiting.count:,} approvals wait: {waiting.disk_kib:.1f} KiB on disk each (at most "
        f"{PENDING_KIB:.0f}), {waiting.tasks} tasks; a server answers {waiting.ready:.2f} s after "
        f"it listens (at most {READY_SECONDS:.0f}), and each of {ANSWERED} in "
        f"{waiting.answered * 1e3:.0f} ms"
    )


if __name__ == "__main__":
    sys.exit(main())
