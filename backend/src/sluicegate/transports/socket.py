"""One open socket: what it takes in, how long it may be silent, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from starlette.websockets import WebSocketDisconnect

from sluicegate.engine.limits import TokenBucket
from sluicegate.errors import RequestError
from sluicegate.transports.backpressure import Backlog, reset
from sluicegate.wire.frames import HeartbeatFrame, encode_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Message
    from starlette.websockets import WebSocket

    from sluicegate.transports.backpressure import Patience

TEXTS: Final = "sluicegate.texts"
"""The ASGI extension by which the server offers to write many messages at once: ``{"call": …}``."""

RESTART: Final = 1012
"""The server ends; a client that comes back finds its turns."""

NOT_ACCEPTED: Final = 1003
BROKEN_DATA: Final = 1007
POLICY: Final = 1008
TOO_LARGE: Final = 1009
FAULT: Final = 1011
IDLE: Final = 1000
SIGNED_OUT: Final = 4401

Take: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Takes one text message, in UTF-8."""

SendTexts: TypeAlias = Callable[[Iterable[str]], Awaitable[None]]
"""Sends text messages that are ready together."""

Accepted: TypeAlias = Callable[[], Awaitable[None]]
"""Is called when the socket is open."""


class Caller(Protocol):
    """Who is behind a socket."""

    async def user(self, headers: Mapping[str, str]) -> str:
        """Return the user of a frame with these headers; names are in lower case.

        Raises:
            Unauthenticated: Nobody, or not who it was when the socket was opened.
        """

    async def check(self) -> None:
        """Ask again about everybody who was accepted.

        Raises:
            RequestError: Somebody is not accepted any more.
        """

    @property
    def is_gone(self) -> bool:
        """Whether who opened the socket is not accepted any more."""


@dataclass(frozen=True)
class SocketLimits:
    """What one socket may bring, and for how many seconds it may be silent."""

    frame_bytes: int
    frames_per_second: int
    burst: int
    first_frame: float
    idle: float
    heartbeat: float
    recheck: float
    patience: Patience


class Socket:
    """An accepted connection. It reads, keeps time and closes; what is said is not its business."""

    def __init__(self, websocket: WebSocket, caller: Caller, limits: SocketLimits) -> None:
        """Take a connection that is not accepted yet."""
        self._websocket = websocket
        self._caller = caller
        self._limits = limits
        self._clock = asyncio.get_running_loop().time
        now = self._clock()
        self._frames = TokenBucket(limits.burst, limits.frames_per_second, now=now)
        self._idle_at = now + limits.first_frame
        self._heartbeat_at = now + limits.heartbeat
        self._recheck_at = now + limits.recheck
        self._over = asyncio.Event()
        self._code: int | None = None
        self._reason = ""
        self._first_is_missing = True
        self._take_binary: Take | None = None
        offered = (websocket.scope.get("extensions") or {}).get(TEXTS) or {}
        self._send_texts: SendTexts = offered.get("call", self._send_each)

    async def run(
        self,
        take: Take,
        *,
        is_busy: Callable[[], bool],
        accepted: Accepted | None = None,
        subprotocol: str | None = None,
        take_binary: Take | None = None,
    ) -> None:
        """Read messages until either side ends the socket; a busy one is not idle.

        Without ``take_binary`` a binary message ends it; with one, it says what becomes of it.
        """
        self._take_binary = take_binary
        try:
            await self._websocket.accept(subprotocol)
        except OSError:
            # Whoever asked for it is gone.
            return
        if accepted is not None:
            await accepted()
        reading = asyncio.create_task(self._read(take))
        reading.add_done_callback(lambda _: self._over.set())
        try:
            await self._keep_time(is_busy)
        finally:
            reading.cancel()
            await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()

    async def close(self) -> None:
        """Say why it ended, if there is still somebody to hear it."""
        if self._code is not None:
            # The other side may have closed meanwhile.
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                await self._websocket.close(self._code, self._reason)

    def watched(self, behind: Callable[[], int]) -> Backlog:
        """Return what watches the writes of one request, of which so many bytes are ready."""
        return Backlog(self._limits.patience, behind=behind, give_up=self._give_up)

    async def send(self, text: str) -> None:
        """Send a message; waits while the client does not read. After the end it is lost."""
        if self._over.is_set():
            return
        await self._send(self._websocket.send_text, text)

    async def send_all(self, texts: Iterable[str]) -> None:
        """Send messages that are ready together."""
        if self._over.is_set():
            return
        self._heartbeat_at = self._clock() + self._limits.heartbeat
        try:
            await self._send_texts(texts)
        except (WebSocketDisconnect, RuntimeError, OSError):
            self.end(None)

    async def _send_each(self, texts: Iterable[str]) -> None:
        for text in texts:
            await self._websocket.send_text(text)

    async def send_binary(self, data: bytes) -> None:
        """The same with a binary message."""
        if not self._over.is_set():
            await self._send(self._websocket.send_bytes, data)

    async def _send(self, send: Callable[[Any], Awaitable[None]], message: str | bytes) -> None:
        self._heartbeat_at = self._clock() + self._limits.heartbeat
        try:
            await send(message)
        except (WebSocketDisconnect, RuntimeError):
            # RuntimeError: the server has closed by itself, for a message that was no WebSocket's.
            self.end(None)

    def end(self, code: int | None, reason: str = "") -> None:
        """End the socket, with a close frame if there is a code; the first end counts."""
        if not self._over.is_set():
            self._code, self._reason = code, reason
            self._over.set()

    def was_used(self) -> None:
        """Note that something meaningful has come or has ended: silence begins anew."""
        self._first_is_missing = False
        self._idle_at = self._clock() + self._limits.idle

    def _give_up(self) -> None:
        """Drop a client that takes nothing; what waits to be written goes with it."""
        self.end(None)
        reset(self._websocket.scope)

    async def _read(self, take: Take) -> None:
        while not self._over.is_set():
            message = await self._websocket.receive()
            binary = message.get("bytes")
            if self._take_binary is not None and binary is not None:
                await self._take_binary(binary)
                continue
            data = self._data_of(message)
            if data is None:
                return
            await take(data)

    def _data_of(self, message: Message) -> bytes | None:
        """Return what a message brings; None ends the socket."""
        if message["type"] == "websocket.disconnect":
            self.end(None)
            return None
        text = message.get("text")
        if not self._frames.take(self._clock()):
            self.end(POLICY, "too_many_frames")
        elif text is None:
            self.end(NOT_ACCEPTED, "text_only")
        elif len(data := text.encode()) > self._limits.frame_bytes:
            self.end(TOO_LARGE, "too_large")
        else:
            return bytes(data)
        return None

    async def _keep_time(self, is_busy: Callable[[], bool]) -> None:
        while not self._over.is_set():
            due = min(self._idle_at, self._heartbeat_at, self._recheck_at)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._over.wait()
                    return
            await self._look(self._clock(), is_busy)

    async def _look(self, now: float, is_busy: Callable[[], bool]) -> None:
        if now >= self._idle_at:
            if is_busy():
                self._idle_at = now + self._limits.idle
            elif self._first_is_missing:
                self.end(POLICY, "timeout")
            else:
                self.end(IDLE, "idle")
        if now >= self._recheck_at:
            self._recheck_at = now + self._limits.recheck
            try:
                await self._caller.check()
            except RequestError as error:
                self.end(SIGNED_OUT, error.code)
        if now >= self._heartbeat_at:
            await self.send(encode_frame(HeartbeatFrame()))
