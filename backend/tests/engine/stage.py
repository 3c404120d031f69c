"""Agents for one story each, and test controls: prompts, steps, held tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from sluicegate.engine.chat_engine import ChatEngine
from sluicegate.testing import calls as calls
from sluicegate.testing import says as says
from sluicegate.testing import scripted_model
from sluicegate.testing.scripts import Responses as Responses
from sluicegate.wire.chunks import BaseChunk
from sluicegate.wire.ui_messages import Part, UIMessage, is_tool_part, tool_name

Open = Callable[..., Awaitable[ChatEngine]]
OpenReplicas = Callable[..., Awaitable[tuple[ChatEngine, ChatEngine]]]
"""Opens an engine on a target, with settings as keywords, and ``clock`` for the database's."""

Tool = Callable[..., Any] | BaseTool


@dataclass
class Steps:
    """Blocks a model before each delta until it is released; it is awaited as a sleep."""

    allowed: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    asked: int = 0
    _asked_again: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, seconds: float) -> None:
        self.asked += 1
        self._asked_again.set()
        await self.allowed.acquire()

    async def reached(self, asked: int) -> None:
        """Wait until the model has reached this number of steps."""
        while self.asked < asked:
            self._asked_again.clear()
            await self._asked_again.wait()

    def go(self, pieces: int = 1_000) -> None:
        """Release this number of deltas."""
        for _ in range(pieces):
            self.allowed.release()


@dataclass
class Prompts:
    """The requests of the model; used as a callback."""

    contents: list[list[types.Content]] = field(default_factory=list)
    declared: list[dict[str, dict[str, Any]]] = field(default_factory=list)
    """The tools that each request declares, by name."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        self.contents.append([c.model_copy(deep=True) for c in llm_request.contents])
        self.declared.append(_declarations(llm_request))
        self.asked.set()

    @property
    def descriptions(self) -> dict[str, str]:
        """The descriptions of all declared tools, by name; the latest count."""
        found = (each for declared in self.declared for each in declared.items())
        return {name: declaration.get("description", "") for name, declaration in found}

    @property
    def results(self) -> dict[str, Any]:
        """Responses of tools in the last prompt, by tool; the latest counts."""
        found = (p.function_response for c in self.contents[-1] for p in c.parts or [])
        return {str(each.name): each.response for each in found if each is not None}

    @property
    def texts(self) -> list[str]:
        """Texts in the last prompt."""
        return [p.text for c in self.contents[-1] for p in c.parts or [] if p.text]


def _declarations(request: LlmRequest) -> dict[str, dict[str, Any]]:
    found = [
        declaration
        for tool in request.config.tools or []
        if isinstance(tool, types.Tool)
        for declaration in tool.function_declarations or []
    ]
    return {str(each.name): each.model_dump(mode="json", exclude_none=True) for each in found}


@dataclass
class HeldTool:
    """A tool that begins, waits, and counts its completions."""

    began: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    ended: int = 0

    def tool(self, **more: Any) -> FunctionTool:
        """The tool, named ``hold``."""

        async def hold(n: int) -> dict[str, int]:
            """Take a while."""
            self.began.set()
            await self.may_end.wait()
            self.ended += 1
            return {"held": n}

        return FunctionTool(hold, **more)


@dataclass
class Counted:
    """A tool that counts its runs."""

    runs: list[int] = field(default_factory=list)

    def tool(self, *, gated: bool = True) -> FunctionTool:
        """The tool, named ``pay``."""

        async def pay(n: int) -> dict[str, int]:
            """Pay."""
            self.runs.append(n)
            return {"paid": n}

        return FunctionTool(pay, require_confirmation=gated)


def scripted(
    script: Responses | Mapping[str, Responses],
    tools: Sequence[Tool] = (),
    *,
    sleep: Callable[[float], Any] = asyncio.sleep,
    model: str = "scripted",
    name: str = "stage",
    **more: Any,
) -> LlmAgent:
    """An agent that plays a script: for any text, or by the text that is looked for.

    ``model`` is the name that the model goes by.
    """
    playing = scripted_model(script, sleep=sleep, model=model)
    return LlmAgent(name=name, model=playing, tools=list(tools), **more)


def part_of(message: UIMessage, tool: str) -> Part:
    """The only part of a tool in a message."""
    [part] = [p for p in message["parts"] if is_tool_part(p) and tool_name(p) == tool]
    return part


def words(message: UIMessage) -> str:
    """All text of a message."""
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def kinds(chunks: Sequence[BaseChunk]) -> list[str]:
    """The types of chunks."""
    return [str(getattr(chunk, "type")) for chunk in chunks]  # noqa: B009


async def read(reader: Any) -> list[BaseChunk]:
    """All chunks of a response."""
    chunks = [chunk async for chunk in reader]
    await reader.aclose()
    return chunks


async def stays_pending(task: asyncio.Task[Any]) -> bool:
    """Whether a task is still pending after a short time; the only fixed wait of the tests."""
    await asyncio.wait([task], timeout=0.1)
    return not task.done()
