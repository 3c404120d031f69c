"""What tools declare to the model: read once per tool, compared whenever a grant may apply."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from sluicegate.adk_private import declaration_of
from sluicegate.core.tool_definition_changes import define

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool

    from sluicegate.core.tool_definition_changes import ToolDefinition

_DEFINITIONS: Final[WeakKeyDictionary[object, dict[str, ToolDefinition | None]]] = (
    WeakKeyDictionary()
)
"""The definitions by the object that declares them, and the name under which it is called."""


def definition_of(tool: BaseTool) -> ToolDefinition | None:
    """Return the definition of a tool; None for a tool without a declaration.

    For a tool of an MCP server it is what the server declared.
    """
    # ADK: it makes a new tool of a function for every model call.
    function = tool.func if type(tool) is FunctionTool else None
    try:
        known = _DEFINITIONS.setdefault(function if inspect.isfunction(function) else tool, {})
    except TypeError:
        # A tool that a dataclass implements may have no hash.
        known = {}
    if tool.name not in known:
        known[tool.name] = _definition(tool)
    return known[tool.name]


def schema_of(tool: BaseTool) -> dict[str, Any] | None:
    """Return the JSON schema of a tool's arguments; None for a tool without a declaration."""
    declaration = _declaration(tool)
    return None if declaration is None else _schema(declaration)


def is_of_mcp_server(tool: BaseTool) -> bool:
    """Whether another process has declared a tool: an MCP server or a remote worker."""
    return any(
        base.__name__ == "McpTool" and base.__module__.startswith("google.adk.")
        for base in type(tool).__mro__
    )


def _definition(tool: BaseTool) -> ToolDefinition | None:
    listed = getattr(tool, "raw_mcp_tool", None) if is_of_mcp_server(tool) else None
    schema = getattr(listed, "input_schema", None)
    if isinstance(schema, dict):
        return define(tool.name, getattr(listed, "description", None) or "", schema)
    declaration = _declaration(tool)
    if declaration is None:
        return None
    description = declaration.description or tool.description or ""
    return define(tool.name, description, _schema(declaration))


def _declaration(tool: BaseTool) -> types.FunctionDeclaration | None:
    try:
        return declaration_of(tool)
    except Exception:  # noqa: BLE001 - annotations are the user's and may raise anything;
        # ADK raises the same at the first model call, where the turn reports it.
        return None


def _schema(declaration: types.FunctionDeclaration) -> dict[str, Any]:
    schema = declaration.parameters_json_schema
    if isinstance(schema, dict):
        return schema
    if isinstance(declaration.parameters, types.Schema):
        converted = declaration.parameters.json_schema
        return converted.model_dump(mode="json", exclude_none=True, by_alias=True)
    return {"type": "object", "properties": {}}
