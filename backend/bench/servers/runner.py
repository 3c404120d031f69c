"""The least that streams an agent: the bare generator around ``Runner.run_async``.

It runs on the server's own kind of database, so that what the server adds is the server's.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.run_config import RunConfig
from google.adk.runners import Runner
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.genai import types
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from bench.agents.free.agent import root_agent
from bench.servers.frames import AFTER, BEFORE, delta_frame, user_text
from sluicegate.stores.database import Database
from sluicegate.wire.sse import HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.types import ASGIApp

_APP = _USER = "bench"


class _Endpoints:
    """The runner, opened by the first request."""

    def __init__(self) -> None:
        self._opened: Runner | None = None

    async def chat(self, request: Request) -> StreamingResponse:
        """Stream a run in the AI SDK's frames."""
        return StreamingResponse(self._frames(await user_text(request)), headers=HEADERS)

    async def alone(self, request: Request) -> JSONResponse:
        """Drain a run, send nothing of it, and answer with its times in seconds."""
        text = await user_text(request)
        began = time.perf_counter()
        times = [time.perf_counter() - began async for _ in self._deltas(text)]
        last = time.perf_counter() - began
        return JSONResponse({"deltas": len(times), "first": times[0], "last": last})

    async def _frames(self, text: str) -> AsyncGenerator[bytes]:
        for written in BEFORE:
            yield written
        async for delta in self._deltas(text):
            yield delta_frame(delta)
        for written in AFTER:
            yield written

    async def _deltas(self, text: str) -> AsyncGenerator[str]:
        runner = await self._runner()
        session = await runner.session_service.create_session(app_name=_APP, user_id=_USER)
        async for event in runner.run_async(
            user_id=_USER,
            session_id=session.id,
            new_message=types.Content(role="user", parts=[types.Part(text=text)]),
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        ):
            if event.partial and event.content and event.content.parts:
                yield event.content.parts[0].text or ""

    async def _runner(self) -> Runner:
        if self._opened is None:
            database = await Database.open("sqlite+aiosqlite:///runner.db")
            sessions = DatabaseSessionService(db_engine=database.sessions)
            self._opened = Runner(app_name=_APP, agent=root_agent, session_service=sessions)
        return self._opened


def build() -> ASGIApp:
    """Return the application."""
    endpoints = _Endpoints()
    return Starlette(
        routes=[
            Route("/api/chat", endpoints.chat, methods=["POST"]),
            Route("/alone", endpoints.alone, methods=["POST"]),
        ]
    )
