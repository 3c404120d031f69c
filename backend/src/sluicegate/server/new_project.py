"""``sluicegate new``: a project with an agent, its script, tests, a page and a Dockerfile."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable
    from pathlib import Path

_SUFFIX: Final = ".template"
_NOT_MINIMAL: Final = ("Dockerfile", ".dockerignore", "page/")
_MORE: Final = "more.md"


def new_project(folder: Path, *, is_minimal: bool) -> list[str]:
    """Write a project into a folder that is new or empty; returns the paths of its files.

    Without the page and the Dockerfile if ``is_minimal``.

    Raises:
        ConfigurationError: The folder has files, or cannot be written.
    """
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-") or "agent"
    contents = dict(_contents(files("sluicegate.server") / "project_template"))
    more = contents.pop(_MORE)
    if is_minimal:
        more = ""
        contents = {
            path: text for path, text in contents.items() if not path.startswith(_NOT_MINIMAL)
        }
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ConfigurationError(f"{folder} is not an empty folder; name a new one.")
        for path, text in contents.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            filled = text.replace("{{more}}", more).replace("{{name}}", name)
            file.write_text(filled.rstrip("\n") + "\n", "utf-8")
        (folder / ".env").chmod(0o600)
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be written: {error.strerror or error}."
        ) from error
    return sorted(contents)


def _contents(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the paths and the texts of the templates; ``dot.`` stands for a leading dot."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _contents(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):
            name = re.sub(r"^dot\.", ".", entry.name.removesuffix(_SUFFIX))
            yield f"{prefix}{name}", entry.read_text("utf-8")
