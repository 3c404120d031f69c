"""Python functions as tools: read from their signature and docstring, called with typed arguments.

`declare` describes a function; `typed_tool` makes an ADK tool of it that runs in this process. The
worker serves declared functions to other processes.
"""

from __future__ import annotations

import inspect
import typing
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined

from sluicegate.adk_private import DeclaredFunctionTool
from sluicegate.errors import DeclarationError, ToolError
from sluicegate.tools.docstrings import FunctionDocs, parse_docstring
from sluicegate.tools.strict_genai import FunctionDeclaration, describe_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.tools.tool_context import ToolContext
    from google.genai import types
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core.core_schema import BytesSchema, IsSubclassSchema

_STRICT: Final = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class TypedTool(DeclaredFunctionTool):
    """A function tool that is declared by `declare` and validates its arguments.

    ADK's own tool passes dates and enums as strings and accepts arguments that do not validate;
    here a date is a ``date``, and invalid arguments are an error that the model reads (S1-R37).

    Raises:
        DeclarationError: The function cannot be a tool; the sentence names the parameter.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        require_confirmation: bool | Callable[..., bool] = False,
    ) -> None:
        super().__init__(function, require_confirmation=require_confirmation)
        self._declared = declare(function, name=name, without=self.context_parameters)
        self.name = self._declared.name
        self.description = self._declared.description

    def declaration(self) -> types.FunctionDeclaration:
        """Return the declaration that is sent to the model."""
        return self._declared.declaration

    def read_arguments(self, args: dict[str, Any]) -> dict[str, Any]:
        """Convert a model's arguments to those of the function.

        Raises:
            ToolError: They are not valid.
        """
        return self._declared.validate(args)

    async def check_require_confirmation(
        self, args: dict[str, Any], tool_context: ToolContext
    ) -> bool:
        """As declared; a call with invalid arguments fails without asking for approval."""
        try:
            self._declared.validate(args)
        except ToolError:
            return False
        return await super().check_require_confirmation(args, tool_context)


def typed_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    require_confirmation: bool | Callable[..., bool] = False,
) -> TypedTool:
    """Make a tool of a function, declared and called by its annotations (S1-R20).

    Args:
        function: With a docstring and a type hint for every parameter; see `declare`.
        name: The name that the model calls; the function's own name by default.
        require_confirmation: As in ADK: always, or a function of the arguments.

    Raises:
        DeclarationError: The function cannot be a tool; the sentence names the parameter.
    """
    return TypedTool(function, name=name, require_confirmation=require_confirmation)


@dataclass(frozen=True, slots=True)
class DeclaredFunction:
    """A function with the declaration that a model reads.

    ``schema`` is the JSON schema of the arguments; ``model`` validates them, and ``names`` maps the
    fields of ``model`` to the parameters.
    """

    name: str
    description: str
    schema: dict[str, Any]
    call: Callable[..., Any]
    model: type[BaseModel]
    names: dict[str, str]

    @property
    def declaration(self) -> FunctionDeclaration:
        """The declaration that is sent to the model."""
        return FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self.schema
        )

    def validate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Convert JSON arguments to the types of the parameters (S1-R37).

        Raises:
            ToolError: They are not valid; the sentence names the argument.
        """
        try:
            validated = self.model.model_validate(arguments)
        except (ValidationError, RecursionError) as error:
            raise ToolError(f"Not run: {describe_problem('arguments', error)}") from None
        return {self.names[field]: getattr(validated, field) for field in self.names}


def declare(
    function: Callable[..., Any], *, name: str | None = None, without: frozenset[str] = frozenset()
) -> DeclaredFunction:
    """Describe a function as a tool (S1-R18 to S1-R22).

    Every parameter needs a type hint that JSON schema can express: ``int``, ``float``, ``str``,
    ``bool``, ``list``, ``tuple``, ``set``, mappings, ``Any``, unions, ``Optional``, ``Literal``,
    enums, dates and times, pydantic models, dataclasses, typed dictionaries, and combinations of
    them. Descriptions of parameters come from the docstring. Parameters in ``without`` are not
    declared to the model.

    Raises:
        DeclarationError: The function cannot be a tool; the sentence names the parameter as
            ``function.name``.
    """
    name = str(name or getattr(function, "__name__", ""))
    docs = parse_docstring(function)
    if not docs.text:
        raise DeclarationError(f"{name} has no docstring; say there what it does.")
    fields, names = _fields(function, name, docs, without)
    model = create_model("Arguments", __config__=_STRICT, **fields)
    declared = DeclaredFunction(name, docs.text, _schema(model), function, model, names)
    FunctionDeclaration.read(declared.declaration)
    return declared


def _fields(
    function: Callable[..., Any], name: str, docs: FunctionDocs, without: frozenset[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    hints = _hints(name, function)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for number, parameter in enumerate(_parameters(name, function)):
        if parameter.name in without:
            continue
        path = f"{name}.{parameter.name}"
        if parameter.kind not in _BY_NAME:
            raise DeclarationError(f"{path} cannot be given by its name; a tool's arguments are.")
        hint = hints.get(parameter.name)
        if hint is None:
            raise DeclarationError(f"{path} has no type hint.")
        _check_type(hint, path)
        is_required = parameter.default is inspect.Parameter.empty
        default = PydanticUndefined if is_required else parameter.default
        # A parameter may have a name that pydantic reserves, so the fields are numbered.
        field = f"argument{number}"
        names[field] = parameter.name
        description = docs.arguments.get(parameter.name)
        documented: dict[str, Any] = {} if description is None else {"description": description}
        fields[field] = (hint, Field(default, alias=parameter.name, **documented))
    return fields, names


def _parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise DeclarationError(f"{name} does not tell what it takes.") from None


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise DeclarationError(
            f"The type hints of {name} cannot be read: {type(error).__name__}: {error}."
        ) from error


class _BytesInSchema(PydanticInvalidForJsonSchema):
    """A type holds bytes."""


class _ModelWritableSchema(GenerateJsonSchema):
    """Refuses types that a model cannot write as JSON: bytes (S1-R34) and classes."""

    def bytes_schema(self, schema: BytesSchema) -> JsonSchemaValue:
        raise _BytesInSchema("bytes")

    def is_subclass_schema(self, schema: IsSubclassSchema) -> JsonSchemaValue:
        raise PydanticInvalidForJsonSchema("a class")


def _check_type(hint: Any, path: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TypeAdapter(hint).json_schema(schema_generator=_ModelWritableSchema)
    except Exception as error:
        if isinstance(error, _BytesInSchema):
            raise DeclarationError(
                f"{path} takes bytes, which a model cannot write; take a text or an id instead."
            ) from None
        if isinstance(error, PydanticUserError) and error.code == "typed-dict-version":
            raise DeclarationError(f"{path}: {error.message}") from None
        type_name = hint.__name__ if isinstance(hint, type) else str(hint)
        raise DeclarationError(
            f"{path} is of the type {type_name}, which no JSON schema describes."
        ) from error


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    with warnings.catch_warnings():
        # A default that is not JSON is left out of the schema.
        warnings.simplefilter("ignore")
        schema = model.model_json_schema(by_alias=True, schema_generator=_ModelWritableSchema)
    schema.pop("title", None)
    for described in schema.get("properties", {}).values():
        described.pop("title", None)
    schema.setdefault("properties", {})
    return schema
