"""Client-side tools: declared to the model here, run by the page in the browser.

The page receives the call as a tool part and answers it with ``addToolOutput``; the model reads the
output as the function response.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from google.genai import types

from sluicegate.adk_private import DeclaredTool
from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.tools.tool_context import ToolContext

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


class ClientTool(DeclaredTool):
    """A tool without a body: ADK keeps its call open until a function response arrives.

    ``schema`` is the JSON schema of the arguments. `client_tool` checks what this class does not.
    """

    def __init__(self, *, name: str, description: str, schema: Mapping[str, Any]) -> None:
        super().__init__(name=name, description=description, is_long_running=True)
        self.schema: dict[str, Any] = dict(schema)

    def declaration(self) -> types.FunctionDeclaration:
        """Return the declaration that is sent to the model."""
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self.schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> None:
        """Do nothing: a long-running tool that returns None has no function response yet."""


class GatedClientTool(ClientTool):
    """A client-side tool whose calls require approval before they are sent to the page."""

    async def check_require_confirmation(
        self, args: dict[str, Any], tool_context: ToolContext
    ) -> bool:
        """Always; ADK calls this before every run of the tool."""
        return True


def client_tool(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    *,
    require_confirmation: bool = False,
) -> ClientTool:
    """Make a tool that the page runs.

    Args:
        name: The name for model and page: a letter or underscore, then letters, digits and
            ``_.-``, at most 64; not starting with ``adk_``, which is reserved for ADK.
        description: For the model and for the approver.
        schema: JSON schema of the arguments; its type is ``object``.
        require_confirmation: Whether each call requires approval.

    Raises:
        ConfigurationError: The name or the schema is not valid.
    """
    if not _NAME.fullmatch(name):
        message = f"The client-side tool name {name!r} is not a valid function name."
        raise ConfigurationError(message)
    if name.startswith("adk_"):
        message = f"The client-side tool name {name!r} starts with adk_, which belongs to ADK."
        raise ConfigurationError(message)
    if schema.get("type") != "object":
        message = f"The schema of the client-side tool {name!r} must have the type object."
        raise ConfigurationError(message)
    kind = GatedClientTool if require_confirmation else ClientTool
    return kind(name=name, description=description, schema=schema)
