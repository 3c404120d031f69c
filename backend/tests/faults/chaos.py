"""A proxy that injects network faults: cuts, resets, delays, silence, fragments."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

Direction = Literal["up", "down"]
"""To the server, or to the client."""

_PIECE: Final = 64 * 1024
_RESET: Final = struct.pack("ii", 1, 0)
"""A linger time of zero: closing such a socket sends RST instead of FIN."""


@dataclass
class Weather:
    """The faults of all connections; a change applies from the next piece on."""

    delay: float = 0.0
    """Seconds of delay for each piece."""
    size: int = _PIECE
    """Bytes of a piece; with 1 every byte arrives alone."""
    silent: set[Direction] = field(default_factory=set)
    """Directions in which bytes are dropped while the connection stays open."""
    spares: Callable[[Direction, bytes], bool] = lambda _direction, _piece: True
    """Called with each piece; False resets its connection."""
    swallows: Callable[[Direction, bytes], bool] = lambda _direction, _piece: False
    """Called with each piece; True makes its connection silent in both directions."""


class Chaos:
    """A proxy in front of one server, which listens on `port`."""

    def __init__(self, host: str, port: int) -> None:
        self.weather = Weather()
        self.port = 0
        self.connections = 0
        """The number of connections so far."""
        self._target = (host, port)
        self._open: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The URL of the proxy."""
        return f"http://127.0.0.1:{self.port}"

    async def up(self) -> None:
        """Start to accept connections."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Reset every connection and refuse new ones until `up`."""
        self.reset()
        if self._server is not None:
            self._server.close()
            self._server = None
        tasks = [connection.task for connection in self._open]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def cut(self) -> None:
        """Close every connection with FIN, as a client that disconnects."""
        for connection in list(self._open):
            connection.end(is_reset=False)

    def reset(self) -> None:
        """Reset every connection with RST."""
        for connection in list(self._open):
            connection.end(is_reset=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        connection = _Connection(self, task, [writer])
        self._open.add(connection)
        try:
            await connection.live(reader, self._target)
        except (OSError, asyncio.CancelledError):
            connection.end(is_reset=True)
        finally:
            self._open.discard(connection)
            connection.end(is_reset=False)


class _Connection:
    """A connection of a client and the one to the server."""

    def __init__(
        self, chaos: Chaos, task: asyncio.Task[None], writers: list[asyncio.StreamWriter]
    ) -> None:
        self.task = task
        self._chaos = chaos
        self._writers = writers
        self._is_silent = False

    async def live(self, reader: asyncio.StreamReader, target: tuple[str, int]) -> None:
        """Connect to the server and forward bytes in both directions."""
        there = await asyncio.open_connection(*target)
        self._writers.append(there[1])
        await asyncio.gather(
            self.carry("up", reader, there[1]), self.carry("down", there[0], self._writers[0])
        )

    async def carry(
        self, way: Direction, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Forward bytes in one direction until the end."""
        while data := await reader.read(_PIECE):
            for piece in _pieces(data, self._chaos):
                weather = self._chaos.weather
                if weather.delay:
                    await asyncio.sleep(weather.delay)
                if not weather.spares(way, piece):
                    self.end(is_reset=True)
                    return
                if weather.swallows(way, piece):
                    self._is_silent = True
                if way in weather.silent or self._is_silent:
                    continue
                writer.write(piece)
                await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()

    def end(self, *, is_reset: bool) -> None:
        """Close both connections."""
        for writer in self._writers:
            if writer.transport.is_closing():
                continue
            if is_reset:
                raw = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()
            else:
                writer.close()


def _pieces(data: bytes, chaos: Chaos) -> Iterator[bytes]:
    while data:
        size = chaos.weather.size
        yield data[:size]
        data = data[size:]


@contextlib.asynccontextmanager
async def chaos_before(port: int, *, host: str = "127.0.0.1") -> AsyncIterator[Chaos]:
    """Run a proxy in front of a server."""
    chaos = Chaos(host, port)
    await chaos.up()
    try:
        yield chaos
    finally:
        await chaos.down()
