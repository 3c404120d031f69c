"""A uvicorn protocol on a recording transport, with a clock that the test advances."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from tests.transports.clock import ClockedLoop


class ClockedTasks(ClockedLoop):
    """A clock that the test advances, with the tasks of the running event loop."""

    def create_task(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(coroutine)


class Wire(asyncio.Transport):
    """A transport that records what is written."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 8000), "peername": ("127.0.0.1", 50000)})
        self.written = b""
        self.wrote = asyncio.Event()
        self.closed = False
        self.is_paused = False

    def write(self, data: Any) -> None:
        self.written += data
        self.wrote.set()

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        pass


def protocol_of(
    kind: type[Any], app: Any, *, loop: ClockedTasks | None = None, **options: Any
) -> tuple[Any, Wire]:
    """A connected protocol."""
    config = uvicorn.Config(app, log_config=None, ws="websockets-sansio", **options)
    config.load()
    wire = Wire()
    protocol = kind(config=config, server_state=ServerState(), app_state={}, _loop=loop)
    protocol.connection_made(wire)
    return protocol, wire
