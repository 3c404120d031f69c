"""How much a worker or an MCP server may declare, beside the limits of its schemas."""

from __future__ import annotations

from typing import Final

MAX_TOOLS: Final = 200
"""Tools of one worker, or of one toolset of an MCP server."""

MAX_DESCRIPTION: Final = 8 * 1024
"""Characters of the description of a tool."""
