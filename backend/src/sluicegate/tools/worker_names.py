"""The names of workers and of their tools.

A tool of a worker is called by a model as ``<worker>_<tool>``, so that workers cannot collide.
"""

from __future__ import annotations

import re
from typing import Final

from sluicegate.errors import ConfigurationError

MAX_TOOL_NAME: Final = 64
"""Characters of a tool's full name that every model provider accepts."""

_WORKER_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,31}")
_TOOL_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_REMOTE_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


def is_worker_name(text: str) -> bool:
    """Whether this is a worker name: a letter, then at most 31 letters, digits and hyphens.

    Underscores are not allowed, so that full names of two workers' tools cannot be equal.
    """
    return _WORKER_NAME.fullmatch(text) is not None and text.lower() != "adk"


def check_worker_name(name: str) -> None:
    """Refuse what is not a worker name.

    Raises:
        ConfigurationError: The name is not valid.
    """
    if not is_worker_name(name):
        raise ConfigurationError(
            "The name of a worker is a letter followed by at most 31 letters, digits and hyphens."
        )


def check_tool_name(name: str) -> str:
    """Return a valid tool name unchanged: a letter, then letters, digits, ``_`` and ``-``.

    Raises:
        ConfigurationError: The name is not valid.
    """
    if not _TOOL_NAME.fullmatch(name):
        raise ConfigurationError(
            f"The tool name {name[: MAX_TOOL_NAME + 1]!r} is not a letter followed by letters, "
            "digits, _ and -."
        )
    return name


def is_tool_name(text: str) -> bool:
    """Whether a model can call a tool of a worker by exactly this name after the worker's."""
    return _REMOTE_NAME.fullmatch(text) is not None


def full_tool_name(worker: str, tool: str) -> str:
    """Return the name under which a model calls a worker's tool: ``<worker>_<tool>`` (S1-R29).

    MCP also allows ``.`` and ``/`` in a name; model providers do not, so they become ``_``.

    Raises:
        ConfigurationError: One of the names is not valid, or both together are too long.
    """
    check_worker_name(worker)
    own = tool.replace(".", "_").replace("/", "_")
    if not is_tool_name(own):
        raise ConfigurationError("its name is not letters, digits, _, -, . and /")
    name = f"{worker}_{own}"
    if len(name) > MAX_TOOL_NAME:
        raise ConfigurationError(f"its name {name!r} is longer than {MAX_TOOL_NAME} characters")
    return name


def shown_name(text: str, limit: int = 100) -> str:
    """Return a text of a worker on one line, without characters that are not printable."""
    printable = "".join(c if c.isprintable() else " " for c in text[:limit])
    return " ".join(printable.split())
