"""Remote tool workers of an engine, opened from its options."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from sluicegate.engine.timeouts_and_intervals import DEFAULT_TIMINGS
from sluicegate.tools.mcp_package import require_mcp
from sluicegate.tools.worker_token_file import TokenFile

if TYPE_CHECKING:
    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.timeouts_and_intervals import EngineTimings
    from sluicegate.stores.tool_workers import WorkerRegistrations
    from sluicegate.tools.worker_registry import WorkerRegistry

_UNNAMED: Final = "worker"


def open_workers(
    options: EngineOptions, survey: AgentSurvey, timings: EngineTimings = DEFAULT_TIMINGS
) -> WorkerRegistry | None:
    """Open the registry of the workers in the options; None if no worker is configured.

    Raises:
        ConfigurationError: A worker or a file is not valid, or the package mcp is missing.
    """
    if not options.workers and options.worker_registrations is None:
        return None
    require_mcp()
    registries: Any = importlib.import_module("sluicegate.tools.worker_registry")
    settings = importlib.import_module("sluicegate.tools.remote_tools").RemoteToolSettings(
        allowed=frozenset(options.worker_tools) or None,
        ungated=frozenset(options.ungated_worker_tools),
        idempotent=frozenset(options.idempotent_worker_tools),
        seconds=options.worker_timeout,
        held_seconds=options.approval_ttl,
        listing_seconds=timings.worker_listing,
    )
    reserved = {tool.name for tools in survey.tools.values() for tool in tools}
    reserved |= set(options.page_tools)
    registry: WorkerRegistry = registries.WorkerRegistry(
        settings,
        hosts=importlib.import_module("sluicegate.tools.outbound_hosts").WorkerHosts(
            options.worker_hosts
        ),
        lease=options.worker_lease,
        reserved_names=reserved,
    )
    tokens = TokenFile(options.worker_tokens)
    for entry in options.workers:
        prefix, equals, address = entry.partition("=")
        is_named = bool(equals) and ":" not in prefix
        name, url = (prefix, address) if is_named else (_UNNAMED, entry)
        registry.add(name, url, lambda name=name: tokens.token(name))  # type: ignore[misc]
    return registry


def share_workers(
    registry: WorkerRegistry, store: WorkerRegistrations, options: EngineOptions
) -> None:
    """Share the registrations of a registry with other servers of the same database.

    Raises:
        ConfigurationError: The file of the credentials cannot be read.
    """
    if options.worker_registrations is None:
        return
    registries = importlib.import_module("sluicegate.tools.worker_registry")
    registry.share(registries.WorkerSharing(store, TokenFile(options.worker_tokens).token))
