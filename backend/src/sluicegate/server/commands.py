"""What the commands do, once their options are read."""

from __future__ import annotations

import asyncio
import gc
import importlib
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.adk.apps.app import App

from sluicegate.engine.agents.load_target import load_target
from sluicegate.engine.agents.refusals import refusals
from sluicegate.engine.agents.survey import root_of, survey
from sluicegate.engine.page_tools import refuse_page_tools
from sluicegate.errors import ConfigurationError
from sluicegate.server.app import build, engine_of, refuse_strangers
from sluicegate.server.authentication import authenticator
from sluicegate.server.settings import Settings
from sluicegate.server.uvicorn_server import bind, run
from sluicegate.server.worker_report import worker_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sluicegate.engine.agents.survey import AgentSurvey
    from sluicegate.engine.engine import Engine
    from sluicegate.replay.player import RecordedEngine
    from sluicegate.server.app import Application, Target

DEMO: Final = "sluicegate.demo.agent:root_agent"

_URLS: Final = ("sessions", "streams", "artifacts")
"""Settings that may hold a password."""

_SERVED: Final = 0
_REFUSED: Final = 1


def serve(text: str, settings: Settings, *, suggestions: Sequence[str] = ()) -> int:
    """Serve the agent that the text names, until a signal ends it.

    Raises:
        ConfigurationError: The target, a setting, a file or the port cannot be used.
    """
    target = load_target(text)
    application = build(engine_of(target, settings), settings, suggestions=suggestions)
    return _serve(application, settings, f"serves {_name(target)}")


def replay(file: str, settings: Settings, *, paced: bool) -> int:
    """Serve a recorded chat, until a signal ends it; ``paced`` leaves its pauses.

    Raises:
        ConfigurationError: The recording, a setting or the port cannot be used.
    """
    player = importlib.import_module("sluicegate.replay.player")
    engine: RecordedEngine = player.RecordedEngine.from_file(file, paced=paced)

    async def open_engine() -> Engine:
        return engine

    application = build(open_engine, settings, suggestions=engine.suggestions)
    return _serve(application, settings, f"replays {file}")


def _serve(application: Application, settings: Settings, what: str) -> int:
    def ready(url: str) -> None:
        # What was imported stays; to look through it for garbage would hold every stream up.
        gc.freeze()
        gc.enable()
        sys.stdout.write(f"sluicegate {what} at {url} (Ctrl+C ends it)\n")
        sys.stdout.flush()

    run(application, settings, bind(settings), ready)
    return _SERVED


def demo(settings: Settings) -> int:
    """Serve the demo agent; the page offers what its script knows."""
    suggestions = importlib.import_module("sluicegate.demo.suggestions").SUGGESTIONS
    return serve(DEMO, settings, suggestions=suggestions)


def check(text: str, settings: Settings) -> int:
    """Say what would be served: the application, the gates and why, the settings.

    Returns:
        0 when it would be served, 1 when it would be refused.

    Raises:
        ConfigurationError: The target cannot be loaded.
    """
    target = load_target(text)
    judged = asyncio.run(_judge(target, settings))
    refused = [*judged.refused, *_unusable(target, settings, judged.found)]
    for line in _report(target, judged, settings):
        sys.stdout.write(f"{line}\n")
    for sentence in refused:
        sys.stdout.write(f"refused: {sentence}\n")
    return _REFUSED if refused else _SERVED


class _Judged(NamedTuple):
    found: AgentSurvey
    workers: list[str]
    refused: list[str]


async def _judge(target: Target, settings: Settings) -> _Judged:
    found = await survey(
        target,
        dynamic_gates=settings.dynamic_gates,
        never_gates=settings.never_gates,
        client_tools=settings.client_tools,
    )
    refused = refusals(target, found)
    workers, unusable = await worker_report(target, found, settings)
    return _Judged(found, workers, [*refused, *unusable])


def _unusable(target: Target, settings: Settings, found: AgentSurvey) -> Iterator[str]:
    """Say what of the settings would stop the server, apart from the port and the stores."""
    checks: list[Callable[[], object]] = [
        lambda: refuse_strangers(settings, None),
        lambda: authenticator(settings),
        lambda: engine_of(target, settings),
        lambda: refuse_page_tools(settings.page_tools, found, root_of(target)),
    ]
    for check_one in checks:
        try:
            check_one()
        except ConfigurationError as error:
            yield str(error)


def _name(target: Target) -> str:
    return target.name if isinstance(target, App) else root_of(target).name


def _report(target: Target, judged: _Judged, settings: Settings) -> Iterator[str]:
    found = judged.found
    yield f"app: {_name(target)}"
    yield f"agents: {', '.join(found.agents)}"
    if found.gates:
        yield "gates:"
    elif judged.workers:
        yield "gates: those of workers alone"
    else:
        yield "gates: none; everything streams in its natural order"
    for gate in found.gates:
        yield f"  {gate.tool} of {gate.agent}: {gate.why}"
    yield from judged.workers
    tools = {tool.name for tools in found.tools.values() for tool in tools}
    for setting in ("dynamic_gates", "never_gates", "client_tools"):
        for name in sorted(set(getattr(settings, setting)) - tools):
            yield f"note: {setting} names {name}, but no tool that can be listed has this name"
    changed = list(_changed(settings))
    yield "settings:" if changed else "settings: the defaults"
    for name, value in changed:
        yield f"  {name} = {value}"


def _changed(settings: Settings) -> Iterator[tuple[str, Any]]:
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        if value != field.default:
            yield name, _without_password(value) if name in _URLS else _shown(value)


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _without_password(url: str) -> str:
    head, separator, rest = url.partition("://")
    who, at, where = rest.rpartition("@")
    if not (separator and at):
        return url
    user, colon, _ = who.partition(":")
    return f"{head}://{user}{':***' if colon else ''}@{where}"
