"""The same agent behind ag-ui-adk, with the AG-UI protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ag_ui_adk import ADKAgent, add_adk_fastapi_endpoint
from fastapi import FastAPI

from bench.agents.free.agent import root_agent

if TYPE_CHECKING:
    from starlette.types import ASGIApp


def build() -> ASGIApp:
    """Return the application."""
    app = FastAPI()
    agent = ADKAgent(adk_agent=root_agent, app_name="free", user_id="bench")
    add_adk_fastapi_endpoint(app, agent, path="/agent")
    return app
