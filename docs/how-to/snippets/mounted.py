"""The agent inside a FastAPI application: ``uvicorn mounted:api``."""

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

from sluicegate import create_app
from sluicegate.demo.agent import root_agent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

agent = create_app(root_agent, public_url="http://127.0.0.1:8000/agent")


@asynccontextmanager
async def lifespan(_: FastAPI) -> "AsyncIterator[None]":
    # Without this the first request opens the engine, and the event loop's end closes it.
    async with agent.router.lifespan_context(agent):
        yield


api = FastAPI(lifespan=lifespan)
api.mount("/agent", agent)
