"""The tools of a live run, as the client of Google declares them to the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.tools.function_tool import FunctionTool
from google.genai import live

from sluicegate.tools import typed_tool
from tests.live.caller import LIMIT, Caller, calling

if TYPE_CHECKING:
    from tests.engine.stage import Open


class Wire:
    """The other end of a live connection of google-genai: accepts the setup and says nothing."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._is_accepted = False

    @asynccontextmanager
    async def connect(self, uri: str, **options: Any) -> AsyncIterator[Wire]:
        yield self

    async def send(self, message: str) -> None:
        self.sent.put_nowait(json.loads(message))

    async def recv(self, **options: Any) -> bytes:
        if self._is_accepted:
            await asyncio.Event().wait()
        self._is_accepted = True
        return b'{"setupComplete": {}}'

    async def close(self) -> None:
        """Nothing to close."""

    async def behaviors(self) -> dict[str, str | None]:
        """The declared behavior of each tool, by name."""
        async with asyncio.timeout(LIMIT):
            setup = (await self.sent.get())["setup"]
        return {
            declaration["name"]: declaration.get("behavior")
            for tool in setup["tools"]
            for declaration in tool["functionDeclarations"]
        }


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """A wire to which every live connection of google-genai leads."""
    made = Wire()
    monkeypatch.setattr(live, "ws_connect", made.connect)
    monkeypatch.setenv("GOOGLE_API_KEY", "key")
    for name in ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE"):
        monkeypatch.delenv(name, raising=False)
    return made


def pay(n: int) -> dict[str, int]:
    """Pay."""
    return {"paid": n}


@typed_tool
def look(n: int) -> dict[str, int]:
    """Look."""
    return {"seen": n}


def agent(model: str, *, gated: bool = True) -> LlmAgent:
    tools: list[Any] = [FunctionTool(pay, require_confirmation=gated), look]
    other = LlmAgent(name="other", model=Gemini(model=model))
    return LlmAgent(name="shop", model=Gemini(model=model), tools=tools, sub_agents=[other])


BACKGROUND = {"pay": "NON_BLOCKING", "look": "NON_BLOCKING", "transfer_to_agent": None}
DEFAULT = dict.fromkeys(BACKGROUND)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gemini-2.5-flash-native-audio-preview-12-2025", BACKGROUND),
        ("gemini-3.8-live", BACKGROUND),
        ("gemini-3.8-live-extended-thinking", BACKGROUND),
        ("gemini-3.1-flash-live-preview", DEFAULT),
    ],
)
async def test_tools_are_declared_as_they_run_where_the_model_supports_it(
    open_stage: Open, wire: Wire, model: str, expected: dict[str, str | None]
) -> None:
    async with calling(Caller(await open_stage(agent(model)))):
        assert await wire.behaviors() == expected
    # It keeps the declaration that every model gets.
    assert look.declaration().behavior is None


async def test_tools_of_vertex_keep_its_default(
    open_stage: Open, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_ENTERPRISE", "1")
    async with calling(Caller(await open_stage(agent("gemini-live-2.5-flash-native-audio")))):
        assert await wire.behaviors() == DEFAULT


async def test_tools_that_need_no_approval_keep_the_default(open_stage: Open, wire: Wire) -> None:
    async with calling(Caller(await open_stage(agent("gemini-3.8-live", gated=False)))):
        assert await wire.behaviors() == DEFAULT
