"""How much a worker or an MCP server may declare and answer, beside the limits of its schemas."""

from __future__ import annotations

from typing import Final

MAX_TOOLS: Final = 200
"""Tools of one worker, or of one toolset of an MCP server."""

MAX_DESCRIPTION: Final = 8 * 1024
"""Characters of the description of a tool."""

MAX_LISTED_BYTES: Final = 1024 * 1024
"""Bytes of all definitions of a worker or an MCP server."""

MAX_RESULT_BYTES: Final = 64 * 1024 * 1024
"""Bytes that may answer one call; files are among them."""

MAX_RESULT_VALUES: Final = 500_000
"""Commas in them: values in JSON, which are parsed at once and take far more memory than text."""
