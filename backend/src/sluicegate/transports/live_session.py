"""One live socket: opens its chat for an authenticated user, and connects the two."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluicegate.engine.client_request_options import RequestingClient
from sluicegate.engine.describe_exceptions import describe
from sluicegate.errors import HeldByAnotherOwner, RequestError, Unauthenticated, as_request_error
from sluicegate.live.outgoing_frame_queue import ChatEnded
from sluicegate.transports.socket_connection import (
    CHAT_IN_USE,
    INTERNAL_ERROR,
    SERVICE_RESTART,
    TRY_AGAIN_LATER,
    UNAUTHENTICATED,
)
from sluicegate.wire.frames import ErrorFrame, ResumeFrame, SendFrame, encode_frame
from sluicegate.wire.live_frames import (
    LIVE_ID,
    ActivityFrame,
    GoAwayFrame,
    ImageFrame,
    InterruptFrame,
    TurnFrame,
    encode_live_frame,
    parse_live_frame,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluicegate.engine.interface import Engine
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.live.chat import OpenChat
    from sluicegate.live.outgoing_frame_queue import EndReason
    from sluicegate.transports.audio_limits import AudioMeter
    from sluicegate.transports.socket_request_tasks import SocketContext, SocketRequests
    from sluicegate.wire.requests import ChatRequest

NAME: Final = "live"
"""The name of the transport in the audit trail."""

REQUEST_GRACE: Final = 2.0
"""Seconds in which open requests may end after the chat has ended."""

_CLOSE_CODES: Final[Mapping[EndReason, int]] = {
    "lease_lost": CHAT_IN_USE,
    "run_failed": INTERNAL_ERROR,
    "model_ended": SERVICE_RESTART,
}

_log: Final = logging.getLogger("sluicegate")


@dataclass(frozen=True)
class LiveSocketOptions:
    """The query and the subprotocol that a socket was opened with."""

    chat: str
    with_audio: bool
    marked_by_client: bool


class LiveTurns:
    """Starts and resumes the turns of a socket's chat, once the chat is open."""

    def __init__(self) -> None:
        self.chat: OpenChat | None = None

    async def start(
        self, request: ChatRequest, *, user: str, client: RequestingClient
    ) -> TurnReader:
        """Start or continue an exchange; raises RequestError."""
        return await self._open_chat.start(request, user=user, client=client)

    async def resume(
        self, frame: ResumeFrame, *, user: str, client: RequestingClient
    ) -> TurnReader | None:
        """Return a reader of a message from its beginning, None if there is nothing to resume."""
        return await self._open_chat.resume(frame, user=user, client=client)

    @property
    def _open_chat(self) -> OpenChat:
        if self.chat is None:
            raise Unauthenticated
        return self.chat


