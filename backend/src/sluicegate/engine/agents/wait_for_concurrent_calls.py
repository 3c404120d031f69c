"""Calls of one step that run at once with one that waits.

ADK: when a call waits inside an agent or a Workflow, ADK cancels the calls of the same step that
have not ended, and makes them again after the answer. So the call that waits lets them end first.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sluicegate.adk_private import NodeInterruptedError, invocation_of
from sluicegate.engine.current_guard import CURRENT_GUARD

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from google.adk.tools.tool_context import ToolContext
    from google.genai import types


class ConcurrentCalls:
    """The calls of a turn that run, by ADK's id."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[object]] = {}
        self._waiting: set[str] = set()
        self._changed = asyncio.Event()

    def begin(self, call_id: str) -> None:
        """Note that the current task runs a call, callbacks included."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks[call_id] = task

    async def wait_for(self, call_ids: Iterable[str], *, waiting: str) -> None:
        """Wait until calls have ended or wait as well; ``waiting`` is the call that does so."""
        self._waiting.add(waiting)
        self._changed.set()
        self._changed = asyncio.Event()
        tasks = {call_id: self._tasks[call_id] for call_id in call_ids if call_id in self._tasks}
        while running := [
            task
            for call_id, task in tasks.items()
            if not task.done() and call_id not in self._waiting
        ]:
            changed = asyncio.create_task(self._changed.wait())
            try:
                await asyncio.wait([*running, changed], return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()


@asynccontextmanager
async def others_end_first(context: ToolContext) -> AsyncIterator[None]:
    """Hold the interruption of a call until the other calls of its step have ended."""
    try:
        yield
    except NodeInterruptedError:
        guard, call_id = CURRENT_GUARD.get(), context.function_call_id or ""
        if guard is not None:
            await guard.concurrent.wait_for(_step_of(context, call_id), waiting=call_id)
        raise


def letting_others_end(run: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[object]]:
    """Return the ``run_async`` of a tool with `others_end_first`."""

    async def run_async(*, args: dict[str, Any], tool_context: ToolContext) -> object:
        async with others_end_first(tool_context):
            return await run(args=args, tool_context=tool_context)

    return run_async


def refusal_beside_task(context: ToolContext) -> str | None:
    """Return why a call cannot wait beside the delegation of a task; None if there is none.

    ADK: the result of the task follows the answer, and only the last answer of a branch is read.
    """
    agents = getattr(invocation_of(context).agent, "sub_agents", ())
    tasks = {agent.name for agent in agents if getattr(agent, "mode", None) == "task"}
    names = {call.name for call in _others(context, context.function_call_id or "")}
    for name in sorted(tasks & names):
        return (
            f"Not run: the user has to approve this call, which cannot wait while {name} works. "
            "Make it in a step of its own."
        )
    return None


def _step_of(context: ToolContext, call_id: str) -> list[str]:
    return [call.id or "" for call in _others(context, call_id)]


def _others(context: ToolContext, call_id: str) -> list[types.FunctionCall]:
    """The other calls that the model has made together with a call."""
    for event in reversed(invocation_of(context).session.events):
        calls = event.get_function_calls()
        if call_id in {call.id for call in calls}:
            return [call for call in calls if call.id != call_id]
    return []
