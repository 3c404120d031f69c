"""The command ``sluicegate check``: what would be served, without serving it."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sluicegate.engine.agents.agent_copy import CopyChanges
from sluicegate.engine.agents.app_copy import build_app
from sluicegate.engine.agents.load_target import load_target
from sluicegate.engine.agents.mcp_servers import mcp_servers
from sluicegate.engine.agents.survey import root_of, survey
from sluicegate.engine.agents.unsupported_agents import refusals
from sluicegate.engine.attach_worker_tools import agent_of_workers
from sluicegate.engine.models.api_key_variables import key_variables
from sluicegate.engine.open_remote_tool_workers import open_workers
from sluicegate.engine.page_tools import refuse_page_tools
from sluicegate.engine.webhooks.open_webhooks import webhook_options
from sluicegate.errors import CATALOGUE, ConfigurationError, ModelKeyMissing
from sluicegate.live.run_config import check_live_models, live_run_config
from sluicegate.server.app import engine_of, require_authentication
from sluicegate.server.authentication import authenticator
from sluicegate.server.page_theme import load_theme
from sluicegate.server.serve_commands import OK, target_name_of
from sluicegate.server.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.adk.models.base_llm import BaseLlm

    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.agents.text_and_live_models import AgentModels
    from sluicegate.engine.agents.tool_collector import SurveyedTool
    from sluicegate.server.app import Target
    from sluicegate.tools.worker_registry import WorkerRegistry

_URLS: Final = ("sessions", "streams", "artifacts")
"""Settings that may contain a password."""

_REFUSED: Final = 1


def check(target_name: str, settings: Settings) -> int:
    """Report what would be served: the application, the gated tools and why, the settings.

    Returns:
        0 when it would be served, 1 when it would be refused.

    Raises:
        ConfigurationError: The target cannot be loaded.
    """
    target = load_target(target_name)
    report = asyncio.run(_examine(target, settings))
    refused = [*report.refused, *_refused_settings(target, settings, report.surveyed)]
    for line in _report_lines(target, report, settings):
        sys.stdout.write(f"{line}\n")
    for sentence in refused:
        sys.stdout.write(f"refused: {sentence}\n")
    return _REFUSED if refused else OK


class _Report(NamedTuple):
    surveyed: AgentSurvey
    models: list[str]
    workers: list[str]
    refused: list[str]


async def _examine(target: Target, settings: Settings) -> _Report:
    surveyed = await survey(target, settings.tool_names)
    refused = refusals(target, surveyed)
    workers, unusable = await _worker_report(target, surveyed, settings)
    models, unknown = _model_report(target, surveyed, settings)
    return _Report(surveyed, models, workers, [*refused, *unknown, *unusable])


def _model_report(
    target: Target, surveyed: AgentSurvey, settings: Settings
) -> tuple[list[str], list[str]]:
    """Return the lines about the models, and why the server would not start."""
    if settings.model_script is not None:
        return [f"models: the script {settings.model_script}"], []
    chosen: dict[str, AgentModels] = {}

    def note(agent: str, models: AgentModels) -> BaseLlm:
        chosen[agent] = models
        return models.text

    try:
        build_app(target, [], changes=CopyChanges(models=settings.models, wrap_models=note))
    except ConfigurationError as error:
        return [], [str(error)]
    unsupported: list[str] = []
    try:
        live_models = {agent: each.live.model for agent, each in chosen.items()}
        check_live_models(live_run_config(settings), live_models)
    except ConfigurationError as error:
        unsupported.append(str(error))
    named = [(agent, chosen[agent]) for agent in surveyed.agents if agent in chosen]
    lines = [
        f"  {agent}: {each.text.model}, live {each.live.model}{_key_of(each.text)}"
        for agent, each in named
    ]
    return ["models:", *lines] if lines else [], unsupported


def _key_of(model: BaseLlm) -> str:
    variables = key_variables(model)
    held = next((name for name in variables if os.environ.get(name)), None)
    if held is not None:
        return f"; the key is in {held}"
    missing = f"; no key in {' or '.join(variables)}, see {CATALOGUE}#{ModelKeyMissing.code}"
    return missing if variables else ""


def _refused_settings(target: Target, settings: Settings, surveyed: AgentSurvey) -> Iterator[str]:
    """Return why the server would not start, apart from the port and the stores."""
    checks: list[Callable[[], object]] = [
        lambda: require_authentication(settings, None),
        lambda: authenticator(settings),
        lambda: engine_of(target, settings),
        lambda: load_theme(settings),
        lambda: webhook_options(settings),
        lambda: refuse_page_tools(settings.page_tools, surveyed, root_of(target)),
    ]
    for run_check in checks:
        try:
            run_check()
        except ConfigurationError as error:
            yield str(error)


def _report_lines(target: Target, report: _Report, settings: Settings) -> Iterator[str]:
    surveyed = report.surveyed
    yield f"app: {target_name_of(target)}"
    yield f"agents: {', '.join(surveyed.agents)}"
    yield from report.models
    yield from _tool_lines(surveyed)
    yield from _toolset_lines(target, surveyed)
    yield from _gate_lines(surveyed)
    yield f"release: {settings.release}"
    if not (surveyed.gated_tools or report.workers):
        yield "approvals: none; everything streams in its natural order"
    for left_out in surveyed.left_out:
        owner = f"a toolset of {left_out.agent}" if left_out.toolset else left_out.agent
        yield f"left out: {left_out.tool} of {owner}; {left_out.why}"
    yield from report.workers
    if not settings.gate_mcp and any(map(_is_ungated_mcp_tool, _tools_of(surveyed))):
        yield "note: tools of MCP servers run without approval; gate_mcp makes them ask"
    tools = {tool.name for tool in _tools_of(surveyed)}
    for setting in ("dynamic_gates", "never_gates", "client_tools", "ungated_mcp_tools"):
        known = tools.union(surveyed.agents) if setting == "never_gates" else tools
        for name in sorted(set(getattr(settings, setting)) - known):
            yield f"note: {setting} names {name}, but no tool that can be listed has this name"
    changed = list(_changed(settings))
    yield "settings:" if changed else "settings: the defaults"
    for name, value in changed:
        yield f"  {name} = {value}"


def _tool_lines(surveyed: AgentSurvey) -> Iterator[str]:
    """Return a line for each tool: the agent that has it, and whether it asks."""
    lines = [f"  {tool.name} of {tool.agent}: {_when_asked(tool)}" for tool in _tools_of(surveyed)]
    lines += [
        f"  {toolset} of {agent}: its tools are not known, so they may ask"
        for agent, toolsets in surveyed.unlisted.items()
        for toolset in toolsets
    ]
    yield "tools:" if lines else "tools: none"
    yield from dict.fromkeys(lines)


def _toolset_lines(target: Target, surveyed: AgentSurvey) -> Iterator[str]:
    """Return a line for each toolset of an MCP server: where it is, and whether it answered."""
    lines = [
        f"  {place} of {agent}: "
        + (
            "its tools could not be listed"
            if agent in surveyed.unlisted
            else "its tools are listed"
        )
        for agent, place in mcp_servers(root_of(target))
    ]
    if lines:
        yield "MCP toolsets:"
        yield from dict.fromkeys(lines)


def _gate_lines(surveyed: AgentSurvey) -> Iterator[str]:
    """Return a line for each agent with gated tools."""
    gated: dict[str, list[str]] = {}
    for tool in surveyed.gated_tools:
        gated.setdefault(tool.agent, []).append(tool.tool)
    if gated:
        yield "gates:"
    for agent, names in gated.items():
        yield f"  {agent}: {', '.join(dict.fromkeys(names))}"


def _tools_of(surveyed: AgentSurvey) -> list[SurveyedTool]:
    return [tool for of_agent in surveyed.tools.values() for tool in of_agent]


def _when_asked(tool: SurveyedTool) -> str:
    requirement = tool.requirement
    match tool.kind:
        case "gated":
            return f"asks each time. {requirement.why}"
        case "conditional":
            return f"may ask. {requirement.why}"
        case "gated-client":
            return f"runs in the browser, and asks. {requirement.why}"
        case "client":
            return "runs in the browser"
    origin = ", and belongs to an MCP server" if _is_ungated_mcp_tool(tool) else ""
    return f"runs without approval{origin}"


def _is_ungated_mcp_tool(tool: SurveyedTool) -> bool:
    return tool.kind == "free" and tool.facts.definition_hash is not None


async def _worker_report(
    target: Target, surveyed: AgentSurvey, settings: Settings
) -> tuple[list[str], list[str]]:
    """Return the lines about the remote tool workers, and why the server would not start.

    An unreachable worker is not a reason, since it may start later.
    """
    try:
        registry = open_workers(settings, surveyed)
        if registry is None:
            return [], []
        agent_of_workers(root_of(target))
        await registry.refresh()
        lines = list(_worker_lines(registry, settings))
        await registry.close()
    except ConfigurationError as error:
        return [], [str(error)]
    return lines, []


def _worker_lines(registry: WorkerRegistry, settings: Settings) -> Iterator[str]:
    yield "workers:"
    ungated = frozenset(settings.ungated_worker_tools)
    for worker in registry.workers():
        status = "offers nothing now" if worker.error else f"{len(worker.tools)} tools"
        yield f"  {worker.client.name} at {worker.client.url}: {status}"
        if worker.error:
            yield f"    {worker.error}"
        for name in sorted(worker.tools):
            gate = (
                "runs without approval (ungated_worker_tools)"
                if name in ungated
                else "requires approval"
            )
            yield f"    {name}: {gate}"
        for name, why in sorted(worker.offers.left_out.items()):
            yield f"    {name}: left out; {why}"
    if settings.worker_registrations is not None:
        yield (
            "  other workers may register; their tools require approval unless "
            "ungated_worker_tools names them"
        )
    offered = {tool.name for tool in registry.tools()}
    for setting in ("worker_tools", "ungated_worker_tools", "idempotent_worker_tools"):
        for name in sorted(set(getattr(settings, setting)) - offered):
            yield f"note: {setting} names {name}, but no worker offers it now"


def _changed(settings: Settings) -> Iterator[tuple[str, Any]]:
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        if value != field.default:
            yield name, _shown(name, value)


def _shown(name: str, value: Any) -> str:
    if name == "webhooks":
        return ", ".join(map(_without_path, value))
    return _without_password(value) if name in _URLS else _formatted(value)


def _formatted(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _without_path(webhook: str) -> str:
    """Shorten a URL whose path or query may be a secret."""
    scheme, separator, rest = webhook.partition("://")
    host = re.split(r"[/?]", rest, maxsplit=1)[0]
    return f"{scheme}{separator}{host}{'' if host == rest else '/…'}"


def _without_password(url: str) -> str:
    head, separator, rest = url.partition("://")
    credentials, at, location = rest.rpartition("@")
    if not (separator and at):
        return url
    user, colon, _ = credentials.partition(":")
    return f"{head}://{user}{':***' if colon else ''}@{location}"
