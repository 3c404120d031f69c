"""Names of workers and of their tools: what may be one, and how they are put together (S1-R29)."""

from __future__ import annotations

import re
from typing import Final

from sluicegate.errors import ConfigurationError

LONGEST: Final = 64
"""Characters of a name that every provider of models takes."""

_WORKER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,31}")
_TOOL: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")


def is_worker_name(text: str) -> bool:
    """Whether a worker may be called so: a letter, then at most 31 letters, digits and hyphens.

    Without an underscore, so that the names of two workers' tools cannot meet.
    """
    return _WORKER.fullmatch(text) is not None and text.lower() != "adk"


def checked_tool_name(name: str) -> str:
    """Return the name of a tool if it may be one: a letter, then letters, digits, ``_`` and ``-``.

    Raises:
        ConfigurationError: It may not.
    """
    if not _TOOL.fullmatch(name):
        raise ConfigurationError(
            f"The tool name {name[: LONGEST + 1]!r} is not a letter followed by letters, digits, "
            "_ and -."
        )
    return name


def full_name(worker: str, tool: str) -> str:
    """What a model calls the tool of a worker.

    Raises:
        ConfigurationError: One of the names may not be one, or both together are too long.
    """
    if not is_worker_name(worker):
        raise ConfigurationError(
            "The name of a worker is a letter followed by at most 31 letters, digits and hyphens."
        )
    name = f"{worker}_{checked_tool_name(tool)}"
    if len(name) > LONGEST:
        raise ConfigurationError(
            f"The tool name {name!r} is longer than {LONGEST} characters; shorten one of its parts."
        )
    return name