class LiveSession:
    """The chat of one socket, from the first authenticated frame to the end of the socket.

    Args:
        engine: Opens the chat.
        options: What the socket was opened with.
        meter: Limits the audio of the client.
        context: The socket.
        requests: The socket's requests.
        turns: Gets the chat when it is open.
    """

    def __init__(
        self,
        engine: Engine,
        options: LiveSocketOptions,
        *,
        meter: AudioMeter,
        context: SocketContext,
        requests: SocketRequests,
        turns: LiveTurns,
    ) -> None:
        self._engine = engine
        self._options = options
        self._meter = meter
        self._context = context
        self._requests = requests
        self._turns = turns
        self._opening: asyncio.Task[None] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._announcements: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Open the chat, if the handshake authenticates the user."""
        try:
            user = await self._context.caller.authenticate({})
        except Unauthenticated:
            # A frame may carry a token.
            return
        except RequestError as error:
            await self._send_error(error)
            self._context.socket.close(TRY_AGAIN_LATER, error.code)
            return
        self._start_opening(user)

    async def receive(self, unread: list[bytes]) -> None:
        """Handle one text message, which is removed from the list."""
        limit = self._context.limits.file_bytes
        large = self._context.large
        frame = await large.run(
            len(unread[0]),
            lambda: parse_live_frame(unread.pop(), max_image=limit, loads=large.loads),
        )
        if self._opening is None and isinstance(frame, SendFrame | ResumeFrame):
            try:
                self._start_opening(await self._context.caller.authenticate(frame.headers))
            except RequestError as error:
                await self._requests.reject(frame.request_id, error)
                return
        if isinstance(frame, ActivityFrame | ImageFrame | InterruptFrame):
            await self._receive_live(frame)
            return
        if self._opening is not None:
            await asyncio.wait([self._opening])
            if self._turns.chat is None:
                return
        await self._requests.dispatch(frame)

    async def receive_audio(self, pcm: bytes) -> None:
        """Handle one binary message."""
        socket = self._context.socket
        fault = self._meter.fault(pcm, asyncio.get_running_loop().time())
        if fault is not None:
            socket.close(*fault)
        elif (chat := await self._opened_chat()) is not None:
            socket.mark_active()
            chat.receive_audio(pcm)

    @property
    def is_opening(self) -> bool:
        """Whether the chat is being opened."""
        return self._opening is not None and not self._opening.done()

    def go_away(self) -> None:
        """Announce to the client that the socket ends soon."""
        if self._turns.chat is not None:
            self._turns.chat.outbox.send(GoAwayFrame())

    async def disconnect(self) -> None:
        """Close the chat: the socket has ended."""
        self._requests.disconnect()
        for task in (self._sending, *self._announcements):
            if task is not None:
                task.cancel()
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._turns.chat is not None:
            await self._turns.chat.close()

    async def _opened_chat(self) -> OpenChat | None:
        """Wait for the chat; None if it cannot be opened, which closes the socket."""
        if self._opening is None:
            self._context.socket.close(UNAUTHENTICATED, Unauthenticated.code)
            return None
        if not self._opening.done():
            await asyncio.wait([self._opening])
        return self._turns.chat

    async def _receive_live(self, frame: ActivityFrame | ImageFrame | InterruptFrame) -> None:
        chat = await self._opened_chat()
        if chat is None:
            return
        self._context.socket.mark_active()
        try:
            chat.receive_frame(frame)
        except RequestError as error:
            await self._requests.reject(LIVE_ID, error)

    def _start_opening(self, user: str) -> None:
        self._opening = asyncio.create_task(self._open(user))

    async def _open(self, user: str) -> None:
        options, socket = self._options, self._context.socket
        try:
            chat = await self._engine.open_live(
                options.chat,
                user=user,
                client=RequestingClient(7, via=NAME),
                with_audio=options.with_audio,
                marked_by_client=options.marked_by_client,
            )
        except Exception as error:  # noqa: BLE001 - the close code depends on the error
            refusal = as_request_error(error)
            if refusal is not error:
                _log.error("a live chat could not be opened: %s", describe(error))
            if refusal is None:
                socket.close(INTERNAL_ERROR, "internal")
                return
            await self._send_error(refusal)
            is_in_use = isinstance(refusal, HeldByAnotherOwner)
            socket.close(CHAT_IN_USE if is_in_use else TRY_AGAIN_LATER, refusal.code)
        else:
            self._turns.chat = chat
            socket.mark_active()
            self._sending = asyncio.create_task(self._send_outbox(chat))

    async def _send_outbox(self, chat: OpenChat) -> None:
        socket = self._context.socket
        writes = socket.monitor_writes(lambda: chat.outbox.backlog)
        try:
            async for outgoing in chat.outbox.read():
                writes.started()
                if isinstance(outgoing, bytes):
                    await socket.send_binary(outgoing)
                elif isinstance(outgoing, ChatEnded):
                    await self._requests.wait_until_idle(REQUEST_GRACE)
                    await self._send_error(outgoing.error)
                    socket.close(_CLOSE_CODES[outgoing.reason], outgoing.error.code)
                elif isinstance(outgoing, TurnFrame):
                    task = asyncio.create_task(self._announce(outgoing))
                    self._announcements.add(task)
                    task.add_done_callback(self._announcements.discard)
                else:
                    await socket.send(encode_live_frame(outgoing))
                writes.finished()
        finally:
            writes.close()

    async def _announce(self, turn: TurnFrame) -> None:
        """Announce a turn when no request is open: a client reads one answer at a time."""
        await self._requests.wait_until_idle()
        await self._context.socket.send(encode_live_frame(turn))

    async def _send_error(self, error: RequestError) -> None:
        await self._context.socket.send(
            encode_frame(ErrorFrame(LIVE_ID, error.message, error.code))
        )
