"""One live socket: it opens the chat when it knows who calls, and passes on what both sides say."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sluicegate.engine.failures import describe
from sluicegate.engine.turn.reader import Client
from sluicegate.errors import HeldElsewhere, RequestError, Unauthenticated, refusal_of
from sluicegate.live.outbox import Ended
from sluicegate.live.supervisor import HELD_CLOSE_CODE
from sluicegate.transports.http_requests import PARSE_IN_THREAD_BYTES
from sluicegate.transports.socket import INTERNAL_ERROR, UNAUTHENTICATED
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
    from sluicegate.engine.engine import Engine
    from sluicegate.engine.turn.reader import TurnReader
    from sluicegate.live.chat import OpenChat
    from sluicegate.transports.audio_in import AudioMeter
    from sluicegate.transports.socket_requests import SocketContext, SocketRequests
    from sluicegate.wire.requests import ChatRequest

NAME: Final = "live"
"""What the transport is called in the audit trail."""

TRY_AGAIN: Final = 1013

PATIENCE: Final = 2.0
"""Seconds in which requests may come to their ends when the chat is not live any more."""

_log: Final = logging.getLogger("sluicegate")


@dataclass(frozen=True)
class LiveSocketOptions:
    """What a socket was opened for."""

    chat: str
    with_audio: bool
    marked_by_client: bool


class LiveSession:
    """The chat of one socket, from the first sign of who calls to the end."""

    def __init__(self, engine: Engine, wish: LiveSocketOptions, meter: AudioMeter) -> None:
        """Take what the socket was opened for; `bind` says which socket it is."""
        self._engine = engine
        self._wish = wish
        self._meter = meter
        self._live: OpenChat | None = None
        self._opening: asyncio.Task[None] | None = None
        self._passing: asyncio.Task[None] | None = None
        self._announcing: set[asyncio.Task[None]] = set()
        self._opened: SocketContext
        self._requests: SocketRequests

    def bind(self, opened: SocketContext, requests: SocketRequests) -> None:
        """Take the socket and its requests."""
        self._opened, self._requests = opened, requests

    async def start(self, request: ChatRequest, *, user: str, client: Client) -> TurnReader:
        """Answer a request of the socket."""
        return await self._chat().start(request, user=user, client=client)

    async def resume(self, frame: ResumeFrame, *, user: str, client: Client) -> TurnReader | None:
        """Answer a resume of the socket."""
        return await self._chat().resume(frame, user=user, client=client)

    async def begin(self) -> None:
        """Open the chat, if it is known already who calls."""
        try:
            user = await self._opened.caller.authenticate({})
        except Unauthenticated:
            # A frame may bring a token.
            return
        self._open(user)

    async def take(self, data: bytes) -> None:
        """Take one text message."""
        limit = self._opened.limits.file_bytes
        if len(data) >= PARSE_IN_THREAD_BYTES:
            frame = await asyncio.to_thread(parse_live_frame, data, max_image=limit)
        else:
            frame = parse_live_frame(data, max_image=limit)
        if self._opening is None and isinstance(frame, SendFrame | ResumeFrame):
            try:
                self._open(await self._opened.caller.authenticate(frame.headers))
            except RequestError as error:
                await self._requests.reject(frame.request_id, error)
                return
        if isinstance(frame, ActivityFrame | ImageFrame | InterruptFrame):
            await self._take_live(frame)
            return
        if self._opening is not None:
            await asyncio.wait([self._opening])
            if self._live is None:
                return
        await self._requests.dispatch(frame)

    async def take_audio(self, pcm: bytes) -> None:
        """Take one binary message."""
        socket = self._opened.socket
        fault = self._meter.fault(pcm, asyncio.get_running_loop().time())
        if fault is not None:
            socket.close(*fault)
        elif (live := await self._known()) is not None:
            socket.mark_active()
            live.hear(pcm)

    def go_away(self) -> None:
        """Tell the client that the socket ends soon."""
        if self._live is not None:
            self._live.out.frame(GoAwayFrame())

    async def leave(self) -> None:
        """The socket has ended: let go of the chat."""
        self._requests.disconnect()
        for task in (self._passing, *self._announcing):
            if task is not None:
                task.cancel()
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._live is not None:
            await self._live.close()

    def _chat(self) -> OpenChat:
        if self._live is None:
            raise Unauthenticated
        return self._live

    async def _known(self) -> OpenChat | None:
        """The chat once it is open; None if it is not, which ends the socket."""
        if self._opening is None:
            self._opened.socket.close(UNAUTHENTICATED, Unauthenticated.code)
            return None
        if not self._opening.done():
            await asyncio.wait([self._opening])
        return self._live

    async def _take_live(self, frame: ActivityFrame | ImageFrame | InterruptFrame) -> None:
        live = await self._known()
        if live is None:
            return
        self._opened.socket.mark_active()
        try:
            live.take(frame)
        except RequestError as error:
            await self._requests.reject(LIVE_ID, error)

    def _open(self, user: str) -> None:
        self._opening = asyncio.create_task(self._open_for(user))

    async def _open_for(self, user: str) -> None:
        wish, socket = self._wish, self._opened.socket
        try:
            self._live = await self._engine.open_live(
                wish.chat,
                user=user,
                client=Client(7, via=NAME),
                with_audio=wish.with_audio,
                marked_by_client=wish.marked_by_client,
            )
        except Exception as error:  # noqa: BLE001 - the client is told whose fault it is
            refused = refusal_of(error)
            if refused is not error:
                _log.error("a live chat could not be opened: %s", describe(error))
            if refused is None:
                socket.close(INTERNAL_ERROR, "internal")
                return
            await self._refuse(refused)
            socket.close(
                HELD_CLOSE_CODE if isinstance(refused, HeldElsewhere) else TRY_AGAIN, refused.code
            )
        else:
            socket.mark_active()
            self._passing = asyncio.create_task(self._pass_on(self._live))

    async def _pass_on(self, live: OpenChat) -> None:
        socket = self._opened.socket
        writes = socket.monitor_writes(lambda: live.out.behind)
        try:
            async for piece in live.out.pieces():
                writes.started()
                if isinstance(piece, bytes):
                    await socket.send_binary(piece)
                elif isinstance(piece, Ended):
                    await self._requests.wait_until_idle(PATIENCE)
                    await self._refuse(piece.error)
                    socket.close(piece.close_code, piece.error.code)
                elif isinstance(piece, TurnFrame):
                    task = asyncio.create_task(self._announce(piece))
                    self._announcing.add(task)
                    task.add_done_callback(self._announcing.discard)
                else:
                    await socket.send(encode_live_frame(piece))
                writes.finished()
        finally:
            writes.close()

    async def _announce(self, turn: TurnFrame) -> None:
        """Tell of a turn when no request is open: a client reads one answer at a time."""
        await self._requests.wait_until_idle()
        await self._opened.socket.send(encode_live_frame(turn))

    async def _refuse(self, error: RequestError) -> None:
        await self._opened.socket.send(encode_frame(ErrorFrame(LIVE_ID, error.message, error.code)))
