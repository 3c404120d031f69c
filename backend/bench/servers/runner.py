"""The minimal server of an agent: a generator around ``Runner.run_async``.

It runs on the server's own kind of database, so that what the server adds is the server's.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.run_config import RunConfig
from google.adk.runners import Runner
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.genai import types
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from bench.agents.free.agent import root_agent
from bench.servers.frames import AFTER, BEFORE, delta_frame, user_text
from sluicegate.stores.sql.database import Database
from sluicegate.wire.encoding import HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from starlette.requests import Request
    from starlette.types import ASGIApp

_APP = _USER = "bench"


class _Endpoints:
    """The runner and its HTTP routes."""

    _runner: Runner

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Open the database and the runner for the lifetime of the server."""
        database = await Database.open("sqlite+aiosqlite:///runner.db")
        try:
            sessions = DatabaseSessionService(db_engine=database.sessions)
            self._runner = Runner(app_name=_APP, agent=root_agent, session_service=sessions)
            yield
        finally:
            await database.close()

    async def chat(self, request: Request) -> StreamingResponse:
        """Stream a run as chunks of the AI SDK."""
        return StreamingResponse(self._frames(await user_text(request)), headers=HEADERS)

    async def _frames(self, text: str) -> AsyncGenerator[bytes]:
        for written in BEFORE:
            yield written
        async for delta in self._deltas(text):
            yield delta_frame(delta)
        for written in AFTER:
            yield written

    async def _deltas(self, text: str) -> AsyncGenerator[str]:
        sessions = self._runner.session_service
        session = await sessions.create_session(app_name=_APP, user_id=_USER)
        async for event in self._runner.run_async(
            user_id=_USER,
            session_id=session.id,
            new_message=types.Content(role="user", parts=[types.Part(text=text)]),
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        ):
            if event.partial and event.content and event.content.parts:
                yield event.content.parts[0].text or ""


def build() -> ASGIApp:
    """Return the application."""
    endpoints = _Endpoints()
    return Starlette(
        routes=[
            Route("/api/chat", endpoints.chat, methods=["POST"]),
        ],
        lifespan=endpoints.lifespan,
    )
