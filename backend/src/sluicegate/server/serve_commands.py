"""The commands that serve an agent or a recording."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import TYPE_CHECKING, Final

from google.adk.apps.app import App

from sluicegate.engine.agents.load_target import load_target
from sluicegate.engine.agents.survey import root_of
from sluicegate.server.app import build, engine_of
from sluicegate.server.authentication import LOCAL_USER, User
from sluicegate.server.demo_users import DemoUsers
from sluicegate.server.malloc_trim import returning_free_memory
from sluicegate.server.supervised import inherited
from sluicegate.server.telemetry import exporting
from sluicegate.server.terminal import is_coloured
from sluicegate.server.uvicorn_server import bind, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluicegate.engine.interface import Engine
    from sluicegate.replay.playback_engine import PlaybackEngine
    from sluicegate.server.app import Application, Target
    from sluicegate.server.settings import Settings

DEMO: Final = "sluicegate.demo.agent:root_agent"


OK: Final = 0


def serve(
    target_name: str,
    settings: Settings,
    *,
    suggestions: Sequence[str] = (),
    demo_users: DemoUsers | None = None,
) -> int:
    """Serve an agent until a signal comes.

    Raises:
        ConfigurationError: The target, a setting, a file or the port cannot be used.
    """
    target = load_target(target_name)
    application = build(
        engine_of(target, settings),
        settings,
        authenticate=demo_users if settings.auth == "none" else None,
        suggestions=suggestions,
    )
    return _serve(application, settings, f"serves {target_name_of(target)}")


def replay(file: str, settings: Settings, *, paced: bool) -> int:
    """Serve a recorded chat until a signal comes; ``paced`` keeps its pauses.

    Raises:
        ConfigurationError: The recording, a setting or the port cannot be used.
    """
    player = importlib.import_module("sluicegate.replay.playback_engine")
    engine: PlaybackEngine = player.PlaybackEngine.from_file(file, paced=paced)

    async def open_engine() -> Engine:
        return engine

    application = build(open_engine, settings, suggestions=engine.suggestions)
    return _serve(application, settings, f"replays {file}")


def _serve(application: Application, settings: Settings, description: str) -> int:
    supervised = inherited()

    def announce(url: str) -> None:
        # Imported objects are permanent; collecting among them would delay every stream.
        gc.freeze()
        # By default all objects of cached chats and running turns are visited several times a
        # minute, which stops every stream for up to 90 ms.
        gc.set_threshold(5_000, 10, 10)
        gc.enable()
        if supervised is not None:
            supervised.announce(description)
            return
        shown = f"\x1b[1m{url}\x1b[0m" if is_coloured(sys.stdout) else url
        sys.stdout.write(f"sluicegate {description} at {shown} (Ctrl+C ends it)\n")
        sys.stdout.flush()

    with exporting(settings, os.environ), returning_free_memory():
        if supervised is None:
            run(application, settings, bind(settings), announce)
        else:
            run(application, settings, supervised.listener, announce, on_start=supervised.watch)
    return OK


def demo(settings: Settings) -> int:
    """Serve the demo agent; the page suggests the messages that its script answers.

    On a server without authentication the page switches between two people.
    """
    suggestions = importlib.import_module("sluicegate.demo.suggestions").SUGGESTIONS
    people = DemoUsers(User(LOCAL_USER), User("colleague", ["finance"]))
    return serve(DEMO, settings, suggestions=suggestions, demo_users=people)


def target_name_of(target: Target) -> str:
    """The name of the application, or of the root agent."""
    return target.name if isinstance(target, App) else root_of(target).name
