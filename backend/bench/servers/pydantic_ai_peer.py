"""pydantic-ai's own adapter for the AI SDK."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from pydantic_ai import Agent
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.ui.vercel_ai import VercelAIAdapter
from starlette.applications import Starlette
from starlette.routing import Route

from bench.script import DELTA, SLOW, SLOW_DELTAS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.function import AgentInfo
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp


async def say(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
    """Generate the deltas of the script."""
    is_slow = str(getattr(messages[-1].parts[-1], "content", "")) == SLOW
    count = SLOW_DELTAS if is_slow else int(os.environ["BENCH_DELTAS"])
    for _ in range(count):
        await asyncio.sleep(0.001 if is_slow else 0)
        yield DELTA


def build() -> ASGIApp:
    """Return the application."""
    agent = Agent(FunctionModel(stream_function=say))

    async def chat(request: Request) -> Response:
        return await VercelAIAdapter.dispatch_request(request, agent=agent, sdk_version=7)

    return Starlette(routes=[Route("/api/chat", chat, methods=["POST"])])
