"""Tools that an agent declares and somebody else runs."""

from sluicegate.tools.client_tools import ClientTool, client_tool

__all__ = ["ClientTool", "client_tool"]
