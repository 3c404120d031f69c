"""sluicegate with the gated agent, and additional routes for measurements.

``/held`` says what it holds, ``/fill`` makes chats long, ``/bare`` has ADK alone run a turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import sqlite3
import stat
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App
from google.adk.runners import Runner
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.genai import types
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from bench.agents.gated.agent import root_agent
from bench.script import SHORT
from sluicegate import create_app

_DATABASE = ".sluicegate/sluicegate.db"
_APART = 10
"""Seconds between two exchanges."""

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp


def build() -> ASGIApp:
    """Return the application."""
    served = create_app(root_agent, max_turns_per_user=1000)
    return Starlette(
        routes=[
            Route("/held", held),
            Route("/fill", fill, methods=["POST"]),
            Route("/bare", bare, methods=["POST"]),
            Mount("/", served),
        ],
    )


async def held(_: Request) -> JSONResponse:
    """Return ``{tasks, sockets}``, counted after a garbage collection."""
    gc.collect()
    return JSONResponse({"tasks": len(asyncio.all_tasks()), "sockets": _sockets()})


async def fill(request: Request) -> JSONResponse:
    """Repeat the first exchange of a chat until it has the requested number of events."""
    body = await request.json()
    with contextlib.closing(sqlite3.connect(_DATABASE, timeout=30)) as database, database:
        asked = "SELECT * FROM events WHERE session_id = ? ORDER BY timestamp"
        first = database.execute(asked, (body["chat"],)).fetchall()
        for copy in range(1, body["events"] // len(first)):
            for row in first:
                database.execute("INSERT INTO events VALUES (?,?,?,?,?,?,?)", _again(row, copy))
        # As ADK does: an earlier reader of the session detects the change.
        now = datetime.now(UTC).replace(tzinfo=None).isoformat(" ", timespec="microseconds")
        database.execute("UPDATE sessions SET update_time = ? WHERE id = ?", (now, body["chat"]))
    return JSONResponse({})


async def bare(request: Request) -> JSONResponse:
    """Run a turn with ADK's own Runner and session service; return ``{seconds}``."""
    chat = (await request.json())["chat"]
    message = types.Content(role="user", parts=[types.Part(text=SHORT)])
    async with DatabaseSessionService(f"sqlite+aiosqlite:///{_DATABASE}") as sessions:
        await sessions.prepare_tables()
        app = App(name=root_agent.name, root_agent=root_agent)
        runner = Runner(app=app, session_service=sessions)
        config = RunConfig(streaming_mode=StreamingMode.SSE)
        began = time.perf_counter()
        async for _ in runner.run_async(
            user_id="local", session_id=chat, new_message=message, run_config=config
        ):
            pass
        return JSONResponse({"seconds": time.perf_counter() - began})


def _again(row: tuple[str, ...], copy: int) -> tuple[str, ...]:
    """The same event in an earlier exchange, each name with a number more."""
    name, app, user, chat, invocation, moment, data = row
    found = json.loads(data)["custom_metadata"]["sluicegate"]
    for old in (name, invocation, found["message"], found["turn"], found["userMessage"]):
        data = data.replace(f'"{old}"', f'"{old}-{copy}"')
    event = json.loads(data)
    event["timestamp"] -= _APART * copy
    when = datetime.fromisoformat(moment) - timedelta(seconds=_APART * copy)
    stored = when.isoformat(" ", timespec="microseconds")
    names = (f"{name}-{copy}", app, user, chat, f"{invocation}-{copy}")
    return (*names, stored, json.dumps(event))


def _sockets() -> int:
    count = 0
    for name in os.listdir("/dev/fd"):
        try:
            count += stat.S_ISSOCK(os.fstat(int(name)).st_mode)
        except OSError:
            continue  # The descriptor of the listing itself.
    return count
