"""Google ADK agents, streamed to AI SDK useChat clients, with gated tools held for a yes."""

from __future__ import annotations

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sluicegate.engine.chat_engine import ChatEngine
    from sluicegate.engine.options import EngineOptions
    from sluicegate.engine.turn.reader import Client
    from sluicegate.errors import ConfigurationError, RequestError, ToolError
    from sluicegate.media import ToolResult
    from sluicegate.replay import ScriptedModel
    from sluicegate.server.app import create_app
    from sluicegate.server.settings import Settings
    from sluicegate.tools import client_tool

__version__: str

__all__ = [
    "ChatEngine",
    "Client",
    "ConfigurationError",
    "EngineOptions",
    "RequestError",
    "ScriptedModel",
    "Settings",
    "ToolError",
    "ToolResult",
    "__version__",
    "client_tool",
    "create_app",
]

_HOMES: Final = {
    "ChatEngine": "engine.chat_engine",
    "Client": "engine.turn.reader",
    "ConfigurationError": "errors",
    "EngineOptions": "engine.options",
    "RequestError": "errors",
    "ScriptedModel": "replay",
    "Settings": "server.settings",
    "ToolError": "errors",
    "ToolResult": "media",
    "client_tool": "tools",
    "create_app": "server.app",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ADK alone takes seconds to import."""
    if name == "__version__":
        value: Any = version("sluicegate")
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"sluicegate.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
