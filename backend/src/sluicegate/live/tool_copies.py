"""The tools of a live run: copies that keep neither the model nor the server from going on."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from google.adk.flows.llm_flows.tools._thread_pool import _is_sync_tool
from google.adk.tools.function_tool import FunctionTool
from google.adk.utils._sync_runner import (
    _get_tool_thread_pool,
    _use_executor_for_sync_callables,
)
from google.genai import types

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

_ADKS_OWN: Final = frozenset(
    {"transfer_to_agent", "task_completed", "finish_task", "exit_loop", "stop_streaming"}
)
"""ADK: it acts on the results of these only where its receiving loop has made them itself."""


def copy_tools(tools: dict[str, BaseTool], *, beside: bool) -> None:
    """Put copies in place of the tools of a request whose declarations are made already.

    ``beside``: ADK runs them beside its receiving loop, so that the model is heard meanwhile.
    """
    for name, tool in list(tools.items()):
        if name not in _ADKS_OWN:
            tools[name] = _copy(tool, beside=beside)


def _copy(tool: BaseTool, *, beside: bool) -> BaseTool:
    fresh = copy.copy(tool)
    if beside:
        fresh.behavior = types.Behavior.NON_BLOCKING
    if isinstance(tool, FunctionTool) and _is_sync_tool(tool):
        run = fresh.run_async

        # ADK: its own setting for threads runs coroutines in loops of their own, if it runs live.
        async def run_async(*, args: dict[str, Any], tool_context: ToolContext) -> Any:
            with _use_executor_for_sync_callables(_get_tool_thread_pool(_THREADS)):
                return await run(args=args, tool_context=tool_context)

        vars(fresh)["run_async"] = run_async
    return fresh


_THREADS: Final = 4
