"""Google ADK agents, streamed to AI SDK useChat clients, with gated tools held for a yes."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sluicegate._version import __version__
    from sluicegate.engine.agents.every_turn_mark import every_turn
    from sluicegate.errors import ConfigurationError, RequestError, ToolError
    from sluicegate.media import ToolResult
    from sluicegate.replay import ScriptedModel
    from sluicegate.server.app import create_app
    from sluicegate.server.authentication import User
    from sluicegate.server.settings import Settings
    from sluicegate.tools import client_tool

__all__ = [
    "ConfigurationError",
    "RequestError",
    "ScriptedModel",
    "Settings",
    "ToolError",
    "ToolResult",
    "User",
    "__version__",
    "client_tool",
    "create_app",
    "every_turn",
]

_MODULES: Final = {
    "ConfigurationError": "errors",
    "RequestError": "errors",
    "ScriptedModel": "replay",
    "Settings": "server.settings",
    "ToolError": "errors",
    "ToolResult": "media",
    "User": "server.authentication",
    "__version__": "_version",
    "client_tool": "tools",
    "create_app": "server.app",
    "every_turn": "engine.agents.every_turn_mark",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: importing ADK alone takes seconds."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"sluicegate.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
