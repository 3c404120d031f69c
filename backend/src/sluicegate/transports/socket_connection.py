"""One accepted WebSocket: reading within limits, deadlines, heartbeats and the close code."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from starlette.websockets import WebSocketDisconnect

from sluicegate.engine.rate_limits import TokenBucket
from sluicegate.errors import RequestError, TooLarge, Unauthenticated
from sluicegate.transports.call_at_session_end import end_with_session
from sluicegate.transports.slow_clients import WriteMonitor, abort_connection
from sluicegate.wire.frames import ErrorFrame, HeartbeatFrame, encode_frame, find_request_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Message
    from starlette.websockets import WebSocket

    from sluicegate.transports.slow_clients import WriteLimits

TEXTS: Final = "sluicegate.texts"
"""The ASGI extension by which the server offers to write many messages at once: ``{"call": …}``."""

UTF_8: Final = "sluicegate.utf8"
"""The key under which the server passes a large text message as it is, without decoding it."""

AUTHENTICATED: Final = "sluicegate.authenticated"
"""The ASGI extension by which the server learns the user of a socket: ``{"call": …}``."""

# Close codes of RFC 6455 section 7.4.1 and of its registry.
NORMAL_CLOSURE: Final = 1000
UNSUPPORTED_DATA: Final = 1003
INVALID_DATA: Final = 1007
POLICY_VIOLATION: Final = 1008
MESSAGE_TOO_BIG: Final = 1009
INTERNAL_ERROR: Final = 1011
SERVICE_RESTART: Final = 1012
"""The server, or the conversation of a live model, ends; the client reconnects."""

TRY_AGAIN_LATER: Final = 1013

# Close codes of the product.
UNAUTHENTICATED: Final = 4401
CHAT_IN_USE: Final = 4409

OnText: TypeAlias = Callable[[list[bytes]], Awaitable[None]]
"""Receives one text message, in UTF-8, as the only item of a list: the receiver removes it, so that
no large message is held beside what it was parsed into."""

OnBinary: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Receives one binary message."""

OnAccept: TypeAlias = Callable[[], Awaitable[None]]
"""Is called when the socket has been accepted."""

SendTexts: TypeAlias = Callable[[Iterable[str]], Awaitable[None]]
"""Sends text messages that are ready together."""


def sign_in_sentence(limit: int) -> str:
    """Return the sentence for a message over this limit on a socket without a user."""
    return (
        f"Before a socket has a user, a message may have {limit:,} bytes; sign in with the session "
        "cookie (POST /session) before the socket is opened."
    )


class Caller(Protocol):
    """The user of a socket."""

    async def authenticate(self, headers: Mapping[str, str]) -> str:
        """Return the user of a frame with these headers; names are in lower case.

        Raises:
            Unauthenticated: There is no user, or another one than that of the handshake.
        """

    async def recheck(self) -> None:
        """Authenticate every accepted user again.

        Raises:
            RequestError: A user is not valid any more.
        """

    @property
    def is_authenticated(self) -> bool:
        """Whether a user has been accepted, by the handshake or by a frame."""

    @property
    def is_revoked(self) -> bool:
        """Whether the user of the handshake is not valid any more."""


@dataclass(frozen=True)
class SocketLimits:
    """The bounds of one socket; times are in seconds.

    ``frame_bytes`` bounds a text message, ``unauthenticated_frame_bytes`` one before a user is
    accepted, ``burst`` and ``frames_per_second`` their rate. ``first_frame`` is the deadline by
    which a socket needs a user, ``idle`` its idle timeout from then on; ``heartbeat`` and
    ``recheck`` are the intervals of heartbeats and of authentication.
    """

    frame_bytes: int
    unauthenticated_frame_bytes: int
    frames_per_second: int
    burst: int
    first_frame: float
    idle: float
    heartbeat: float
    recheck: float
    writes: WriteLimits


