"""Functions of a Workflow that run agents: they run the copies of the engine."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from sluicegate.adk_private import NodeInterruptedError
from sluicegate.adk_private_resumption import (
    shadow_node_run,
)
from sluicegate.engine.agents.wait_for_concurrent_calls import others_end_first

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.context import Context
    from google.adk.tools.tool_context import ToolContext
    from google.adk.workflow import BaseNode


def run_copies(node: BaseNode, copies: Mapping[int, BaseAgent]) -> None:
    """Have the copy of a function of a Workflow run copies of agents; keys are ids of originals."""

    @contextmanager
    def around(ctx: Context, _: Any) -> Iterator[None]:
        _replace_agents(ctx, copies)
        yield

    shadow_node_run(node, around)


def running_copies(
    run: Callable[..., Awaitable[object]], copies: Mapping[int, BaseAgent]
) -> Callable[..., Awaitable[object]]:
    """Return the ``run_async`` of a function tool that runs copies of agents, as `run_copies`."""

    async def run_async(*, args: dict[str, Any], tool_context: ToolContext) -> object:
        _replace_agents(tool_context, copies)
        async with others_end_first(tool_context):
            return await run(args=args, tool_context=tool_context)

    return run_async


def _replace_agents(ctx: Context, copies: Mapping[int, BaseAgent]) -> None:
    run_node, runs = ctx.run_node, _Runs()

    async def run_copy(node: Any, *inputs: Any, **settings: Any) -> Any:
        async with runs.others_end_first():
            return await run_node(copies.get(id(node), node), *inputs, **settings)

    vars(ctx)["run_node"] = run_copy


class _Runs:
    """The nodes that a function runs, at the same time or one after the other.

    ADK: an interruption ends the function, and a node that still runs and asks then fails.
    """

    def __init__(self) -> None:
        self._running = 0
        self._all_ended = asyncio.Event()

    @asynccontextmanager
    async def others_end_first(self) -> AsyncIterator[None]:
        """Hold the interruption of a node until the others have ended, or wait too."""
        self._running += 1
        self._all_ended.clear()
        interruption: NodeInterruptedError | None = None
        try:
            yield
        except NodeInterruptedError as interrupted:
            interruption = interrupted
        finally:
            self._running -= 1
            if not self._running:
                self._all_ended.set()
        if interruption is not None:
            await self._all_ended.wait()
            raise interruption
