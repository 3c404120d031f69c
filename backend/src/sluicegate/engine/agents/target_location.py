"""Where the agent is that a command line names; found without importing ADK or the agent."""

from __future__ import annotations

import importlib
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from sluicegate.errors import ConfigurationError

_MODULE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def split_target(text: str) -> tuple[str, str | None]:
    """Split the location from the attribute; the colon after a drive letter is no separator."""
    location, colon, name = text.strip().rpartition(":")
    if colon and name.replace(".", "_").isidentifier():
        return location, name
    return (location, None) if colon and not name else (text.strip(), None)


def folder_of(text: str) -> Path:
    """Return the folder of a target, which may hold a ``.env``; the working directory is searched.

    Raises:
        ConfigurationError: There is no such file, folder or module.
    """
    location, _ = split_target(text)
    if not location:
        raise ConfigurationError(
            "The target is empty; name one, such as agent.py:root_agent or a folder with agent.py."
        )
    path = Path(location)
    if path.exists():
        return path if path.is_dir() else path.parent
    if _MODULE.fullmatch(location) is None or path.suffix == ".py":
        raise ConfigurationError(
            f"There is no file {location}; correct the path, or run this in the agent's folder."
        )
    top, *below = location.split(".")
    prepend_to_path(Path.cwd())
    loaded = sys.modules.get(top)
    spec = find_spec(top) if loaded is None else loaded.__spec__
    if spec is None and loaded is None:
        raise missing_module(top, location)
    folder = Path((spec and spec.origin) or "").parent
    return folder.joinpath(*below[:-1])


def require_file(name: str) -> None:
    """Refuse the name of a file that does not exist, before what reads it is imported."""
    if not Path(name).is_file():
        raise ConfigurationError(f"There is no file {name}; correct the path.")


def missing_module(name: str, location: str) -> ConfigurationError:
    """Return the error for a target whose module, or a package of it, does not exist."""
    return ConfigurationError(
        f"There is no module {name!r}; check the name of the target {location!r}, or name its "
        "file, such as path/agent.py:root_agent."
    )


def prepend_to_path(folder: Path) -> None:
    """Let modules be found in a folder, before all others."""
    importlib.invalidate_caches()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
