"""A client of ``/api/chat/ws`` that sends arbitrary frames and sorts the replies."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from sluicegate.server.settings import Settings
from tests.server.exchange import PATIENCE, serving, user_message
from tests.server.fake_engine import FakeEngine, application

Frame = dict[str, Any]
LAST = ("end", "error", "no-active")


def send_frame(request_id: str = "r1", text: str = "Hi", *, chat: str = "c1") -> Frame:
    """A new message as the transport of the package sends it."""
    return {
        "type": "send",
        "requestId": request_id,
        "id": chat,
        "trigger": "submit-message",
        "messages": [user_message(text)],
        "headers": {},
        "body": {},
    }


def resume_frame(request_id: str = "r1", *, chat: str = "c1") -> Frame:
    return {"type": "resume", "requestId": request_id, "id": chat, "headers": {}, "body": {}}


def abort_frame(request_id: str = "r1") -> Frame:
    return {"type": "abort", "requestId": request_id}


def padded(size: int) -> str:
    """A valid message of exactly ``size`` bytes."""
    text = json.dumps(send_frame())
    return text + " " * (size - len(text))


class SocketClient:
    """One open socket."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.unread: list[Frame] = []
        """Frames received while a test waited for another one."""

    async def send(self, *frames: Frame | str | bytes) -> None:
        for frame in frames:
            text = json.dumps(frame) if isinstance(frame, dict) else frame
            with contextlib.suppress(ConnectionClosed):
                await self.connection.send(text)

    async def next(self, request_id: str = "r1") -> Frame:
        """The next frame of a request; frames of other requests are kept."""
        async with asyncio.timeout(PATIENCE):
            for index, frame in enumerate(self.unread):
                if frame["requestId"] == request_id:
                    return self.unread.pop(index)
            while True:
                frame = json.loads(await self.connection.recv(decode=True))
                if frame["requestId"] == request_id:
                    return dict(frame)
                self.unread.append(frame)

    async def all(self, request_id: str = "r1") -> list[Frame]:
        """All frames of a request."""
        frames = [await self.next(request_id)]
        while frames[-1]["type"] not in LAST:
            frames.append(await self.next(request_id))
        return frames

    async def exchange(self, frame: Frame) -> list[Frame]:
        """Send a frame and return all frames of the response."""
        await self.send(frame)
        return await self.all(frame["requestId"])

    async def is_alive(self) -> bool:
        """Whether the socket still answers; the request has no effect."""
        await self.send({"type": "ping", "requestId": "alive?"})
        return bool((await self.next("alive?"))["code"] == "malformed")

    async def wait_closed(self) -> tuple[int | None, str | None]:
        """Wait until the server closes; return code and reason."""
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionClosed):
                while True:
                    await self.connection.recv()
        return self.connection.close_code, self.connection.close_reason


@contextlib.asynccontextmanager
async def opened(
    address: tuple[str, int], path: str = "/api/chat/ws", **options: Any
) -> AsyncIterator[SocketClient]:
    """A socket to a server; ``options`` are those of the handshake."""
    defaults = {"open_timeout": PATIENCE, "compression": None, "proxy": None, "max_size": None}
    host, port = address
    async with connect(f"ws://{host}:{port}{path}", **(defaults | options)) as connection:
        yield SocketClient(connection)


@contextlib.asynccontextmanager
async def connected(engine: FakeEngine, **settings: Any) -> AsyncIterator[SocketClient]:
    """A socket to a dedicated server."""
    app = application(engine, **settings)
    async with serving(app, Settings(port=0, **settings)) as address, opened(address) as client:
        yield client


def chunks(frames: list[Frame]) -> list[Frame]:
    """The chunks of the frames; checks the sequence numbers."""
    carried = [frame for frame in frames if frame["type"] == "chunk"]
    assert [frame["sequence"] for frame in carried] == list(range(len(carried)))
    return [frame["chunk"] for frame in carried]


async def until_closed(engine: FakeEngine, count: int = 1) -> None:
    """Wait until ``count`` requests had a reader and all readers are closed."""
    async with asyncio.timeout(PATIENCE):
        await engine.has_readers(count)
        for reader in engine.readers:
            await reader.closed.wait()
