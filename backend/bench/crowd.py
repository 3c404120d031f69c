"""Concurrent streams: the regularity of their deltas, and the cost of each stream."""

from __future__ import annotations

import json
import re
import secrets
import selectors
import socket
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bench.client import BenchError
from bench.peers import chat_body
from bench.script import DELTA, ENDLESS, STEADY, WHEN

if TYPE_CHECKING:
    from bench.server_process import ServerProcess

MANY: Final = ("env:SLUICEGATE_MAX_TURNS=1000", "env:SLUICEGATE_MAX_TURNS_PER_USER=1000")
"""Options of a server that runs many concurrent turns."""
_MARK: Final = f'"delta":"{DELTA}"'.encode()
_MOMENT: Final = re.compile(rb'"delta":"(\d+\.\d+) "')
RATE: Final = 100
"""Deltas per second of each stream."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Concurrent streams at `RATE`: seconds between two deltas, and CPU seconds per delta."""

    streams: int
    p50: float
    p99: float
    worst: float
    work: float | None


@dataclass(slots=True)
class _Stream:
    connection: socket.socket
    times: list[float] = field(default_factory=list)
    tail: bytes = b""
    begun: bytes = b""

    def take(self, now: float) -> bool:
        """Read the available bytes; False at the end of the stream."""
        piece = self.connection.recv(1 << 16)
        self.note(piece, now)
        return bool(piece)

    def note(self, piece: bytes, now: float) -> None:
        """Record the times of the deltas that were read."""
        seen = self.tail + piece
        self.times.extend([now] * seen.count(_MARK))
        # A possible prefix of a mark is scanned again, a complete mark is not.
        line = seen[seen.rfind(b"\n") + 1 :]
        self.tail = b"" if _MARK in line else line[-len(_MARK) :]


def measure_crowd(server: ServerProcess, *, streams: int, seconds: int) -> Crowd:
    """Open the streams concurrently and record the time of each delta.

    Raises:
        BenchError: a stream lost deltas.
    """
    opened = [_opened(server, f"{STEADY} {RATE} {seconds}") for _ in range(streams)]
    before = server.loop_seconds()
    with selectors.DefaultSelector() as selector:
        for stream in opened:
            selector.register(stream.connection, selectors.EVENT_READ, stream)
        while selector.get_map():
            for key, _ in selector.select(timeout=30):
                if not key.data.take(time.perf_counter()):
                    selector.unregister(key.fileobj)
                    key.data.connection.close()
    after = server.loop_seconds()
    lost = [len(stream.times) for stream in opened if len(stream.times) != RATE * seconds]
    if lost:
        raise BenchError(f"A stream of {RATE * seconds} deltas sent {lost[0]}.")
    gaps = sorted(
        later - earlier
        for stream in opened
        for earlier, later in zip(stream.times, stream.times[1:], strict=False)
    )
    deltas = streams * RATE * seconds
    work = None if before is None or after is None else (after - before) / deltas
    return Crowd(streams, _at(gaps, 0.5), _at(gaps, 0.99), gaps[-1], work)


def measure_memory(server: ServerProcess, *, streams: int) -> float:
    """Return the KiB of resident memory per open stream, measured after a warm-up."""
    warm = [_opened(server, ENDLESS) for _ in range(streams // 4 or 1)]
    before = server.resident_kib()
    opened = [_opened(server, ENDLESS) for _ in range(streams)]
    grown = server.resident_kib() - before
    for stream in (*warm, *opened):
        stream.connection.close()
    return grown / streams


def measure_lag(server: ServerProcess, *, times: int) -> float:
    """Return the seconds from the model's first delta to its arrival, in new chats."""
    lags = []
    for _ in range(times):
        stream = _opened(server, WHEN)
        said, now = stream.begun, time.perf_counter()
        while (found := _MOMENT.search(said)) is None:
            piece = stream.connection.recv(1 << 16)
            now = time.perf_counter()
            if not piece:
                raise BenchError(f"The model did not say when: {said[-300:]!r}.")
            said += piece
        lags.append(now - float(found[1]))
        stream.connection.close()
    return statistics.median(lags)


def _opened(server: ServerProcess, text: str) -> _Stream:
    """Send a request and wait for the first chunk."""
    address = server.address()
    body = json.dumps(chat_body(secrets.token_hex(8), text)).encode()
    connection = socket.create_connection(address, timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = (
        f"POST /api/chat HTTP/1.1\r\nhost: {address.host}:{address.port}\r\nx-ai-sdk: 7\r\n"
        f"content-type: application/json\r\nconnection: close\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body)
    begun = b""
    while b'"start"' not in begun:
        piece = connection.recv(1 << 16)
        if not piece:
            raise BenchError(f"A stream was refused: {begun[:300]!r}.")
        begun += piece
    stream = _Stream(connection, begun=begun)
    stream.note(begun, time.perf_counter())
    return stream


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
