"""Agents, tools and scripts for live conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from sluicegate.replay import ScriptedModel
from tests.replay.live_runs import silence, summary_of

TEXT = RunConfig(response_modalities=[types.Modality.TEXT])
PAUSE = silence(0.5)
GEMINI_3 = "gemini-3.1-flash-live-preview"

Part = Mapping[str, object]


def scenario(match: str, *steps: list[Part], agent: str = "", **more: object) -> Part:
    spoken = {"match": match, "responses": [{"parts": step, **more} for step in steps]}
    return {**spoken, "agent": agent} if agent else spoken


def script(*scenarios: Part, name: str = "scripted") -> ScriptedModel:
    model = ScriptedModel.from_data({"scenarios": [*scenarios]})
    return model.model_copy(update={"model": name})


def text(words: str) -> Part:
    return {"text": words}


def call(name: str, **args: object) -> Part:
    return {"call": {"name": name, "args": args}}


def price(item: str) -> dict[str, int]:
    """Ask for a price."""
    return {"price": len(item)}


class Counter:
    """A tool that waits in the background until ``open`` releases it."""

    def __init__(self) -> None:
        self.open: dict[str, asyncio.Event] = {}

    def tool(self, scheduling: types.FunctionResponseScheduling | None = None) -> BaseTool:
        async def fetch(item: str) -> dict[str, str]:
            """Fetch."""
            await self.open.setdefault(item, asyncio.Event()).wait()
            return {"fetched": item}

        tool = FunctionTool(fetch)
        tool.behavior = types.Behavior.NON_BLOCKING
        tool.response_scheduling = scheduling
        return tool


def agent(model: ScriptedModel, *tools: Callable[..., object] | BaseTool) -> LlmAgent:
    return LlmAgent(name="helper", model=model, tools=[*tools])


def sentences(events: list[Event]) -> list[str]:
    return [word for word in summary_of(events) if word[0].isupper() and not word.endswith("…")]


class Pause:
    """The pause of a model between two deltas, which lasts until it is ``over``."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds:
            await self.over.wait()
        await asyncio.sleep(0)

    def model(self, *scenarios: Part) -> ScriptedModel:
        return script(*scenarios).model_copy(update={"sleep": self.sleep})


STORY = scenario("story", [text("Once upon a time there was")], delay_ms=20)
BEGUN = "Once upo…"
