"""This server around the gated agent, and beside it ``/held``: what the process holds."""

from __future__ import annotations

import asyncio
import gc
import os
import stat
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from bench.agents.gated.agent import root_agent
from sluicegate import create_app

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp


def build() -> ASGIApp:
    """Return the application."""
    return Starlette(routes=[Route("/held", held), Mount("/", create_app(root_agent))])


async def held(_: Request) -> JSONResponse:
    """Answer ``{tasks, sockets}``, counted after a collection of garbage."""
    gc.collect()
    return JSONResponse({"tasks": len(asyncio.all_tasks()), "sockets": _sockets()})


def _sockets() -> int:
    count = 0
    for name in os.listdir("/dev/fd"):
        try:
            count += stat.S_ISSOCK(os.fstat(int(name)).st_mode)
        except OSError:
            continue  # The descriptor of the listing itself.
    return count
