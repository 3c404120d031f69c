"""Tools, toolsets and agents of every kind that a survey may meet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import BaseNode
from google.genai import types

from sluicegate.engine.agents.approval_requirements import ToolNames
from sluicegate.engine.agents.survey import AgentSurvey, survey
from sluicegate.tools import client_tool
from tests.engine.loop_time import EVENT_TIMEOUT


def pay(amount: float) -> dict[str, float]:
    """Pay an amount."""
    return {"paid": amount}


def ask(context: Any) -> None:
    context.request_confirmation(hint="?")


def request_in_the_code(amount: float, tool_context: Any) -> None:
    ask(tool_context)


def is_large(amount: float) -> bool:
    return amount > 100


class Checking(BaseTool):
    async def check_require_confirmation(self, args: dict[str, Any], tool_context: Any) -> bool:
        return bool(args)


class RequestingTool(BaseTool):
    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        return self._answer(tool_context)

    def _answer(self, tool_context: Any) -> Any:
        return tool_context.request_confirmation(hint="?")


class Plain(BaseTool):
    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        return args


class BySchema(BaseTool):
    def _get_declaration(self) -> types.FunctionDeclaration:
        schema = types.Schema(
            type=types.Type.OBJECT, properties={"n": types.Schema(type=types.Type.INTEGER)}
        )
        return types.FunctionDeclaration(name=self.name, description="d", parameters=schema)


class Tools(BaseToolset):
    """A toolset of the given tools."""

    def __init__(self, *tools: BaseTool, prefix: str | None = None, **attributes: Any) -> None:
        super().__init__(tool_name_prefix=prefix)
        self.given = list(tools)
        vars(self).update(attributes)

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return self.given


class Hanging(BaseToolset):
    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


class Failing(BaseToolset):
    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        raise ConnectionError("nobody there")


class Director(BaseAgent):
    star: BaseAgent
    extras: list[BaseAgent]

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        ctx.set_agent_state(self.name, end_of_agent=True)
        async for event in self.star.run_async(ctx):
            yield event


def agent(name: str = "root", *tools: Any, **settings: Any) -> LlmAgent:
    return LlmAgent(name=name, model="gemini-2.5-flash", tools=list(tools), **settings)


def gated(function: Callable[..., Any] = pay) -> FunctionTool:
    return FunctionTool(function, require_confirmation=True)


def page_tool(*, require_confirmation: bool = False) -> BaseTool:
    schema = {"type": "object", "properties": {}}
    return client_tool("pay", "On the page.", schema, require_confirmation=require_confirmation)


async def look(
    root: BaseAgent | BaseNode | App,
    *,
    dynamic: tuple[str, ...] = (),
    never: tuple[str, ...] = (),
    client: tuple[str, ...] = (),
    within: float = EVENT_TIMEOUT,
) -> AgentSurvey:
    return await survey(root, ToolNames(dynamic, never, client), resolve_timeout=within)
