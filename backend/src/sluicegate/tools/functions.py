"""What a docstring says of a function and of each of its arguments."""

from __future__ import annotations

import inspect
import re
import typing
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined

from sluicegate.errors import DeclarationError, ToolError
from sluicegate.tools.declarations import FunctionDeclaration, problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core.core_schema import BytesSchema, IsSubclassSchema

_SECTION: Final = re.compile(r"(Args|Arguments|Parameters|Params):\s*")
_OTHER_SECTION: Final = re.compile(
    r"(Returns?|Raises|Yields?|Examples?|Notes?|Attributes|See Also|References|Warnings?):\s*"
)
_ARGUMENT: Final = re.compile(r"\*{0,2}(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)")
_FIELD: Final = re.compile(r":param(?:\s+[^:]*?)?\s+(\w+):\s*(.*)")
_OTHER_FIELD: Final = re.compile(r":\w+[^:]*:")


@dataclass(slots=True)
class Docs:
    """``text`` is everything before the first section; ``arguments`` are described by name."""

    text: str = ""
    arguments: dict[str, str] = field(default_factory=dict)


def docs_of(function: object) -> Docs:
    """Read a docstring in the style of Google or of reST (S1-R22)."""
    reading = _Reading()
    for line in inspect.cleandoc(getattr(function, "__doc__", None) or "").splitlines():
        if not reading.turns(line):
            reading.take(line)
    return Docs("\n".join(reading.text).strip(), reading.arguments)


class _Reading:
    """Where in a docstring the reader is."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.arguments: dict[str, str] = {}
        self._place: Literal["text", "arguments", "field", "elsewhere"] = "text"
        self._current = ""
        self._indent = 0

    def turns(self, line: str) -> bool:
        """Whether the line begins another section."""
        if line.startswith((" ", "\t")):
            return False
        if _SECTION.fullmatch(line):
            self._place, self._current, self._indent = "arguments", "", 0
        elif match := _FIELD.match(line):
            self._place, self._current = "field", match[1]
            self.arguments[self._current] = match[2]
        elif _OTHER_SECTION.fullmatch(line) or _OTHER_FIELD.match(line):
            self._place = "elsewhere"
        else:
            return False
        return True

    def take(self, line: str) -> None:
        """Take a line where the reader is."""
        words = line.strip()
        if self._place == "text":
            self.text.append(line)
        elif self._place != "elsewhere" and words and not self._begins(line, words):
            so_far = self.arguments.get(self._current, "")
            self.arguments[self._current] = f"{so_far} {words}".strip()

    def _begins(self, line: str, words: str) -> bool:
        """Whether an argument begins here; what is indented more goes on with the last one."""
        if self._place != "arguments":
            return False
        depth = len(line) - len(line.lstrip())
        self._indent = self._indent or depth
        match = _ARGUMENT.fullmatch(words) if depth <= self._indent else None
        if match is not None:
            self._current = match[1]
            self.arguments[self._current] = match[2]
        return match is not None


_STRICT: Final = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class DeclaredFunction:
    """A function as a tool.

    ``schema`` is the JSON schema of its arguments; ``names`` are its parameters by the fields of
    the model that reads the arguments.
    """

    name: str
    description: str
    schema: dict[str, Any]
    call: Callable[..., Any]
    model: type[BaseModel]
    names: dict[str, str]

    @property
    def declaration(self) -> FunctionDeclaration:
        """What a model is told of it."""
        return FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self.schema
        )

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them (S1-R37).

        Raises:
            ToolError: They do not fit; the sentence names the argument.
        """
        try:
            read = self.model.model_validate(arguments)
        except (ValidationError, RecursionError) as error:
            raise ToolError(f"Not run: {problem('arguments', error)}") from None
        return {self.names[field]: getattr(read, field) for field in self.names}


def declare(
    function: Callable[..., Any], *, name: str | None = None, without: frozenset[str] = frozenset()
) -> DeclaredFunction:
    """Describe a function as a tool (S1-R18 to S1-R22).

    Every parameter has a type hint that JSON schema can say: numbers, texts, booleans, lists,
    tuples, sets, mappings, ``Any``, unions, ``Optional``, ``Literal``, enums, dates and times,
    pydantic models, dataclasses, typed dictionaries, and any of them in another. What the docstring
    says of the parameters goes along. ``without`` are parameters that no model is to give.

    Raises:
        DeclarationError: It cannot be one; the sentence names the parameter as ``function.name``.
    """
    name = str(name or getattr(function, "__name__", ""))
    docs = docs_of(function)
    if not docs.text:
        raise DeclarationError(f"{name} has no docstring; say there what it does.")
    fields, names = _fields(function, name, docs, without)
    model = create_model("Arguments", __config__=_STRICT, **fields)
    declared = DeclaredFunction(name, docs.text, _schema(model), function, model, names)
    FunctionDeclaration.read(declared.declaration)
    return declared


def _fields(
    function: Callable[..., Any], name: str, docs: Docs, without: frozenset[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    hints = _hints(name, function)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for number, parameter in enumerate(_parameters(name, function)):
        if parameter.name in without:
            continue
        path = f"{name}.{parameter.name}"
        if parameter.kind not in _NAMED:
            raise DeclarationError(f"{path} cannot be given by its name; a tool's arguments are.")
        hint = hints.get(parameter.name)
        if hint is None:
            raise DeclarationError(f"{path} has no type hint.")
        _check_type(hint, path)
        missing = parameter.default is inspect.Parameter.empty
        default = PydanticUndefined if missing else parameter.default
        # The name of a field may not be one that pydantic has already.
        field = f"argument{number}"
        names[field] = parameter.name
        said = docs.arguments.get(parameter.name)
        told: dict[str, Any] = {} if said is None else {"description": said}
        fields[field] = (hint, Field(default, alias=parameter.name, **told))
    return fields, names


def _parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise DeclarationError(f"{name} does not tell what it takes.") from None


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise DeclarationError(
            f"The type hints of {name} cannot be read: {type(error).__name__}: {error}."
        ) from error
    return hints


class _Written(GenerateJsonSchema):
    """Says what a model can write: neither bytes (S1-R34) nor a class."""

    def bytes_schema(self, schema: BytesSchema) -> JsonSchemaValue:
        raise PydanticInvalidForJsonSchema("bytes")

    def is_subclass_schema(self, schema: IsSubclassSchema) -> JsonSchemaValue:
        raise PydanticInvalidForJsonSchema("a class")


def _check_type(hint: Any, path: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TypeAdapter(hint).json_schema(schema_generator=_Written)
    except Exception as error:
        if isinstance(error, PydanticInvalidForJsonSchema) and error.message == "bytes":
            raise DeclarationError(
                f"{path} takes bytes, which a model cannot write; take a text or an id instead."
            ) from None
        if isinstance(error, PydanticUserError) and error.code == "typed-dict-version":
            raise DeclarationError(f"{path}: {error.message}") from None
        raise DeclarationError(
            f"{path} is of the type {_shown(hint)}, which no JSON schema describes."
        ) from error


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    with warnings.catch_warnings():
        # A default that is not JSON is left out of the schema.
        warnings.simplefilter("ignore")
        schema = model.model_json_schema(by_alias=True, schema_generator=_Written)
    schema.pop("title", None)
    for described in schema.get("properties", {}).values():
        described.pop("title", None)
    schema.setdefault("properties", {})
    return schema
