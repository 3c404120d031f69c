"""Copies of the tools of a request and of their declarations, for a live run."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any, Final

from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from sluicegate.adk_private import tool_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

_ADK_CONTROL_TOOLS: Final = frozenset(
    {"transfer_to_agent", "task_completed", "finish_task", "exit_loop", "stop_streaming"}
)
"""ADK: it acts on results of these only where its receiving loop has called the tool itself."""

_TOOL_THREADS: Final = 4


def copy_tools(tools: dict[str, BaseTool], *, in_background: bool) -> None:
    """Replace the tools of a request, whose declarations are complete, by copies for a live run.

    Synchronous functions run in threads. ``in_background``: ADK runs the tools beside its receiving
    loop, so that the model can speak meanwhile.
    """
    for name, tool in list(tools.items()):
        if name not in _ADK_CONTROL_TOOLS:
            tools[name] = _copy_tool(tool, in_background=in_background)


def declare_non_blocking(request: LlmRequest) -> None:
    """Declare the tools of a request as NON_BLOCKING, so that the model can speak while they run.

    The declarations are copied: a tool may keep its own for the requests of turns, which do not
    know the field.
    """
    # ADK: the declarations are made, with the behavior of the tools, before a connection is opened.
    request.config.tools = [
        _declared_non_blocking(each, request.tools_dict) if isinstance(each, types.Tool) else each
        for each in request.config.tools or []
    ]


def _declared_non_blocking(declared: types.Tool, tools: dict[str, BaseTool]) -> types.Tool:
    declarations = [
        declaration.model_copy(update={"behavior": types.Behavior.NON_BLOCKING})
        if declaration.name in tools and declaration.name not in _ADK_CONTROL_TOOLS
        else declaration
        for declaration in declared.function_declarations or []
    ]
    return declared.model_copy(update={"function_declarations": declarations or None})


def _copy_tool(tool: BaseTool, *, in_background: bool) -> BaseTool:
    fresh = copy.copy(tool)
    if in_background:
        fresh.behavior = types.Behavior.NON_BLOCKING
    if isinstance(tool, FunctionTool) and _is_synchronous(tool.func):
        run = fresh.run_async

        # ADK: its own setting for threads runs coroutines in loops of their own, if it runs live.
        async def run_async(*, args: dict[str, Any], tool_context: ToolContext) -> Any:
            with tool_threads(_TOOL_THREADS):
                return await run(args=args, tool_context=tool_context)

        vars(fresh)["run_async"] = run_async
    return fresh


def _is_synchronous(function: Callable[..., Any]) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004 - a callable object's own method
    return not (
        inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
        or inspect.iscoroutinefunction(called)
    )
