"""WebSocket with the limits that uvicorn's protocol does not have.

What the application never sees is counted here: control frames and the pieces of a message. A
peer that does not answer a ping is dropped at once, also when it has stopped to read.
"""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, ClassVar, Final

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from sluicegate.engine.limits import TokenBucket
from sluicegate.transports.backpressure import ABORT
from sluicegate.transports.socket import TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from websockets.frames import Frame

    from sluicegate.server.settings import Settings

PING_SECONDS: Final = 20.0
"""Seconds between two pings, and from a ping to the end of a peer that does not answer."""

_PIECES: Final = 64
_BYTES_A_PIECE: Final = 1024
_POLICY: Final = 1008

_TEXT: Final = 0x81
"""A whole message of text."""
_SMALL: Final = 125
_MEDIUM: Final = 65_535
_HEADS: Final = tuple(bytes((_TEXT, size)) for size in range(_SMALL + 1))


class LimitedSocketProtocol(WebSocketsSansIOProtocol):
    """One socket. The application judges messages; this judges what never becomes one."""

    burst: ClassVar[int] = 100
    frames_per_second: ClassVar[int] = 20

    _frames: TokenBucket | None = None
    # Of the message that is arriving.
    _pieces = 0
    _bytes = 0

    async def run_asgi(self) -> None:
        """Offer the application to reset the connection, and to write much at once."""
        extensions = self.scope["extensions"] or {}
        offered: dict[str, dict[object, object]] = {
            ABORT: {"call": self.transport.abort},
            TEXTS: {"call": self.send_texts},
        }
        self.scope["extensions"] = {**extensions, **offered}
        await super().run_asgi()

    async def send_texts(self, texts: Iterable[str]) -> None:
        """Send text messages, each a frame of its own, in one write; else as `send`.

        Raises:
            ClientDisconnected: the socket is closing, or is closed.
        """
        await self.writable.wait()
        if self.disconnected or self.close_sent or self.conn.state is not State.OPEN:
            raise ClientDisconnected
        self.transport.write(b"".join(_framed(texts)))

    def handle_text(self, event: Frame) -> None:
        """Begin a message."""
        self._pieces, self._bytes = 1, len(event.data)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        """Begin a message."""
        self._pieces, self._bytes = 1, len(event.data)
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        """Refuse a message in many small pieces: each of them costs more than its bytes.

        Browsers cut a large message into pieces of many kibibytes.
        """
        if self.close_sent:
            return
        self._pieces += 1
        self._bytes += len(event.data)
        if self._pieces > _PIECES + self._bytes // _BYTES_A_PIECE:
            self._refuse("too_many_pieces")
        else:
            super().handle_cont(event)

    def handle_ping(self) -> None:
        """Answer a ping; a flood of them is refused."""
        if self._is_flooded():
            self._refuse("too_many_frames")
        else:
            super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        """Take a pong; a flood of them is refused."""
        if self._is_flooded():
            self._refuse("too_many_frames")
        else:
            super().handle_pong(event)

    def keepalive_timeout(self) -> None:
        """Drop the connection: what waits to be written would keep it open for ever."""
        super().keepalive_timeout()
        self.transport.abort()

    def _is_flooded(self) -> bool:
        now = self.loop.time()
        if self._frames is None:
            self._frames = TokenBucket(self.burst, self.frames_per_second, now=now)
        return not self._frames.take(now)

    def _refuse(self, reason: str) -> None:
        if not self.close_sent:
            self.conn.fail(_POLICY, reason)
            self.handle_parser_exception()


def _framed(texts: Iterable[str]) -> Iterator[bytes]:
    """The frames of a server's text messages, without extensions (RFC 6455, section 5.2)."""
    for text in texts:
        data = text.encode()
        size = len(data)
        if size <= _SMALL:
            yield _HEADS[size]
        elif size <= _MEDIUM:
            yield pack("!BBH", _TEXT, _SMALL + 1, size)
        else:
            yield pack("!BBQ", _TEXT, _SMALL + 2, size)
        yield data


def socket_protocol(settings: Settings) -> type[LimitedSocketProtocol]:
    """Return the protocol with the limits that are set."""
    limits = {
        "burst": settings.max_frames_burst,
        "frames_per_second": settings.max_frames_per_second,
    }
    return type("LimitedSocketProtocol", (LimitedSocketProtocol,), limits)
