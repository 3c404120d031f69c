"""The streams of people: raw SSE responses and WebSockets, read at the least cost."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
from typing import TYPE_CHECKING, Any, Final, Protocol

from bench.script import DELTA
from bench.socket_client import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bench.client import Address

_DELTA: Final = f'"delta":"{DELTA}"'.encode()
_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA


class Answer(Protocol):
    """What a stream is read into."""

    def delta(self) -> None:
        """A delta has arrived."""

    def chunk(self, chunk: dict[str, Any]) -> None:
        """Another chunk has arrived."""

    def end(self, how: str) -> None:
        """The stream has ended: ``done``, ``none`` without one, ``refused …`` or ``lost``."""


class EventStream(asyncio.Protocol):
    """One HTTP request and its response, a stream of events.

    Events are taken from the lines of the body: a server sends whole lines in each part of it.
    """

    def __init__(self, request: bytes, answer: Answer) -> None:
        self._request = request
        self._answer = answer
        self._rest = b""
        self._has_ended = False
        self._is_head = True
        self.port = 0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.port = transport.get_extra_info("sockname")[1]
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._is_head:
            data = self._rest + data
            head, end, data = data.partition(b"\r\n\r\n")
            if not end:
                self._rest = head
                return
            self._is_head, self._rest = False, b""
            status = head[9:12]
            if status != b"200":
                self._end("none" if status == b"204" else f"refused {status.decode()}")
                return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if _DELTA in line:
                self._answer.delta()
            elif line.startswith(b"data: {"):
                self._answer.chunk(json.loads(line[6:]))
            elif line.startswith(b"data: [DONE]"):
                self._end("done")

    def connection_lost(self, _: Exception | None) -> None:
        self._end("lost")

    def close(self) -> None:
        """Leave, as a client does whose network is gone."""
        self._has_ended = True
        if self.transport is not None:
            self.transport.abort()

    def _end(self, how: str) -> None:
        if not self._has_ended:
            self.close()
            self._answer.end(how)


class Socket(asyncio.Protocol):
    """A WebSocket with one open request at a time."""

    def __init__(self, address: Address, path: str, headers: Mapping[str, str]) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        self._request = request_of(
            "GET",
            address,
            path,
            {
                "upgrade": "websocket",
                "connection": "Upgrade",
                "sec-websocket-key": key,
                "sec-websocket-version": "13",
                **headers,
            },
        )
        self._answer: Answer | None = None
        self._rest = b""
        self._is_head = True
        self.opened: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether the server has accepted it."""
        self.port = 0
        self.is_open = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.port = transport.get_extra_info("sockname")[1]
        self._transport = transport
        transport.write(self._request)

    def ask(self, frame: Mapping[str, Any], answer: Answer) -> None:
        """Send a request, whose response is read into ``answer``."""
        self._answer = answer
        self._send(masked(json.dumps(frame).encode()))

    def close(self) -> None:
        """Leave, as a client does whose network is gone."""
        self._answer = None
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        if self._is_head:
            head, end, data = data.partition(b"\r\n\r\n")
            if not end:
                self._rest = head
                return
            self._is_head = False
            self.is_open = head.startswith(b"HTTP/1.1 101")
            self.opened.set_result(self.is_open)
        self._rest = read_frames(data, self._frame)

    def connection_lost(self, _: Exception | None) -> None:
        self.is_open = False
        if not self.opened.done():
            self.opened.set_result(False)
        self._end("lost")

    def _frame(self, kind: int, payload: bytes) -> None:
        if kind == _TEXT and self._answer is not None:
            if _DELTA in payload:
                self._answer.delta()
            else:
                self._message(json.loads(payload))
        elif kind == _PING:
            pong = masked(payload)
            self._send(bytes([0x80 | _PONG]) + pong[1:])
        elif kind == _CLOSE:
            self.is_open = False
            self._end("lost")

    def _message(self, frame: dict[str, Any]) -> None:
        if frame["type"] == "chunk" and self._answer is not None:
            self._answer.chunk(frame["chunk"])
        elif frame["type"] == "end":
            self._end("done")
        elif frame["type"] == "no-active":
            self._end("none")
        elif frame["type"] == "error":
            self._end(f"refused {frame.get('code') or frame['errorText']}")

    def _end(self, how: str) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.end(how)

    def _send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


def read_frames(data: bytes, take: Callable[[int, bytes], None]) -> bytes:
    """Call ``take`` with opcode and payload of each complete frame of a server; return the rest."""
    at, size = 0, len(data)
    while at + 2 <= size:
        length, start = data[at + 1], at + 2
        if length == 126:
            length, start = (
                struct.unpack_from("!H", data, start)[0] if size >= at + 4 else size,
                at + 4,
            )
        elif length == 127:
            length, start = (
                struct.unpack_from("!Q", data, start)[0] if size >= at + 10 else size,
                at + 10,
            )
        if start + length > size:
            break
        take(data[at] & 0x0F, data[start : start + length])
        at = start + length
    return data[at:]


def request_of(
    method: str,
    address: Address,
    path: str,
    headers: Mapping[str, str],
    body: bytes = b"",
) -> bytes:
    """Return the bytes of an HTTP request."""
    fields = {"host": f"{address.host}:{address.port}", **headers}
    if method == "POST":
        fields |= {"content-type": "application/json", "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body
