"""The toolsets of MCP servers in the agent: their declarations have the limits of a worker's.

ADK's ``McpToolset`` offers everything that its server lists. A tool that declares too much, or a
schema whose check could take unbounded time, is left out; the others stay.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sluicegate.adk_private import check_results_of
from sluicegate.errors import ConfigurationError, ToolError, UnusableSchema
from sluicegate.tools.remote_tool_limits import MAX_DESCRIPTION, MAX_TOOLS

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset
    from google.adk.tools.tool_context import ToolContext

    from sluicegate.core.schema_validation import ArgumentSchema

logger = logging.getLogger("sluicegate")


@dataclass(slots=True)
class _ReadDefinition:
    """A definition, the schema of its results, and why its tool is left out."""

    definition: Any
    results: ArgumentSchema | None = None
    why: str | None = None


@dataclass(slots=True)
class BoundedTools:
    """The tools of one MCP server; an unchanged definition is read once.

    ``left_out`` has the reasons of the last listing by the name of the tool, ``*`` for all.
    """

    left_out: dict[str, str] = field(default_factory=dict)
    _known: dict[str, _ReadDefinition] = field(default_factory=dict)

    async def select(self, tools: list[BaseTool]) -> list[BaseTool]:
        """Return the tools that are offered, each with a bounded check of its results."""
        listed = [tool for tool in tools if _definition(tool) is not None]
        if len(listed) > MAX_TOOLS:
            why = f"it offers more than {MAX_TOOLS} tools; select some by its tool_filter"
            self._report({"*": why})
            return [tool for tool in tools if _definition(tool) is None]
        if any(self._is_new(tool) for tool in listed):
            # Compiling takes a while; in a thread it shares the interpreter with the event loop.
            self._known = await asyncio.to_thread(self._read_all, listed)
        reasons = {tool.name: self._known[tool.name].why for tool in listed}
        self._report({name: why for name, why in reasons.items() if why is not None})
        offered = [tool for tool in tools if reasons.get(tool.name) is None]
        for tool in offered:
            if tool.name in reasons:
                check_results_of(tool, self._known[tool.name].results)
                _raise_error_results(tool)
        return offered

    def _is_new(self, tool: BaseTool) -> bool:
        known = self._known.get(tool.name)
        return known is None or known.definition != _definition(tool)

    def _read_all(self, tools: list[BaseTool]) -> dict[str, _ReadDefinition]:
        return {
            tool.name: _read(tool) if self._is_new(tool) else self._known[tool.name]
            for tool in tools
        }

    def _report(self, left_out: dict[str, str]) -> None:
        for name, why in left_out.items():
            if self.left_out.get(name) != why:
                logger.warning("the tool %s of an MCP toolset is left out: %s", name, why)
        self.left_out = left_out


def bounded_tools_of(toolset: BaseToolset) -> BoundedTools | None:
    """Bound ADK's toolset of an MCP server, its HTTP client included; None for another toolset.

    Raises:
        ConfigurationError: The package mcp is older than version 2.
    """
    if not is_mcp_toolset(toolset):
        return None
    if find_spec("httpx2") is None:
        raise ConfigurationError(
            "The agent has a toolset of an MCP server, which needs version 2 of the package mcp; "
            "pip install 'mcp>=2.3'."
        )
    # Imported late: the client of MCP is large, and most agents never need it.
    client = importlib.import_module("sluicegate.engine.agents.bounded_mcp_http_client")
    client.bound_client_of(toolset)
    return BoundedTools()


def is_mcp_toolset(toolset: object) -> bool:
    """Whether a toolset is one of ADK's for MCP servers."""
    return any(base.__name__ == "McpToolset" for base in type(toolset).__mro__)


def _raise_error_results(tool: BaseTool) -> None:
    """Make a call fail if its result has ``isError``.

    ADK: it returns such a result of an MCP server as it returns any other.
    """

    async def run_async(*, args: dict[str, Any], tool_context: ToolContext) -> Any:
        result = await type(tool).run_async(tool, args=args, tool_context=tool_context)
        if isinstance(result, dict) and result.get("isError") is True:
            raise ToolError(_error_text(result.get("content")))
        return result

    vars(tool)["run_async"] = run_async


def _error_text(content: object) -> str:
    blocks = content if isinstance(content, list) else []
    texts = [str(block.get("text") or "") for block in blocks if isinstance(block, dict)]
    return " ".join(" ".join(texts).split())[:500] or "The tool failed."


def _definition(tool: BaseTool) -> Any:
    return getattr(tool, "raw_mcp_tool", None)


def _read(tool: BaseTool) -> _ReadDefinition:
    definition = _definition(tool)
    # Imported late: the validator is large, and most agents never need it.
    compile_schema = importlib.import_module("sluicegate.core.schema_validation").compile_schema
    if len(definition.description or "") > MAX_DESCRIPTION:
        return _ReadDefinition(definition, why="its description is very long")
    try:
        compile_schema(definition.input_schema)
        declared = definition.output_schema
        results = None if declared is None else compile_schema(declared)
    except UnusableSchema as error:
        return _ReadDefinition(definition, why=f"its schema cannot be used: {error}")
    return _ReadDefinition(definition, results)
