"""Vercel's AI SDK for Python, with its own adapter for the AI SDK."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Literal

import ai
from ai.ui import ai_sdk
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

from bench.script import DELTA, SLOW, SLOW_DELTAS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request
    from starlette.types import ASGIApp


class Prepared(ai.models.Provider):
    """Generates the deltas of the script."""

    provider_class_id: Literal["bench"] = "bench"
    name: str = "bench"
    default_base_url: str = "http://bench.invalid"

    async def stream(self, model: Any, messages: list[Any], **_: Any) -> AsyncGenerator[Any]:
        is_slow = messages[-1].text == SLOW
        count = SLOW_DELTAS if is_slow else int(os.environ["BENCH_DELTAS"])
        yield ai.events.StreamStart()
        yield ai.events.TextStart(block_id="text-1")
        for _ in range(count):
            await asyncio.sleep(0.001 if is_slow else 0)
            yield ai.events.TextDelta(block_id="text-1", chunk=DELTA)
        yield ai.events.TextEnd(block_id="text-1")
        yield ai.events.StreamEnd(finish_reason="stop")


def build() -> ASGIApp:
    """Return the application."""
    model = ai.Model(id="prepared", provider=Prepared())
    agent = ai.Agent(tools=[])

    async def streamed(messages: list[Any]) -> AsyncGenerator[str]:
        async with agent.run(model, messages) as stream:
            async for text in ai_sdk.to_sse(stream):
                yield text

    async def chat(request: Request) -> StreamingResponse:
        body = await request.json()
        asked = [ai_sdk.UIMessage.model_validate(message) for message in body["messages"]]
        messages, _ = ai_sdk.to_messages(asked)
        return StreamingResponse(streamed(messages), headers=ai_sdk.UI_MESSAGE_STREAM_HEADERS)

    return Starlette(routes=[Route("/api/chat", chat, methods=["POST"])])
