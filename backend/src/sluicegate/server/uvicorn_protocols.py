"""HTTP and WebSocket protocols with the limits that uvicorn's own do not have.

The application judges whole requests and whole messages. These classes judge what never becomes
one: a head that does not end, an unread body, control frames, and fragments. They rely
on private parts of uvicorn, which `sluicegate.server.asgi_private_api_check` lists.
"""

from __future__ import annotations

from collections import deque
from http import HTTPStatus
from importlib.util import find_spec
from struct import pack
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal
from weakref import proxy

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from sluicegate.engine.rate_limits import TokenBucket
from sluicegate.server.arriving_message_limits import SocketInput
from sluicegate.transports.large_request_queue import LARGE
from sluicegate.transports.slow_clients import ABORT
from sluicegate.transports.socket_connection import AUTHENTICATED, POLICY_VIOLATION, TEXTS, UTF_8
from sluicegate.wire.frames import ErrorFrame, encode_frame, find_request_id

_HAS_HTTPTOOLS: Final = find_spec("httptools") is not None

if TYPE_CHECKING or _HAS_HTTPTOOLS:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
else:
    # PyPy has no httptools; `http_protocol` chooses uvicorn's h11 protocol there.
    HttpToolsProtocol = object

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Iterator

    from uvicorn._types import ASGIReceiveEvent
    from websockets.frames import Frame

    from sluicegate.errors import RequestError
    from sluicegate.server.arriving_message_limits import InputLimits
    from sluicegate.server.connection_limits import ConnectionLimits
    from sluicegate.server.settings import Settings

_FRAGMENTS: Final = 64
_BYTES_PER_FRAGMENT: Final = 1024

_MASK: Final = 4
_BEGINNING: Final = 4 * 1024
_LINGER: Final = 5.0
"""Seconds for which the rest of a refused message is read."""

_TEXT: Final = 0x81
"""The first byte of an unfragmented text message."""
_SMALL: Final = 125
_MEDIUM: Final = 65_535
_SMALL_HEADERS: Final = tuple(bytes((_TEXT, size)) for size in range(_SMALL + 1))


class LimitedHttpProtocol(HttpToolsProtocol):
    """An HTTP/1.1 connection with a bounded head, and deadlines for heads and unread bodies."""

    max_head_bytes: ClassVar[int] = 32 * 1024
    max_head_fields: ClassVar[int] = 100
    head_timeout: ClassVar[float] = 10.0
    unread_body_timeout: ClassVar[float] = 5.0
    connections_allowed: ClassVar[ConnectionLimits]

    # Set while the request line and the headers of a message are incomplete.
    _in_head = False
    # Set from the end of a head to the end of its body.
    _in_body = False
    # Bytes of a head that continues after the packet in which it began.
    _head_bytes = 0
    _is_finishing = False
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection; start the deadline of the first head."""
        super().connection_made(transport)
        if self.connections_allowed.accept(transport, self.client[0] if self.client else None):
            self._set_deadline(self.head_timeout)
        else:
            self._refuse(
                503, "unavailable", "The server has too many connections; try again later."
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection and clear the deadline."""
        self.connections_allowed.release(self.transport)
        self._clear_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data; count the bytes and the fields of a head that continues."""
        if self.transport.is_closing():
            return
        was_in_head = self._in_head
        if self._deadline is None and not self._in_body:
            self._set_deadline(self.head_timeout)
        super().data_received(data)
        if was_in_head and self._in_head:
            self._head_bytes += len(data)
            too_many = len(self.headers) > self.max_head_fields
            if too_many or self._head_bytes > self.max_head_bytes:
                self._refuse(413, "too_large", "The head of the request is too large; send less.")

    def on_message_begin(self) -> None:
        """Begin a head; let the application reset the connection."""
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: {"call": self.transport.abort}}
        self._in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """End the head; the application has a deadline for the body."""
        self._in_head = False
        self._in_body = True
        self._clear_deadline()
        super().on_headers_complete()
        if self._is_finishing and self.cycle is not None:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """End the body."""
        self._in_body = False
        self._clear_deadline()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start a short deadline for the rest of a body that the application has not read."""
        super().on_response_complete()
        if self._in_body:
            self._set_deadline(self.unread_body_timeout)

    def finish(self) -> bool:
        """Close the connection after its first response, or once it is idle.

        Returns whether it has sent a request. Bytes of a first request may be on their way, which
        a close would lose.
        """
        self._is_finishing = True
        has_sent = self.cycle is not None
        if has_sent:
            self.shutdown()
        return has_sent

    def send_400_response(self, msg: str) -> None:
        """Refuse data that is not HTTP, in the form of every refusal."""
        self._refuse(400, "malformed", "The request is not valid HTTP; check it.")

    def _should_upgrade(self) -> bool:
        """Upgrade GET requests alone; uvicorn leaves the upgrade of another method unanswered."""
        return self.scope["method"] == "GET" and super()._should_upgrade()

    def _set_deadline(self, seconds: float) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(seconds, self._expire)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        if self._in_head:
            self._refuse(408, "timeout", "The request took too long to arrive; send it again.")
        else:
            self.transport.close()

    def _refuse(self, status: int, code: str, text: str) -> None:
        if self.transport.is_closing():
            return
        body = text.encode("ascii")
        head = (
            b"HTTP/1.1 %d %b\r\n"
            b"content-type: text/plain; charset=utf-8\r\n"
            b"x-content-type-options: nosniff\r\n"
            b"x-error-code: %b\r\n%bcontent-length: %d\r\nconnection: close\r\n\r\n"
        ) % (
            status,
            HTTPStatus(status).phrase.encode("ascii"),
            code.encode("ascii"),
            b"retry-after: 5\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else b"",
            len(body),
        )
        self.transport.write(head + body)
        self.transport.close()


class LimitedSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket with bounded control frames, fragments and messages that arrive.

    A peer that does not answer a ping is disconnected at once, even if it has stopped reading.
    """

    burst: ClassVar[int] = 100
    frames_per_second: ClassVar[int] = 20
    input_limits: ClassVar[InputLimits]
    connections_allowed: ClassVar[ConnectionLimits]
    live_path: ClassVar[str]
    live_ping: ClassVar[tuple[float, float]]

    # Made by the first control frame: most sockets receive none but pongs.
    _control_frames: TokenBucket | None = None
    _is_processing = False
    # The fragments and the bytes of the message that arrives.
    _fragments = 0
    _bytes = 0
    # The mask of the frame that arrives.
    _mask = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin without a user."""
        super().connection_made(transport)
        # A weak reference: a cycle would keep closed sockets until a garbage collection.
        self._input = SocketInput(self.input_limits, self.loop, proxy(self))
        # The bytes of messages that the application has not processed, the oldest first.
        self._unread: deque[int] = deque()

    def start_keepalive(self) -> None:
        """Begin to send pings, more of them on a live socket: a frozen page keeps its chat."""
        if self.scope["path"] == self.live_path:
            self.ping_interval, self.ping_timeout = self.live_ping
        super().start_keepalive()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release what the input holds, and the connection, which HTTP has counted."""
        self._input.close()
        self.connections_allowed.release(self.transport)
        super().connection_lost(exc)
        # The suspended parser refers to the connection, which would be in a cycle with it.
        self.conn.parser.close()

    def data_received(self, data: bytes) -> None:
        """Parse data; measure the message that arrives."""
        buffer = self.conn.reader.buffer
        was_empty = not buffer
        super().data_received(data)
        if was_empty and buffer:
            self._mask = data[: len(data) - len(buffer)][-_MASK:]
        self._measure()

    async def receive(self) -> ASGIReceiveEvent:
        """Return the next message; the one before it is processed."""
        if self._is_processing:
            self._is_processing = False
            self._unread.popleft()
            self._measure()
        message = await super().receive()
        self._is_processing = message["type"] == "websocket.receive"
        if self._input.is_waiting:
            self.transport.pause_reading()
        return message

    def pause(self) -> None:
        """Stop reading."""
        self.transport.pause_reading()

    def resume(self) -> None:
        """Read on, unless a message waits for the application."""
        if not self.read_paused:
            self.transport.resume_reading()

    def refuse(self, error: RequestError, close_code: int) -> None:
        """Answer the message that arrives with an error, and close the socket.

        The rest of the message is read and dropped for some seconds: if the connection ended at
        once, the client would lose the answer.
        """
        self._input.close()
        if self.close_sent or self.conn.state is not State.OPEN:
            self.transport.close()
            return
        request_id = find_request_id(self._beginning())
        if request_id is not None:
            frame = ErrorFrame(request_id, error.message, error.code)
            self.conn.send_text(encode_frame(frame).encode())
        self.conn.fail(close_code, error.code)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": close_code})
        self.close_timer = self.loop.call_later(_LINGER, self.transport.close)
        self.transport.resume_reading()

    def send_receive_event_to_app(self) -> None:
        """Pass a message to the application, a large text as it is."""
        if self.close_sent or self.curr_msg_data_type != "text" or self._bytes < LARGE:
            super().send_receive_event_to_app()
        else:
            message: Any = {"type": "websocket.receive", UTF_8: b"".join(self.frames)}
            self.frames = []
            self.queue.put_nowait(message)
            self.read_paused = True
            self.transport.pause_reading()
        if not self.close_sent:
            self._unread.append(self._bytes)

    def _measure(self) -> None:
        arriving = len(self.conn.reader.buffer) + (self._bytes if self.frames else 0)
        self._input.update(arriving=arriving, unread=sum(self._unread))

    def _beginning(self) -> bytes:
        """Return the beginning of the message that arrives."""
        if self.frames:
            return bytes(self.frames[0][:_BEGINNING])
        masked = self.conn.reader.buffer[:_BEGINNING]
        if len(self._mask) < _MASK:
            return b""
        return bytes(byte ^ self._mask[index % _MASK] for index, byte in enumerate(masked))

    async def run_asgi(self) -> None:
        """Let the application reset the connection and write many messages at once."""
        extensions = self.scope["extensions"] or {}
        offered: dict[str, dict[object, object]] = {
            ABORT: {"call": self.transport.abort},
            TEXTS: {"call": self.send_texts},
            AUTHENTICATED: {"call": self._input.authenticate},
        }
        self.scope["extensions"] = {**extensions, **offered}
        try:
            await super().run_asgi()
        finally:
            # The methods refer to this object, which would be in a cycle with its scope.
            self.scope["extensions"] = extensions

    async def send_texts(self, texts: Iterable[str]) -> None:
        """Send text messages, each in a frame of its own, in one write; else as `send`.

        Raises:
            ClientDisconnected: The socket is closing or closed.
        """
        await self.writable.wait()
        if self.disconnected or self.close_sent or self.conn.state is not State.OPEN:
            raise ClientDisconnected
        self.transport.write(b"".join(_text_frames(texts)))

    def handle_text(self, event: Frame) -> None:
        """Begin a text message."""
        self._fragments, self._bytes = 1, len(event.data)
        super().handle_text(event)
        _release(event)

    def handle_bytes(self, event: Frame) -> None:
        """Begin a binary message."""
        self._fragments, self._bytes = 1, len(event.data)
        super().handle_bytes(event)
        _release(event)

    def handle_cont(self, event: Frame) -> None:
        """Refuse a message in many small fragments: each of them costs more than its bytes.

        Browsers cut a large message into fragments of many kibibytes.
        """
        if self.close_sent:
            return
        self._fragments += 1
        self._bytes += len(event.data)
        if self._fragments > _FRAGMENTS + self._bytes // _BYTES_PER_FRAGMENT:
            self._refuse("too_many_pieces")
        else:
            super().handle_cont(event)
            _release(event)

    def handle_ping(self) -> None:
        """Answer a ping; refuse a flood of them."""
        if self._take_control_frame():
            super().handle_ping()
        else:
            self._refuse("too_many_frames")

    def handle_pong(self, event: Frame) -> None:
        """Accept a pong; refuse a flood of them."""
        if self._take_control_frame():
            super().handle_pong(event)
        else:
            self._refuse("too_many_frames")

    def keepalive_timeout(self) -> None:
        """Reset the connection: unsent output would keep it open for ever."""
        super().keepalive_timeout()
        self.transport.abort()

    def _take_control_frame(self) -> bool:
        now = self.loop.time()
        if self._control_frames is None:
            self._control_frames = TokenBucket(self.burst, self.frames_per_second, now=now)
        return self._control_frames.take(now)

    def _refuse(self, reason: str) -> None:
        if not self.close_sent:
            self.conn.fail(POLICY_VIOLATION, reason)
            self.handle_parser_exception()


def _release(frame: Frame) -> None:
    """Drop the data of a frame that was passed on: the parser keeps it until the next one."""
    frame.data = b""


def _text_frames(texts: Iterable[str]) -> Iterator[bytes]:
    """Frame the text messages of a server, without extensions (RFC 6455, section 5.2)."""
    for text in texts:
        data = text.encode()
        size = len(data)
        if size <= _SMALL:
            yield _SMALL_HEADERS[size]
        elif size <= _MEDIUM:
            yield pack("!BBH", _TEXT, _SMALL + 1, size)
        else:
            yield pack("!BBQ", _TEXT, _SMALL + 2, size)
        yield data


def http_protocol(
    settings: Settings, connections: ConnectionLimits, *, unread_body_timeout: float
) -> type[LimitedHttpProtocol] | Literal["h11"]:
    """Return the HTTP protocol with the limits of the settings."""
    if not _HAS_HTTPTOOLS:
        return "h11"
    limits = {
        "max_head_bytes": settings.max_head_bytes,
        "max_head_fields": settings.max_head_fields,
        "head_timeout": settings.head_timeout,
        "unread_body_timeout": unread_body_timeout,
        "connections_allowed": connections,
    }
    return type("LimitedHttpProtocol", (LimitedHttpProtocol,), limits)


def socket_protocol(
    settings: Settings,
    connections: ConnectionLimits,
    input_limits: InputLimits,
    *,
    live_ping: tuple[float, float],
) -> type[LimitedSocketProtocol]:
    """Return the WebSocket protocol with the limits of the settings.

    ``live_ping`` are the seconds between two pings of a live socket, and up to its end without an
    answer.
    """
    limits = {
        "live_path": f"{settings.prefix}/live",
        "live_ping": live_ping,
        "input_limits": input_limits,
        "connections_allowed": connections,
        "burst": settings.max_frames_burst,
        "frames_per_second": settings.max_frames_per_second,
    }
    return type("LimitedSocketProtocol", (LimitedSocketProtocol,), limits)
