"""JSON schemas of the tools that ADK is about to run, read once per tool."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from sluicegate.engine.agents.tool_definitions import schema_of

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool

_SCHEMAS: Final[WeakKeyDictionary[BaseTool, dict[str, Any] | None]] = WeakKeyDictionary()


def schema_for(tool: BaseTool) -> dict[str, Any] | None:
    """Return the JSON schema of a tool's arguments; None for a tool without a declaration."""
    # A tool may be of a class that is not hashable.
    with suppress(KeyError, TypeError):
        return _SCHEMAS[tool]
    schema = schema_of(tool)
    with suppress(TypeError):
        _SCHEMAS[tool] = schema
    return schema
