"""Sends large requests: ``python -m bench.large_request_sender HOST PORT TOKEN BYTES``.

It is a process of its own, so that it delays nothing in the one that measures. It sends until its
standard input ends, and then prints how many of each shape it has sent.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections import Counter
from typing import Any, Final

from bench.client import Address, BenchError
from bench.peers import chat_body
from bench.script import SHORT
from bench.socket_client import masked, open_socket

_SENDERS: Final = 4
"""Connections over each transport."""
_PAUSE: Final = 0.02


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

    def __init__(self, address: Address, token: str, size: int) -> None:
        self._address = address
        self._headers = {"authorization": f"Bearer {token}"}
        self._bodies = list(shapes(size).items())
        self._ended = threading.Event()
        self.sent: Counter[str] = Counter()
        self._threads = [
            threading.Thread(target=self._repeat, args=(send, number), daemon=True)
            for number in range(_SENDERS)
            for send in (self._send_body, self._send_frame)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, send: Any, number: int) -> None:
        while not self._ended.is_set():
            name, body = self._bodies[number % len(self._bodies)]
            try:
                send(body)
            except (OSError, BenchError):
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


def main() -> None:
    """Send until the standard input ends."""
    host, port, token, size = sys.argv[1:]
    senders = _Senders(Address(host, int(port)), token, int(size))
    senders.start()
    sys.stdin.read()
    senders.stop()
    print(json.dumps(senders.sent))


if __name__ == "__main__":
    main()
