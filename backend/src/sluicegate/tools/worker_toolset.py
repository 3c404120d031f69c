"""The toolset of the tools of all remote workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.adk_private import UncachedToolset
from sluicegate.core.event_reading import CONFIRMATION
from sluicegate.tools.remote_tools import RemovedTool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.tools.base_tool import BaseTool

    from sluicegate.tools.worker_registry import WorkerRegistry


class WorkerToolset(UncachedToolset):
    """The tools of all workers, listed again before each model call (S1-R24)."""

    def __init__(self, registry: WorkerRegistry) -> None:
        super().__init__()
        self._registry = registry

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Return the offered tools, and stand-ins for removed tools with approval requests."""
        await self._registry.refresh()
        offered: list[BaseTool] = [*self._registry.tools()]
        if readonly_context is not None:
            names = {tool.name for tool in offered}
            missing = set(_confirmed_names(readonly_context)) - names
            offered += [
                RemovedTool(name) for name in missing if self._registry.may_be_removed(name)
            ]
        return offered

    async def close(self) -> None:
        """Close all connections."""
        await self._registry.close()


def _confirmed_names(context: ReadonlyContext) -> Iterator[str]:
    """Yield the names of tools for which the session holds approval requests."""
    for event in context.session.events:
        for call in event.get_function_calls():
            if call.name == CONFIRMATION:
                original: Any = (call.args or {}).get("originalFunctionCall")
                name = original.get("name") if isinstance(original, dict) else None
                if isinstance(name, str):
                    yield name
