"""A client of ``/api/live`` that sends arbitrary frames and separates frames from audio."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from sluicegate.wire.live_frames import SUBPROTOCOL
from tests.server.exchange import PATIENCE
from tests.transports.socket_client import Frame, SocketClient, opened


class LiveClient(SocketClient):
    """One open live socket."""

    audio = b""

    async def next(self, request_id: str = "r1") -> Frame:
        """The next frame of a request; audio and frames of other requests are kept."""
        async with asyncio.timeout(PATIENCE):
            for index, frame in enumerate(self.unread):
                if frame["requestId"] == request_id:
                    return self.unread.pop(index)
            while True:
                received = await self._receive()
                if received is None:
                    continue
                if received["requestId"] == request_id:
                    return received
                self.unread.append(received)

    async def live(self, kind: str) -> Frame:
        """The next live frame of a type; earlier frames are dropped."""
        while (frame := await self.next("live"))["type"] != kind:
            pass
        return frame

    async def each_of(self, *kinds: str) -> dict[str, Frame]:
        """The next live frame of each type, in any order; others are dropped."""
        found: dict[str, Frame] = {}
        while len(found) < len(kinds):
            frame = await self.next("live")
            if frame["type"] in kinds:
                found.setdefault(frame["type"], frame)
        return found

    async def first_audio(self) -> bytes:
        """Wait for an audio chunk."""
        return await self.audio_of(1)

    async def audio_of(self, size: int) -> bytes:
        """Wait for so many bytes of audio."""
        async with asyncio.timeout(PATIENCE):
            while len(self.audio) < size:
                frame = await self._receive()
                if frame is not None:
                    self.unread.append(frame)
        return self.audio

    async def _receive(self) -> Frame | None:
        message = await self.connection.recv()
        if isinstance(message, bytes):
            self.audio += message
            return None
        return dict(json.loads(message))


@contextlib.asynccontextmanager
async def opened_live(
    address: tuple[str, int],
    chat: str = "c1",
    *,
    audio: bool = True,
    more: str = "",
    **options: Any,
) -> AsyncIterator[LiveClient]:
    """A live socket to a listening server."""
    if audio:
        options["subprotocols"] = [SUBPROTOCOL]
    path = f"/api/live?chat={chat}{more}"
    async with opened(address, path, **options) as plain:
        client = LiveClient(plain.connection)
        await client.live("ready")
        yield client
