"""Explicit declarations as tools of an agent: a handler beside each declaration (S1-R12).

The arguments are validated against the declaration, and a result that the handler returns stands
under ``result``, whatever it is (S1-R27).
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from typing import TYPE_CHECKING, Any, Final

from sluicegate.adk_private import DeclaredTool, confirmation_setting, set_confirmation
from sluicegate.errors import DeclarationError, ToolError, UnusableSchema
from sluicegate.tools.strict_genai import FunctionDeclaration, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.adk.tools.tool_context import ToolContext
    from google.genai import types

    from sluicegate.core.schema_validation import ArgumentSchema

_CONTEXT: Final = "tool_context"


class HandledTool(DeclaredTool):
    """A declaration with the handler that runs its calls.

    Raises:
        DeclarationError: Arguments cannot be checked with the schema of the declaration.
    """

    def __init__(
        self,
        declaration: FunctionDeclaration,
        handler: Callable[..., Any],
        *,
        require_confirmation: bool | Callable[..., bool] = False,
    ) -> None:
        super().__init__(name=declaration.name, description=declaration.description)
        self._declaration: types.FunctionDeclaration = declaration.to_genai()
        self._handler = handler
        self._has_context = _CONTEXT in inspect.signature(handler).parameters
        set_confirmation(self, when=require_confirmation)
        # Imported late: the validator is large, and most agents never need it.
        validation = importlib.import_module("sluicegate.core.schema_validation")
        try:
            self._schema: ArgumentSchema = validation.compile_schema(_schema_of(self._declaration))
        except UnusableSchema as error:
            raise DeclarationError(
                f"{declaration.name}: Its schema cannot be used: {error}."
            ) from None

    def declaration(self) -> types.FunctionDeclaration:
        """Return the declaration that is sent to the model, as its author made it."""
        return self._declaration

    async def check_require_confirmation(
        self, args: dict[str, Any], tool_context: ToolContext
    ) -> bool:
        """As declared; a call with invalid arguments fails without asking for approval."""
        if self._schema.error(args, root="arguments") is not None:
            return False
        when = confirmation_setting(self)
        required = when(**args) if callable(when) else when
        return bool(await required if inspect.isawaitable(required) else required)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Validate the arguments and run the handler.

        Raises:
            ToolError: The arguments are not valid.
        """
        error = self._schema.error(args, root="arguments")
        if error is not None:
            raise ToolError(f"Not run: the arguments do not fit: {error}.")
        more = {_CONTEXT: tool_context} if self._has_context else {}
        if inspect.iscoroutinefunction(self._handler):
            result = await self._handler(args, **more)
        else:
            result = await asyncio.to_thread(self._handler, args, **more)
        # ADK: it wraps what is not a mapping under this key, and only that.
        return {"result": result}


def declared_tool(
    declaration: FunctionDeclaration | types.FunctionDeclaration | Mapping[str, Any],
    handler: Callable[..., Any],
    *,
    require_confirmation: bool | Callable[..., bool] = False,
) -> HandledTool:
    """Make a tool of a declaration and the function that runs its calls.

    Args:
        declaration: The function as the model reads it, which is sent unchanged.
        handler: A function of the arguments, one dictionary, and of ADK's context if it has a
            parameter ``tool_context``; a plain function runs in a thread.
        require_confirmation: As in ADK: always, or a function of the arguments.

    Raises:
        DeclarationError: The declaration is not valid; the sentence begins with its path.
    """
    read = FunctionDeclaration.read(declaration)
    return HandledTool(read, handler, require_confirmation=require_confirmation)


def declared_tools(tool: Tool, handlers: Mapping[str, Callable[..., Any]]) -> list[HandledTool]:
    """Make tools of the functions of a `Tool`: ``LlmAgent(tools=declared_tools(tool, handlers))``.

    Raises:
        DeclarationError: A function has no handler, a handler has no function, or the `Tool` has a
            built-in tool, which ADK declares with a class of its own.
    """
    names = [declaration.name for declaration in tool.function_declarations]
    odd = next(iter(sorted(set(names) ^ set(handlers))), None)
    if odd is not None:
        what = "has no handler" if odd in names else "is not declared"
        raise DeclarationError(f"{odd}: The function {what}.")
    if set(tool.to_json()) - {"functionDeclarations"}:
        raise DeclarationError("Tool: A built-in tool has no handler; give the agent ADK's own.")
    return [declared_tool(each, handlers[each.name]) for each in tool.function_declarations]


def _schema_of(declaration: types.FunctionDeclaration) -> dict[str, Any]:
    if isinstance(declaration.parameters_json_schema, dict):
        return declaration.parameters_json_schema
    if declaration.parameters is None:
        return {"type": "object", "properties": {}}
    converted = declaration.parameters.json_schema
    return converted.model_dump(mode="json", exclude_none=True, by_alias=True)
