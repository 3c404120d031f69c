"""Python functions of this process as tools that get what their annotations say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluicegate.adk_private import DeclaredFunctionTool
from sluicegate.errors import ToolError
from sluicegate.tools.functions import declare

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.tools.tool_context import ToolContext
    from google.genai import types


class TypedTool(DeclaredFunctionTool):
    """A function tool whose declaration is `declare`'s, and whose arguments are read by it.

    ADK's own hands dates and enums over as texts and takes what does not fit; here a date is a date
    and a call that does not fit is an error that the model reads (S1-R37).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        require_confirmation: bool | Callable[..., bool] = False,
    ) -> None:
        """Take the function; its parameter of the type ``ToolContext`` is ADK's to fill.

        Raises:
            DeclarationError: It cannot be a tool; the sentence names the parameter.
        """
        super().__init__(function, require_confirmation=require_confirmation)
        self._declared = declare(function, name=name, without=self.context_parameters)
        self.name = self._declared.name
        self.description = self._declared.description

    def declaration(self) -> types.FunctionDeclaration:
        """Return what a model is told of the tool."""
        return self._declared.declaration

    def read_arguments(self, args: dict[str, Any]) -> dict[str, Any]:
        """Convert a model's arguments to those of the function; `ToolError` if they do not fit."""
        return self._declared.read(args)

    async def check_require_confirmation(
        self, args: dict[str, Any], tool_context: ToolContext
    ) -> bool:
        """As declared; nobody is asked for a call that is refused anyway."""
        try:
            self._declared.read(args)
        except ToolError:
            return False
        return await super().check_require_confirmation(args, tool_context)


def typed_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    require_confirmation: bool | Callable[..., bool] = False,
) -> TypedTool:
    """Make a tool of a function, told and called by its annotations (S1-R20).

    Args:
        function: With a docstring and a type hint for every parameter; see `declare`.
        name: What the model calls it; the function's own name by default.
        require_confirmation: As in ADK: always, or a function of the arguments.

    Raises:
        DeclarationError: It cannot be a tool; the sentence names the parameter.
    """
    return TypedTool(function, name=name, require_confirmation=require_confirmation)
