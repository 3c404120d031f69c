"""A minimal HTTP client, so that the measurement reflects the server."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.script import DELTA

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARK: Final = DELTA.encode()
_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"
_PIECE: Final = 256 * 1024


class BenchError(Exception):
    """A precondition of a measurement is not met."""


class Address(NamedTuple):
    """Host and port of a server."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """A response and its times, in seconds since the request was sent.

    ``first`` is when the first delta had arrived, None if there was none; ``last`` when the
    response had ended. ``cpu`` is what this client itself worked meanwhile.
    """

    body: bytes
    first: float | None
    last: float
    cpu: float


def post(
    address: Address, path: str, body: object, headers: Mapping[str, str] | None = None
) -> Exchange:
    """Send a JSON body and read the response to its end.

    Raises:
        BenchError: The status is not a success, or the server does not answer.
    """
    content = json.dumps(body).encode()
    fields = {"content-type": "application/json", "content-length": str(len(content))}
    return _exchange(address, _head("POST", address, path, {**fields, **(headers or {})}) + content)


def post_file(address: Address, path: str, data: bytes, media_type: str) -> Any:
    """Upload a file unchanged and return the JSON response; raises as `post` does."""
    fields = {"content-type": media_type, "content-length": str(len(data))}
    return json.loads(_exchange(address, _head("POST", address, path, fields) + data).body)


def get_json(address: Address, path: str, headers: Mapping[str, str] | None = None) -> Any:
    """Fetch a JSON document; raises as `post` does."""
    return json.loads(_exchange(address, _head("GET", address, path, headers or {})).body)


def _head(method: str, address: Address, path: str, headers: Mapping[str, str]) -> bytes:
    fields = {"host": f"{address.host}:{address.port}", "connection": "close", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode()


def _exchange(address: Address, request: bytes) -> Exchange:
    try:
        with socket.create_connection(address, timeout=120) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return _timed(connection, request)
    except OSError as error:
        raise BenchError(f"The server at port {address.port} does not answer: {error}.") from error


def _timed(connection: socket.socket, request: bytes) -> Exchange:
    pieces: list[bytes] = []
    first: float | None = None
    beginning = tail = b""
    worked, began = time.thread_time(), time.perf_counter()
    connection.sendall(request)
    while piece := connection.recv(_PIECE):
        pieces.append(piece)
        if first is None:
            beginning += piece
            if _MARK in beginning:
                first = time.perf_counter() - began
        # Some servers ignore ``Connection: close``.
        tail = tail[-len(_LAST_CHUNK) :] + piece
        if tail.endswith(_LAST_CHUNK):
            break
    last = time.perf_counter() - began
    return Exchange(content(b"".join(pieces)), first, last, time.thread_time() - worked)


def content(response: bytes) -> bytes:
    """Return the body of a whole HTTP/1.1 response.

    Raises:
        BenchError: The status is not a success, or the response is cut.
    """
    head, _, body = response.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    chunked = "transfer-encoding: chunked" in lines
    plain = b"".join(_chunks(body)) if chunked else body
    if not lines[0].startswith("http/1.1 2"):
        raise BenchError(f"The server answered {lines[0]!r}: {plain[:500]!r}.")
    return plain


def _chunks(body: bytes) -> list[bytes]:
    chunks: list[bytes] = []
    position = 0
    while True:
        end = body.find(b"\r\n", position)
        if end < 0:
            raise BenchError("The response was cut before its end.")
        size = int(body[position:end], 16)
        if size == 0:
            return chunks
        chunks.append(body[end + 2 : end + 2 + size])
        position = end + 2 + size + 2