class Socket:
    """A WebSocket connection. It reads, keeps deadlines and closes; messages are opaque to it."""

    def __init__(self, websocket: WebSocket, caller: Caller, limits: SocketLimits) -> None:
        self._websocket = websocket
        self._caller = caller
        self._limits = limits
        self._clock = asyncio.get_running_loop().time
        now = self._clock()
        self._frames = TokenBucket(limits.burst, limits.frames_per_second, now=now)
        self._idle_at = now + (limits.idle if caller.is_authenticated else limits.first_frame)
        self._heartbeat_at = now + limits.heartbeat
        self._recheck_at = now + limits.recheck
        self._closed = asyncio.Event()
        self._code: int | None = None
        self._reason = ""
        offered = (websocket.scope.get("extensions") or {}).get(TEXTS) or {}
        self._send_texts: SendTexts = offered.get("call", self._send_each)

    async def run(
        self,
        on_text: OnText,
        *,
        is_busy: Callable[[], bool],
        on_accept: OnAccept | None = None,
        subprotocol: str | None = None,
        on_binary: OnBinary | None = None,
    ) -> None:
        """Accept the socket and read messages until either side closes it.

        A socket is not idle while ``is_busy`` returns True. Without ``on_binary`` a binary message
        closes the socket.
        """
        end_with_session(
            self._websocket.scope, lambda: self.close(UNAUTHENTICATED, Unauthenticated.code)
        )
        try:
            await self._websocket.accept(subprotocol)
        except OSError:
            # The client has disconnected.
            return
        if on_accept is not None:
            await on_accept()
        reading = asyncio.create_task(self._read(on_text, on_binary))
        reading.add_done_callback(lambda _: self._closed.set())
        try:
            await self._keep_deadlines(is_busy)
        finally:
            reading.cancel()
            await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()

    def close(self, code: int | None, reason: str = "") -> None:
        """Close the socket, with a close frame if there is a code; the first call counts."""
        if not self._closed.is_set():
            self._code, self._reason = code, reason
            self._closed.set()

    async def send_close(self) -> None:
        """Send the close frame, if `close` was given a code."""
        if self._code is not None:
            # The client may have closed meanwhile.
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                await self._websocket.close(self._code, self._reason)

    def monitor_writes(self, backlog: Callable[[], int]) -> WriteMonitor:
        """Return a monitor for the writes of one request with this backlog in bytes."""
        return WriteMonitor(self._limits.writes, backlog=backlog, abort=self._abort)

    async def send(self, text: str) -> None:
        """Send a message; blocks while the client does not read, does nothing once closed."""
        if not self._closed.is_set():
            await self._send(self._websocket.send_text, text)

    async def send_all(self, texts: Iterable[str]) -> None:
        """As `send`, with messages that are ready together."""
        if not self._closed.is_set():
            await self._send(self._send_texts, texts)

    async def send_binary(self, data: bytes) -> None:
        """As `send`, with a binary message."""
        if not self._closed.is_set():
            await self._send(self._websocket.send_bytes, data)

    async def _send_each(self, texts: Iterable[str]) -> None:
        for text in texts:
            await self._websocket.send_text(text)

    async def _send(self, send: Callable[[Any], Awaitable[None]], message: Any) -> None:
        self._heartbeat_at = self._clock() + self._limits.heartbeat
        try:
            await send(message)
        except (WebSocketDisconnect, RuntimeError, OSError):
            # RuntimeError: the server has closed the socket itself, for a violation of RFC 6455.
            # OSError: the server's way of writing many messages finds the socket closed.
            self.close(None)

    def mark_active(self) -> None:
        """Restart the idle timeout: a request has begun or ended."""
        self._idle_at = self._clock() + self._limits.idle

    def _abort(self) -> None:
        """Reset the connection of a client that does not read, and drop unsent output."""
        self.close(None)
        abort_connection(self._websocket.scope)

    async def _read(self, on_text: OnText, on_binary: OnBinary | None) -> None:
        while not self._closed.is_set():
            message = await self._websocket.receive()
            binary = message.get("bytes")
            if on_binary is not None and binary is not None:
                await on_binary(binary)
                continue
            data = self._text_of(message)
            del message
            if data is None:
                return
            if not self._caller.is_authenticated and (
                len(data) > self._limits.unauthenticated_frame_bytes
            ):
                await self._refuse_unauthenticated(data)
                return
            unread = [data]
            del data, binary
            await on_text(unread)

    async def _refuse_unauthenticated(self, data: bytes) -> None:
        sentence = sign_in_sentence(self._limits.unauthenticated_frame_bytes)
        request_id = find_request_id(data)
        if request_id is not None:
            await self.send(encode_frame(ErrorFrame(request_id, sentence, TooLarge.code)))
        self.close(MESSAGE_TOO_BIG, TooLarge.code)

    def _text_of(self, message: Message) -> bytes | None:
        """Return the text of a message in UTF-8; None if the message closes the socket."""
        if message["type"] == "websocket.disconnect":
            self.close(None)
            return None
        text = message.get("text")
        data: bytes | None = message.get(UTF_8) if text is None else text.encode()
        if not self._frames.take(self._clock()):
            self.close(POLICY_VIOLATION, "too_many_frames")
        elif data is None:
            self.close(UNSUPPORTED_DATA, "text_only")
        elif len(data) > self._limits.frame_bytes:
            self.close(MESSAGE_TOO_BIG, TooLarge.code)
        else:
            return data
        return None

    async def _keep_deadlines(self, is_busy: Callable[[], bool]) -> None:
        while not self._closed.is_set():
            due = min(self._idle_at, self._heartbeat_at, self._recheck_at)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._closed.wait()
                    return
            await self._check_deadlines(self._clock(), is_busy)

    async def _check_deadlines(self, now: float, is_busy: Callable[[], bool]) -> None:
        if now >= self._idle_at:
            if is_busy():
                self._idle_at = now + self._limits.idle
            elif not self._caller.is_authenticated:
                self.close(POLICY_VIOLATION, "timeout")
            else:
                self.close(NORMAL_CLOSURE, "idle")
        if now >= self._recheck_at:
            self._recheck_at = now + self._limits.recheck
            try:
                await self._caller.recheck()
            except RequestError as error:
                self.close(UNAUTHENTICATED, error.code)
        if now >= self._heartbeat_at:
            await self.send(encode_frame(HeartbeatFrame()))
