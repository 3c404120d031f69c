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
"""What the rounds after the first may leave behind, for each socket that was open in them."""

_QUIET: Final = 0.5
"""Seconds without a change of its memory after which a server has let go of what was closed."""
_PATIENCE: Final = 10.0


@dataclass(frozen=True, slots=True)
class Idle:
    """So many sockets at once: KiB resident before, then open and closed again, round by round."""

    sockets: int
    before: int
    opened: tuple[int, ...]
    closed: tuple[int, ...]

    @property
    def kib_per_socket(self) -> float:
        """KiB of resident memory for each, in the first round, which finds nothing to use again."""
        return (self.opened[0] - self.before) / self.sockets

    @property
    def growth(self) -> float:
        """KiB for each socket that all rounds after the first have left."""
        return (self.closed[-1] - self.closed[0]) / self.sockets


def measure_idle(server: ServerProcess, *, sockets: int, rounds: int) -> Idle:
    """Open the sockets, ask on each for something that is not there, close them; again and again.

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
    """A socket that has asked for something which is not there."""
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
    """Resident memory once it does not change any more."""
    deadline, resident, since = time.monotonic() + _PATIENCE, server.resident_kib(), 0.0
    while time.monotonic() < deadline and since < _QUIET:
        time.sleep(0.1)
        now = server.resident_kib()
        since = since + 0.1 if now == resident else 0.0
        resident = now
    return resident
