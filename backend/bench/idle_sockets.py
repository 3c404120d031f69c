"""Memory cost of idle sockets, and what remains after they are closed."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.client import BenchError
from bench.socket_client import masked, open_socket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.client import Address
    from bench.server_process import ServerProcess

BUDGET_KIB: Final = 40.0
"""Resident memory for each idle socket."""

GROWTH_KIB: Final = 2.0
"""Maximum KiB that rounds after the first leave behind for each socket."""

_QUIET: Final = 0.5
"""Seconds of constant memory after which a server is considered to have freed it."""
_PATIENCE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Idle:
    """Resident KiB with ``count`` sockets: before, then open and closed in each round."""

    sockets: int
    before: int
    opened: tuple[int, ...]
    closed: tuple[int, ...]

    @property
    def kib_per_socket(self) -> float:
        """KiB of resident memory per socket in the first round, which cannot reuse memory."""
        return (self.opened[0] - self.before) / self.sockets

    @property
    def growth(self) -> float:
        """KiB per socket that all rounds after the first left behind."""
        return (self.closed[-1] - self.closed[0]) / self.sockets


def measure_idle(server: ServerProcess, *, sockets: int, rounds: int) -> Idle:
    """Open the sockets, resume a missing chat on each, and close them, in several rounds.

    A few sockets warm the server up.

    Raises:
        BenchError: a socket is not accepted, or not answered.
    """
    address = server.address()
    with contextlib.ExitStack() as few:
        for _ in range(max(1, sockets // 50)):
            few.enter_context(idle_socket(address))
    before = settled(server)
    opened, closed = [], []
    for _ in range(rounds):
        with contextlib.ExitStack() as many:
            for _ in range(sockets):
                many.enter_context(idle_socket(address))
            opened.append(server.resident_kib())
        closed.append(settled(server))
    return Idle(sockets, before, tuple(opened), tuple(closed))


@contextlib.contextmanager
def idle_socket(address: Address) -> Iterator[None]:
    """A socket that has resumed a missing chat."""
    frame = {"type": "resume", "requestId": "r1", "id": secrets.token_hex(8), "headers": {}}
    with socket.create_connection(address, timeout=_PATIENCE) as connection:
        open_socket(connection, address, "/api/chat/ws")
        connection.sendall(masked(json.dumps(frame).encode()))
        answer = b""
        while b'"no-active"' not in answer:
            piece = connection.recv(1 << 12)
            if not piece:
                raise BenchError(f"An idle socket was not answered: {answer!r}.")
            answer += piece
        yield


def settled(server: ServerProcess) -> int:
    """Resident memory after it has become constant."""
    deadline, resident, since = time.monotonic() + _PATIENCE, server.resident_kib(), 0.0
    while time.monotonic() < deadline and since < _QUIET:
        time.sleep(0.1)
        now = server.resident_kib()
        since = since + 0.1 if now == resident else 0.0
        resident = now
    return resident
