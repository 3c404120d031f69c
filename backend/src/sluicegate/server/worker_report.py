"""What ``sluicegate check`` says of remote tool workers: what they offer, and what asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluicegate.engine.agents.survey import root_of
from sluicegate.engine.remote_workers import agent_of_workers, open_workers
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.server.app import Target
    from sluicegate.server.settings import Settings
    from sluicegate.tools.worker_registry import WorkerRegistry


async def worker_report(
    target: Target, found: AgentSurvey, settings: Settings
) -> tuple[list[str], list[str]]:
    """Ask the workers that the settings name.

    Returns:
        The lines of the report, and the sentences for which the server would not start; a worker
        that does not answer is none of them, since it may come later.
    """
    try:
        registry = open_workers(settings, found)
        if registry is None:
            return [], []
        agent_of_workers(root_of(target))
        await registry.refresh()
        lines = list(_lines(registry, settings))
        await registry.close()
    except ConfigurationError as error:
        return [], [str(error)]
    return lines, []


def _lines(registry: WorkerRegistry, settings: Settings) -> Iterator[str]:
    yield "workers:"
    ungated = frozenset(settings.ungated_worker_tools)
    for worker in registry.workers():
        known = "offers nothing now" if worker.error else f"{len(worker.tools)} tools"
        yield f"  {worker.client.name} at {worker.client.url}: {known}"
        if worker.error:
            yield f"    {worker.error}"
        for name in sorted(worker.tools):
            how = "asks nobody, as ungated_worker_tools says" if name in ungated else "asks"
            yield f"    {name}: {how}"
    if settings.worker_registrations is not None:
        yield "  others may register; their tools ask unless ungated_worker_tools names them"
    offered = {tool.name for tool in registry.tools()}
    for setting in ("worker_tools", "ungated_worker_tools"):
        for name in sorted(set(getattr(settings, setting)) - offered):
            yield f"note: {setting} names {name}, but no worker offers it now"
