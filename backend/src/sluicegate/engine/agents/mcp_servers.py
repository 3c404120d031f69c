"""The MCP servers of an agent tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from sluicegate.engine.agents.agent_tree import children_of
from sluicegate.engine.agents.mcp_declaration_limits import is_mcp_toolset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.workflow import BaseNode


def mcp_servers(root: BaseNode) -> Iterator[tuple[str, str]]:
    """Yield each agent with a toolset of an MCP server, and the URL or the command of the server.

    The URL has no query and no credentials.
    """
    pending, seen = [root], set[int]()
    while pending:
        node = pending.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        pending.extend(children_of(node))
        for entry in getattr(node, "tools", None) or ():
            if is_mcp_toolset(entry):
                yield node.name, _location(getattr(entry, "connection_params", None))


def _location(params: Any) -> str:
    url = getattr(params, "url", None)
    if url:
        parts = urlsplit(str(url))
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    command = getattr(getattr(params, "server_params", params), "command", None)
    return str(command or "an MCP server")
