"""Small requests of one user while another one sends the largest bodies and frames."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.client import BenchError, get_json, post
from bench.idle_sockets import settled
from bench.peers import chat_body
from bench.script import SHORT
from bench.server_process import PATH, ServerProcess, module, sluicegate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bench.client import Address

P99: Final = 0.25
"""Maximum 99th percentile of the seconds of a small request."""
GROWTH_MIB: Final = 250
"""Maximum MiB by which the process grows."""
LEFT: Final = 0.10
"""Maximum share of the memory before that is still in use afterwards."""

_CACHED: Final = 75.0
"""Seconds in which a server returns its memory; by default a file stays cached for 60."""
LARGEST: Final = 32 * 1024 * 1024
_WARM_SIZE: Final = 1024 * 1024
_PAUSE: Final = 0.02
_USERS: Final = ("small", "large")


@dataclass(frozen=True, slots=True)
class Flood:
    """Seconds of small requests, and MiB of the server before, at most, and after.

    ``read`` and ``chat`` are the lists of chats and whole short answers; ``large`` counts the
    requests of the other user by the shape of their content.
    """

    read: tuple[float, ...]
    chat: tuple[float, ...]
    alone: tuple[float, ...]
    large: dict[str, int]
    before: float
    peak: float
    after: float

    @property
    def growth(self) -> float:
        """MiB by which the process has grown."""
        return self.peak - self.before

    @property
    def left(self) -> float:
        """The share of the memory before by which it is larger afterwards."""
        return self.after / self.before - 1


def percentile(values: tuple[float, ...], share: float) -> float:
    """Return the value at a share of the sorted values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def measure_flood(folder: Path, *, seconds: float, size: int = LARGEST) -> Flood:
    """Start a server with two users, and let one of them send large requests.

    Raises:
        BenchError: A small request is refused, or no large one was answered.
    """
    folder.mkdir(exist_ok=True)
    tokens = folder / "tokens"
    tokens.write_text(
        "".join(f"sha256:{hashlib.sha256(u.encode()).hexdigest()} {u}\n" for u in _USERS)
    )
    tokens.chmod(0o600)
    command = sluicegate("free", "--auth", f"bearer:{tokens}")
    small = {"authorization": f"Bearer {_USERS[0]}"}
    with ServerProcess(command, folder / "server", {"BENCH_DELTAS": "50"}) as server:
        address = server.address()
        # What both kinds of requests load once belongs to the memory before.
        with _sending(address, _WARM_SIZE):
            _small_requests(server, small, seconds=1)
        _, alone = _small_requests(server, small, seconds=min(seconds, 5))
        before, peak = settled(server), 0
        with _sending(address, size) as sent:
            until = time.perf_counter() + seconds
            read: list[float] = []
            chat: list[float] = []
            while time.perf_counter() < until:
                more = _small_requests(server, small, seconds=0.1)
                read += more[0]
                chat += more[1]
                peak = max(peak, server.resident_kib())
        after = _returned(server, before)
    if not sent:
        raise BenchError("No large request was sent.")
    return Flood(tuple(read), tuple(chat), alone, sent, before / 1024, peak / 1024, after / 1024)


def _returned(server: ServerProcess, before: int) -> int:
    """Resident memory when no more than permitted is left, or when its time is over."""
    deadline = time.monotonic() + _CACHED
    while time.monotonic() < deadline:
        resident = settled(server)
        if resident <= before * (1 + LEFT):
            return resident
    return settled(server)


@contextlib.contextmanager
def _sending(address: Address, size: int) -> Iterator[dict[str, int]]:
    """Send large requests in a process; yields their counts by shape, complete at the end."""
    sent: dict[str, int] = {}
    host, port = address
    command = module("bench.large_request_sender", host, str(port), _USERS[1], str(size))
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": PATH}, stdin=pipe, stdout=pipe
    ) as sender:
        try:
            yield sent
        finally:
            printed, _ = sender.communicate()
    sent.update(json.loads(printed or "{}"))


def _small_requests(
    server: ServerProcess, headers: Mapping[str, str], *, seconds: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Read the list of chats and send a short message, again and again."""
    address = server.address()
    read: list[float] = []
    chat: list[float] = []
    until = time.perf_counter() + seconds
    while not read or time.perf_counter() < until:
        began = time.perf_counter()
        get_json(address, "/api/chats", headers)
        listed = time.perf_counter()
        post(address, "/api/chat", chat_body(secrets.token_hex(8), SHORT), headers)
        read.append(listed - began)
        chat.append(time.perf_counter() - listed)
        time.sleep(_PAUSE)
    return tuple(read), tuple(chat)
