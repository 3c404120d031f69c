"""A generator that only writes the prepared frames of a turn."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from bench.script import DELTA, pieces_of
from bench.servers.frames import AFTER, BEFORE, delta_frame, user_text
from sluicegate.wire.encoding import HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.types import ASGIApp


def build() -> ASGIApp:
    """Return the application; like the prepared model it lets the loop run before each delta."""
    delta = delta_frame(DELTA)

    async def frames(count: int, seconds: float) -> AsyncGenerator[bytes]:
        for written in BEFORE:
            yield written
        for _ in range(count):
            await asyncio.sleep(seconds)
            yield delta
        for written in AFTER:
            yield written

    async def chat(request: Request) -> StreamingResponse:
        text = await user_text(request)
        return StreamingResponse(frames(*pieces_of(text)), headers=HEADERS)

    return Starlette(routes=[Route("/api/chat", chat, methods=["POST"])])
