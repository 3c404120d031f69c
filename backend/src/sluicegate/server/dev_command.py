"""``sluicegate dev``: serves an agent, and again after each change of its files."""

from __future__ import annotations

import logging
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from watchfiles import DefaultFilter, run_process

from sluicegate.engine.agents.target_location import folder_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from watchfiles import Change

_SUFFIXES: Final = frozenset({".css", ".env", ".json", ".py", ".yaml", ".yml"})
_NOT_WATCHED: Final = (*DefaultFilter.ignore_dirs, ".sluicegate", "dist", "page", "test-results")


class _SourceFiles(DefaultFilter):
    """The files whose changes matter: code, scripts and settings, none that the server writes."""

    def __init__(self) -> None:
        super().__init__(ignore_dirs=_NOT_WATCHED)

    def __call__(self, change: Change, path: str) -> bool:
        file = Path(path)
        known = file.suffix in _SUFFIXES or file.name == ".env"
        return known and super().__call__(change, path)


def dev(target: str, options: Sequence[str]) -> int:
    """Serve a target with these options until a signal comes; an error waits for a change.

    Raises:
        ConfigurationError: There is no such file, folder or module.
    """
    # Its warnings name how the process ended, which the process itself has said.
    logging.getLogger("watchfiles").setLevel(logging.ERROR)
    command = [sys.executable, "-m", "sluicegate", "serve", target, *options, "--access-log"]
    run_process(
        folder_of(target).resolve(),
        target=shlex.join(command),
        target_type="command",
        watch_filter=_SourceFiles(),
        callback=_announce,
    )
    return 0


def _announce(changes: set[tuple[Change, str]]) -> None:
    names = sorted({Path(path).name for _, path in changes})
    sys.stderr.write(f"{', '.join(names)} changed; the server starts again\n")
    sys.stderr.flush()
