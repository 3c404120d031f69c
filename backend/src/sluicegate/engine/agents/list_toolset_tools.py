"""The tools of a toolset, as a model calls them."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset

    from sluicegate.engine.agents.mcp_declaration_limits import BoundedTools


async def list_tools(toolset: BaseToolset, bounded: BoundedTools | None = None) -> list[BaseTool]:
    """Return a toolset's tools, named as the model calls them, without filling its cache.

    ``bounded`` leaves out tools of an MCP server.
    """
    tools = await toolset.get_tools(None)
    if bounded is not None:
        tools = await bounded.select(tools)
    prefix = toolset.tool_name_prefix
    if not prefix:
        return tools
    return [_renamed(tool, f"{prefix}_{tool.name}") for tool in tools]


def _renamed(tool: BaseTool, name: str) -> BaseTool:
    renamed = copy.copy(tool)
    renamed.name = name
    return renamed
