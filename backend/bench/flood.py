"""Small requests of one user while another one sends the largest bodies and frames."""

from __future__ import annotations

import hashlib
import json
import secrets
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bench.client import BenchError, get_json, post
from bench.idle import settled
from bench.peers import chat_body
from bench.script import SHORT
from bench.server_process import ServerProcess, sluicegate
from bench.socket_client import masked, open_socket

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bench.client import Address

P99: Final = 0.25
"""Maximum 99th percentile of the seconds of a small request."""
GROWTH_MIB: Final = 250
"""Maximum MiB by which the process grows."""
LEFT: Final = 0.10
"""Maximum share of the memory before that is still in use afterwards."""

LARGEST: Final = 32 * 1024 * 1024
_SENDERS: Final = 4
"""Connections over each transport that send large requests."""
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


def shapes(size: int) -> dict[str, bytes]:
    """Return JSON of about this many bytes, of each kind that is costly to parse."""
    inner = {
        "text": b'"' + b"x" * (size - 1_000) + b'"',
        "escapes": b'"' + b"\\n" * (size // 2 - 1_000) + b'"',
        "values": b"[" + b"[]," * min(240_000, size // 3 - 1_000) + b"[]]",
        "too many values": b"[" + b"[]," * (size // 3 - 1_000) + b"[]]",
    }
    body = json.dumps(chat_body("large", SHORT))[:-1].encode()
    found = {name: body + b',"decoration":' + value + b"}" for name, value in inner.items()}
    file = b"A" * (min(size - 4_000, 26 * 2**20) // 4 * 4)
    part = b'{"type":"file","mediaType":"image/png","url":"data:image/png;base64,' + file + b'"}'
    found["file"] = body.replace(b'"parts": [', b'"parts": [' + part + b",", 1) + b"}"
    return found


class _Senders:
    """Threads that send large requests until they are stopped."""

    def __init__(self, address: Address, headers: Mapping[str, str], size: int) -> None:
        self._address = address
        self._headers = headers
        self._bodies = list(shapes(size).items())
        self._ended = threading.Event()
        self.sent: Counter[str] = Counter()
        self._threads = [
            threading.Thread(target=self._repeat, args=(send, number), daemon=True)
            for number in range(_SENDERS)
            for send in (self._send_body, self._send_frame)
        ]

    def __enter__(self) -> _Senders:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, send: Any, number: int) -> None:
        while not self._ended.is_set():
            name, body = self._bodies[number % len(self._bodies)]
            try:
                send(body)
            except OSError:
                # A request that is refused may be cut off.
                time.sleep(_PAUSE)
            self.sent[name] += 1
            number += 1

    def _send_body(self, body: bytes) -> None:
        head = {**self._headers, "content-type": "application/json", "connection": "close"}
        head |= {"host": f"{self._address.host}:{self._address.port}"}
        head |= {"content-length": str(len(body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        with socket.create_connection(self._address, timeout=60) as connection:
            connection.sendall(f"POST /api/chat HTTP/1.1\r\n{lines}\r\n".encode())
            connection.sendall(body)
            while connection.recv(1 << 16):
                pass

    def _send_frame(self, body: bytes) -> None:
        frame = b'{"type":"send","requestId":"r1",' + body[1:]
        with socket.create_connection(self._address, timeout=60) as connection:
            open_socket(connection, self._address, "/api/chat/ws", self._headers)
            connection.sendall(masked(frame))
            answer = b""
            while not any(end in answer for end in (b'"type":"end"', b'"type":"error"')):
                piece = connection.recv(1 << 16)
                if not piece:
                    return
                answer = answer[-100:] + piece


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
    small, large = ({"authorization": f"Bearer {user}"} for user in _USERS)
    with ServerProcess(command, folder / "server", {"BENCH_DELTAS": "50"}) as server:
        address = server.address()
        _small_requests(server, small, seconds=0.5)
        _, alone = _small_requests(server, small, seconds=min(seconds, 5))
        before, peak = settled(server), 0
        with _Senders(address, large, size) as senders:
            until = time.perf_counter() + seconds
            read: list[float] = []
            chat: list[float] = []
            while time.perf_counter() < until:
                more = _small_requests(server, small, seconds=0.1)
                read += more[0]
                chat += more[1]
                peak = max(peak, server.resident_kib())
        after = settled(server)
    if not senders.sent:
        raise BenchError("No large request was sent.")
    return Flood(
        tuple(read),
        tuple(chat),
        alone,
        dict(senders.sent),
        before / 1024,
        peak / 1024,
        after / 1024,
    )


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
