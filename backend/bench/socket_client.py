"""A minimal WebSocket client."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
import time
from typing import TYPE_CHECKING, Final

from bench.client import BenchError, Exchange
from bench.script import DELTA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.client import Address

_MARK: Final = DELTA.encode()
_END: Final = b'{"type":"end"'
_PIECE: Final = 256 * 1024
_TEXT: Final = 0x1


def ask_over_socket(address: Address, path: str, frame: object) -> Exchange:
    """Send a frame and read to the ``end`` of its request; the body is a frame a line.

    Times begin when the frame is sent: the socket is open by then, as a page's is.

    Raises:
        BenchError: the server does not answer, or ends otherwise.
    """
    try:
        with socket.create_connection(address, timeout=120) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            open_socket(connection, address, path)
            return _timed(connection, masked(json.dumps(frame).encode()))
    except OSError as error:
        raise BenchError(f"The socket at port {address.port} does not answer: {error}.") from error


def open_socket(
    connection: socket.socket,
    address: Address,
    path: str,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Perform the WebSocket handshake on a connection.

    Raises:
        BenchError: The server does not accept the handshake.
    """
    key = base64.b64encode(os.urandom(16)).decode()
    head = (
        f"GET {path} HTTP/1.1\r\nhost: {address.host}:{address.port}\r\nupgrade: websocket\r\n"
        f"connection: Upgrade\r\nsec-websocket-key: {key}\r\nsec-websocket-version: 13\r\n"
    )
    head += "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    connection.sendall(f"{head}\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = connection.recv(_PIECE)
        if not piece:
            break
        answer += piece
    if not answer.startswith(b"HTTP/1.1 101"):
        raise BenchError(f"The socket was not accepted: {answer[:200]!r}.")


def _timed(connection: socket.socket, request: bytes) -> Exchange:
    pieces: list[bytes] = []
    first: float | None = None
    beginning = tail = b""
    worked, began = time.thread_time(), time.perf_counter()
    connection.sendall(request)
    while _END not in tail:
        piece = connection.recv(_PIECE)
        if not piece:
            raise BenchError("The socket was closed before the end of its request.")
        pieces.append(piece)
        tail = tail[-200:] + piece
        if first is None:
            beginning += piece
            if _MARK in beginning:
                first = time.perf_counter() - began
    last = time.perf_counter() - began
    body = b"\n".join(messages(b"".join(pieces)))
    return Exchange(body, first, last, time.thread_time() - worked)


def masked(text: bytes) -> bytes:
    """Return a masked text frame."""
    size = len(text)
    if size < 126:
        head = struct.pack("!BB", 0x80 | _TEXT, 0x80 | size)
    elif size < 65536:
        head = struct.pack("!BBH", 0x80 | _TEXT, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | _TEXT, 0x80 | 127, size)
    # A zero mask is valid and leaves the payload unchanged.
    return head + bytes(4) + text


def messages(stream: bytes) -> list[bytes]:
    """Return the text messages that a server sent, one frame each."""
    found: list[bytes] = []
    at = 0
    while at + 2 <= len(stream):
        size, start = stream[at + 1], at + 2
        if size == 126:
            size, start = int.from_bytes(stream[at + 2 : at + 4], "big"), at + 4
        elif size == 127:
            size, start = int.from_bytes(stream[at + 2 : at + 10], "big"), at + 10
        if stream[at] & 0x0F == _TEXT:
            found.append(stream[start : start + size])
        at = start + size
    return found
